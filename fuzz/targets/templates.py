"""Templates as a declaration writes them, and names as a server returns them.

The input is a template, a line break, and a name to parse.
"""

from __future__ import annotations

from typing import Any

from keywright.errors import DeclarationError, KeywrightError
from keywright.keyspace.alphabets import Plain, Text, Unsigned64
from keywright.keyspace.template import Template

ALPHABETS: dict[str, Any] = {"a": Plain(), "b": Text(), "n": Unsigned64()}
VALUES = {"a": "x", "b": "é y", "n": 7}
LONGEST_TEMPLATE = 64


def one_input(data: bytes) -> None:
    line, _, name = data.partition(b"\n")
    try:
        source = line.decode()
        used = {key: alphabet for key, alphabet in ALPHABETS.items() if f"<{key}>" in source}
        template = Template(source[:LONGEST_TEMPLATE], used)
    except (UnicodeDecodeError, DeclarationError):
        return
    template.glob()
    values = template.parse(name)
    if values is not None:
        assert template.render(values) == name, (source, name, values)
    try:
        rendered = template.render([VALUES[variable] for variable in template.variables])
    except KeywrightError:
        return
    if template.two_readings() is None:
        assert template.parse(rendered) is not None, (source, rendered)
