"""The diagram of a data model: its entities as boxes, its relations and references as lines, as SVG."""
