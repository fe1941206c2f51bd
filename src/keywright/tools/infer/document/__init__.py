"""Inference from a Markdown document that describes keys."""

from keywright.tools.infer.document.blocks import LARGEST
from keywright.tools.infer.document.declarations import DocumentInference, infer_document

__all__ = ["LARGEST", "DocumentInference", "infer_document"]
