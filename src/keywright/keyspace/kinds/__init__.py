"""The kinds of keys: one module each, with its commands and the patterns built on it."""

from keywright.keyspace.kinds.bit_fields import BitFields, Bits
from keywright.keyspace.kinds.bitmap import Bitmap
from keywright.keyspace.kinds.claim import Claim, ClaimState
from keywright.keyspace.kinds.compare_and_set import modify, replace_if
from keywright.keyspace.kinds.counter import Counter
from keywright.keyspace.kinds.due_queue import Claimed, DueQueue
from keywright.keyspace.kinds.geo import Geo, Near, Point
from keywright.keyspace.kinds.hold import new_token
from keywright.keyspace.kinds.hyperloglog import HyperLogLog
from keywright.keyspace.kinds.json_document import JsonDocument
from keywright.keyspace.kinds.lease import Lease
from keywright.keyspace.kinds.list import List
from keywright.keyspace.kinds.map import Map
from keywright.keyspace.kinds.opaque import Opaque
from keywright.keyspace.kinds.record import Record
from keywright.keyspace.kinds.set import Set
from keywright.keyspace.kinds.sorted_set import SortedSet
from keywright.keyspace.kinds.stream import Entry, Stream
from keywright.keyspace.kinds.unset import UNSET, Unset
from keywright.keyspace.kinds.value import Value

__all__ = [
    "UNSET",
    "BitFields",
    "Bitmap",
    "Bits",
    "Claim",
    "ClaimState",
    "Claimed",
    "Counter",
    "DueQueue",
    "Entry",
    "Geo",
    "HyperLogLog",
    "JsonDocument",
    "Lease",
    "List",
    "Map",
    "Near",
    "Opaque",
    "Point",
    "Record",
    "Set",
    "SortedSet",
    "Stream",
    "Unset",
    "Value",
    "modify",
    "new_token",
    "replace_if",
]
