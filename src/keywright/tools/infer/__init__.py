"""Inference: write a declaration from the names and values that a Redis holds."""

from keywright.tools.infer.databases import joined_inference
from keywright.tools.infer.inference import Inference, infer, infer_server
from keywright.tools.infer.model import inferred_model
from keywright.tools.infer.names import NameSample
from keywright.tools.infer.sources import Survey, names_in, survey

__all__ = [
    "Inference",
    "NameSample",
    "Survey",
    "infer",
    "infer_server",
    "inferred_model",
    "joined_inference",
    "names_in",
    "survey",
]
