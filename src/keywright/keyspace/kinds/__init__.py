"""The kinds of keys: one module each, with the commands that Redis has for it."""

from keywright.keyspace.kinds.counter import Counter
from keywright.keyspace.kinds.list import List
from keywright.keyspace.kinds.map import Map
from keywright.keyspace.kinds.record import Record
from keywright.keyspace.kinds.set import Set
from keywright.keyspace.kinds.sorted_set import SortedSet
from keywright.keyspace.kinds.stream import Entry, Stream
from keywright.keyspace.kinds.unset import UNSET, Unset
from keywright.keyspace.kinds.value import Value

__all__ = [
    "UNSET",
    "Counter",
    "Entry",
    "List",
    "Map",
    "Record",
    "Set",
    "SortedSet",
    "Stream",
    "Unset",
    "Value",
]
