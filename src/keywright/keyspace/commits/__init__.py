"""Compare-and-set over any number of keys, and the journal that carries it across slots."""
