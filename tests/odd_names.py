"""A keyspace whose names and fields hold any bytes and any text."""

from __future__ import annotations

from typing import Annotated

from keywright import Keyspace, Map, Value
from keywright.keyspace.alphabets import Bytes, Segment

odd = Keyspace("odd", "Names of any bytes.", prefix="odd")


class Blob(Value[str], key="blob:<name>", space=odd):
    """A value under a name of any bytes."""

    name: Annotated[bytes, Bytes()]


class Fields(Map[str, str], key="fields:<name>", space=odd):
    """Fields with names of any text."""

    name: Annotated[str, Segment()]
