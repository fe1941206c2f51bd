"""A private PostgreSQL for tests."""
