"""The explorer's pages: each parses a request, reads its data and renders it."""
