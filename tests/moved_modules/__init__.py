"""One moved key in two modules: annotations as text, and annotations as objects."""
