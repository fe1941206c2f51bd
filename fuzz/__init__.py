"""Coverage-guided fuzzing of every parser that reads bytes from elsewhere: `make fuzz`."""
