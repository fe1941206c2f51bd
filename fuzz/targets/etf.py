"""Bodies of messages: ETF, and the encodings that are recognised by their first bytes.

A malformed body raises one error; a decoded term is written and read again without a change.
"""

from __future__ import annotations

from keywright_messaging import encodings, etf
from keywright_messaging.errors import UndecodableError

UNPACKED = 64 * 1024


def one_input(data: bytes) -> None:
    try:
        term = etf.decode(data, max_unpacked=UNPACKED)
    except etf.EtfError:
        pass
    else:
        _written_again(term)
    try:
        encodings.decode(data)
    except UndecodableError:
        pass


def _written_again(term: object) -> None:
    try:
        written = etf.encode(term)
    except etf.EtfError:
        return  # tuples as keys, say, which other encoders may write
    again = etf.encode(etf.decode(written))
    assert again == written, (term, again)
