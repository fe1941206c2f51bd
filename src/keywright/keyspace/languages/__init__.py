"""Regular languages over key names: what an alphabet may spell, and whether two templates can meet."""
