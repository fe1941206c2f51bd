"""Dumps of databases: every key of a file is read by pages and by name, with each command of its type.

A file that is not a dump, or a damaged one, raises DumpError.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from keywright.errors import DumpError
from keywright.keyspace.layouts import LAYOUTS, Ask
from keywright.tools.audit.page_reader import on_name
from keywright.tools.rdb import DumpDatabase

MOST_KEYS = 200

_folder = tempfile.TemporaryDirectory(prefix="keywright-fuzz-")
_path = Path(_folder.name, "dump.rdb")


def one_input(data: bytes) -> None:
    _path.write_bytes(data)
    try:
        dump = DumpDatabase(_path, checked=len(data) % 2 == 0)
    except DumpError:
        return
    try:
        read_all(dump)
    except DumpError:
        pass
    finally:
        dump.close()


def read_all(dump: DumpDatabase) -> None:
    cursor, names = 0, list[bytes]()
    while len(names) < MOST_KEYS:
        cursor, page = dump.keys.page(cursor, 50)
        names += page
        if not cursor:
            break
    for name in [*names[:MOST_KEYS], b"absent"]:
        try:
            read(dump, name)
        except DumpError:
            continue


def read(dump: DumpDatabase, name: bytes) -> None:
    (kind, *_) = dump.answer(
        [on_name(ask, name, None) for ask in (Ask(b"TYPE"), Ask(b"PTTL"), Ask(b"EXISTS"))]
    )
    layout = LAYOUTS.get(kind.decode())
    if layout is None:
        return
    asks = [layout.everything, Ask(layout.size), layout.first_page(3)]
    if kind == b"stream":
        asks += [Ask(b"XINFO", (b"GROUPS",)), Ask(b"XREVRANGE", (b"+", b"-"))]
    elif kind == b"hash":
        asks.append(Ask(b"HPTTL", (b"FIELDS", 1, b"a")))
    if kind != b"string":
        asks.append(layout.find(b"1-1"))
    dump.answer([on_name(ask, name, None) for ask in asks])
