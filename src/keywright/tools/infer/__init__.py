"""Inference: write a declaration from the names and values that a Redis holds."""

from keywright.tools.infer.inference import Inference, infer
from keywright.tools.infer.names import NameSample
from keywright.tools.infer.sources import Survey, names_in, survey

__all__ = ["Inference", "NameSample", "Survey", "infer", "names_in", "survey"]
