"""The view of a table that a URL asks for: filters, order, columns, place and format.

A parameter whose name is also a variable of the template has an underscore in front: `_limit`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any
from urllib.parse import parse_qsl, urlencode

import msgspec

from keywright.explorer.tables import TESTS, Filter

__all__ = ["View", "number_of"]

MOST_FILTERS = 12
LONGEST = 2000


class View(msgspec.Struct, frozen=True):
    """What a URL asks for; `fixed` are the parameters that lead to the page itself."""

    path: str
    fixed: tuple[tuple[str, str], ...] = ()
    taken: frozenset[str] = frozenset()
    """Parameter names that the page uses for something else."""
    filters: tuple[Filter, ...] = ()
    sort: str = ""
    descending: bool = False
    shown: tuple[str, ...] = ()
    """The ids of the chosen columns; without any, the page chooses."""
    place: tuple[tuple[str, str], ...] = ()
    """The parameters of a place in the rows: a cursor, a start, a range."""
    format: str = ""
    limit: int = 0

    @staticmethod
    def of(
        path: str,
        query: bytes,
        *,
        fixed: Collection[str] = (),
        places: Collection[str] = (),
        variables: Collection[str] = (),
    ) -> View:
        """Parse a query. `fixed` and `places` are the parameters to keep; all others are of the view."""
        taken = frozenset({*fixed, *variables})
        pairs = parse_qsl(query.decode("latin-1"), keep_blank_values=True, errors="surrogateescape")
        own: dict[str, list[str]] = {}
        kept, placed = [], []
        for name, text in pairs:
            valid = text[:LONGEST].encode(errors="surrogateescape").decode(errors="replace")
            bare = name.removeprefix("_") if name.startswith("_") and name[1:] in taken else name
            if name in taken:
                if text:
                    kept.append((name, text if name in fixed else valid))
            elif bare in places:
                if text:
                    placed.append((bare, valid))
            else:
                own.setdefault(bare, []).append(valid)
        tests = own.get("op", [])
        to = own.get("to", [])
        filters = [
            Filter(column, tests[at] if at < len(tests) else "eq", to[at] if at < len(to) else "")
            for at, column in enumerate(own.get("col", [])[:MOST_FILTERS])
            if column
        ]
        return View(
            path,
            tuple(kept),
            taken,
            tuple(each for each in filters if each.test in TESTS),
            own.get("sort", [""])[-1],
            own.get("desc", [""])[-1] not in ("", "0"),
            tuple(dict.fromkeys(filter(None, own.get("show", [])))),
            tuple(dict(placed).items()),
            own.get("format", [""])[-1],
            number_of(own.get("limit", [""])[-1]),
        )

    @property
    def placed(self) -> dict[str, str]:
        return dict(self.place)

    def pairs(self, **changes: Any) -> list[tuple[str, str]]:
        """Return the parameters of this view with some changes; a change of the rows leads to the first."""
        view: View = msgspec.structs.replace(self, **changes)
        own: list[tuple[str, str]] = []
        for each in view.filters:
            own += [("col", each.column), ("op", each.test), ("to", each.to)]
        if view.sort:
            own.append(("sort", view.sort))
            own += [("desc", "1")] if view.descending else []
        own += [("show", each) for each in view.shown]
        own += view.place
        if view.format:
            own.append(("format", view.format))
        if view.limit:
            own.append(("limit", str(view.limit)))
        return [*view.fixed, *((self.name(name), text) for name, text in own)]

    def name(self, parameter: str) -> str:
        """Return the name of a parameter, which another use of the page may have taken."""
        return f"_{parameter}" if parameter in self.taken else parameter

    def url(self, **changes: Any) -> str:
        pairs = self.pairs(**{"format": "", "limit": 0, **changes})
        return f"{self.path}?{urlencode(pairs, errors='surrogateescape')}" if pairs else self.path

    def at(self, **place: str | int) -> str:
        """Return the URL of another place in the same rows."""
        return self.url(place=tuple((name, str(value)) for name, value in place.items()))

    def sorted_by(self, column: str) -> str:
        """Return the URL of the other order: ascending first, then descending, then none."""
        if self.sort != column:
            return self.url(sort=column, descending=False, place=self._range)
        if not self.descending:
            return self.url(descending=True, place=self._range)
        return self.url(sort="", descending=False, place=self._range)

    def narrowed(self, column: str, text: str) -> str:
        """Return the URL of the rows with a value, or without that filter if there is one."""
        wanted = Filter(column, "eq", text)
        if wanted in self.filters:
            return self.without(wanted)
        return self.url(filters=(*self.filters, wanted), place=self._range)

    def without(self, unwanted: Filter) -> str:
        filters = tuple(each for each in self.filters if each != unwanted)
        return self.url(filters=filters, place=self._range)

    def has(self, column: str, text: str) -> bool:
        return Filter(column, "eq", text) in self.filters

    def export(self, form: str, limit: int = 0) -> str:
        return self.url(format=form, limit=limit)

    @property
    def _range(self) -> tuple[tuple[str, str], ...]:
        """The place without what counts rows: another order or filter begins at the first row."""
        return tuple(
            (name, "0-0") if name == "cursor" else (name, text) for name, text in self.place if name != "from"
        )

    def hidden(self, *without: str) -> Sequence[tuple[str, str]]:
        """Return the parameters that a form of this page passes on, without those that it sets itself."""
        own: dict[str, Any] = {"format": "", "limit": 0}
        if "filters" in without:
            own["filters"] = ()
        if "shown" in without:
            own["shown"] = ()
        if "fixed" in without:
            own["fixed"] = ()
        own["place"] = () if "place" in without else self._range
        return [_writable(name, text) for name, text in self.pairs(**own)]

    def document(self) -> Mapping[str, Any]:
        return {
            "filters": [each._asdict() for each in self.filters],
            "sort": self.sort or None,
            "descending": self.descending,
        }


def _writable(name: str, text: str) -> tuple[str, str]:
    """Return a field of a form. Forms are text, so a name that is not UTF-8 is sent in hexadecimal."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return f"{name}.hex", text.encode(errors="surrogateescape").hex()
    return name, text


def number_of(text: str) -> int:
    """Return a whole number, 0 for any other text."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 20 else 0
