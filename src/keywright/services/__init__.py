"""Long-running programs over the models, and what they share as such."""
