"""The registry's metadata database: one contract, PostgreSQL and SQLite."""
