"""Messages between processes: one contract, one module a broker. Arrives with the Spectacles gateway."""
