"""A declaration as plain data and in words; stored values as plain data."""
