"""Long-running programs over the models. Arrive with the gateway."""
