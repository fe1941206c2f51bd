"""Proofs over a declaration, without a server."""
