"""Proofs over a declaration: languages, automata, and the rules that use them."""
