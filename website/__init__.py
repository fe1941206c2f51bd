"""The documentation site: `make docs` builds it from the Markdown pages of the repository.

Decision 0014 has the reasons. Nothing here is installed with the library.
"""
