"""The explorer's pages: each reads a request, asks for what it shows, and renders it."""
