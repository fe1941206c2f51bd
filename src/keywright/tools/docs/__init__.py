"""The document of a data model, from its declaration: Markdown, HTML, JSON, and AsyncAPI for channels."""
