"""The reference of the public modules: what their `__all__` lists, from signatures and docstrings.

The source is read, not imported (griffe): annotations are shown as they are written, and attributes have the
text below them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any

import griffe

from website.reference.signatures import class_head, signature
from website.sources import ROOT

__all__ = ["PAGES", "Topic", "documented", "python_pages", "undocumented"]


@dataclass(frozen=True)
class Topic:
    """A page: names of a public module that are defined below one of these modules, or all others."""

    name: str
    title: str
    about: str
    module: str = "keywright"
    homes: tuple[str, ...] = ()


# The first that fits has a name.
PAGES = (
    Topic(
        "kinds",
        "Kinds of keys",
        "The kinds and their operations. [Kinds of keys](../../kinds.md) shows them in use.",
        homes=(
            "keyspace.kinds",
            "keyspace.key",
            "keyspace.channel",
            "keyspace.fields",
            "keyspace.live_index",
        ),
    ),
    Topic(
        "alphabets",
        "Alphabets",
        "The types of variables in names of keys. [Names of keys](../../names.md) shows them in use.",
        homes=("keyspace.alphabets", "keyspace.languages"),
    ),
    Topic(
        "codecs",
        "Codecs",
        "The stored forms of values. [Values](../../values.md) shows them in use.",
        homes=("keyspace.codecs", "keyspace.versions"),
    ),
    Topic(
        "expiry",
        "Expiry",
        "When keys expire. [Expiry](../../expiry.md) shows it in use.",
        homes=("keyspace.expiry", "keyspace.field_expiry"),
    ),
    Topic(
        "relations",
        "Relations, references and invariants",
        "What keys have to do with each other, which writes keep and the audit verifies.",
        homes=("keyspace.relations", "keyspace.references", "keyspace.invariants"),
    ),
    Topic(
        "databases",
        "Databases and settings",
        "Connections, settings and messages. [Clients](../../clients.md) and [outages](../../outages.md) "
        "show them in use; [URLs](../urls.md) lists the forms of addresses.",
        homes=("engine",),
    ),
    Topic("keyspaces", "Keyspaces and calls", "Keyspaces, their bindings, calls and the proof."),
    Topic(
        "operations",
        "Custom operations",
        "What custom operations are written with: [the guide](../../operations.md).",
        "keywright.operations",
    ),
    Topic("errors", "Errors", "One tree of exceptions, split by who is wrong.", "keywright.errors"),
    Topic("tools", "Tools", "What the commands do, as functions.", "keywright.tools"),
    Topic("testing", "Testing", "Real servers, clusters, faults and time for tests.", "keywright.testing"),
)
_CODE = re.compile(r"(?<![`\[])`([A-Za-z_]\w*)(\(\))?`(?!`)")


@cache
def _library() -> Any:
    return griffe.load("keywright", search_paths=[str(ROOT / "src")], resolve_aliases=True)


@cache
def documented() -> dict[str, list[tuple[str, Any]]]:
    """Return the names of each page with what they stand for, in alphabetical order."""
    found: dict[str, list[tuple[str, Any]]] = {topic.name: [] for topic in PAGES}
    for module in dict.fromkeys(topic.module for topic in PAGES):
        inside = module.partition(".")[2]
        loaded = _library()[inside] if inside else _library()
        for name in import_module(module).__all__:
            each = loaded[name]
            target = each.final_target if each.is_alias else each
            found[_topic(module, target.path)].append((name, target))
    return {page: sorted(names, key=lambda pair: pair[0].lower()) for page, names in found.items()}


def undocumented() -> list[str]:
    """Return the public names without a docstring, and public methods of theirs."""
    return [
        f"{page}: {name}{'.' + member.name if member is not each else ''}"
        for page, names in documented().items()
        for name, each in names
        for member in (each, *_methods(each))
        if not member.docstring and not any(overload.docstring for overload in _overloads(member))
    ]


def python_pages() -> dict[str, str]:
    """Return the pages of the public modules by their place on the site."""
    return {
        f"reference/python/{topic.name}.md": _page(topic, documented()[topic.name]) for topic in PAGES
    } | {"reference/python/README.md": _index()}


def _topic(module: str, path: str) -> str:
    for topic in PAGES:
        below = tuple(f"keywright.{home}." for home in topic.homes)
        if topic.module == module and (not below or path.startswith(below)):
            return topic.name
    raise LookupError(path)


def _index() -> str:
    lines = ["# Python", "", "Everything that the public modules export.", ""]
    for topic in PAGES:
        names = ", ".join(f"[`{name}`]({topic.name}.md#{name})" for name, _ in documented()[topic.name])
        lines += [f"**[{topic.title}]({topic.name}.md)**", f": {names}", ""]
    return "\n".join(lines)


@cache
def _places() -> dict[str, str]:
    """Return the link of each public name."""
    places: dict[str, str] = {}
    for page, names in documented().items():
        for name, _ in names:
            places.setdefault(name, f"{page}.md#{name}")
    return places


def _page(topic: Topic, names: list[tuple[str, Any]]) -> str:
    lines = [f"# {topic.title}", "", f"{topic.about} Import from `{topic.module}`.", ""]
    if topic.name == "errors":
        lines += ["```text", _tree(), "```", ""]
    for name, each in names:
        lines += [f"## {name} {{ #{name} }}", "", *_described(name, each)]
    return "\n".join(lines).rstrip() + "\n"


def _tree() -> str:
    text = _library()["errors"].docstring.value
    return "\n".join(line.removeprefix("    ") for line in text.splitlines() if line.startswith("    "))


def _described(name: str, each: Any) -> Iterator[str]:
    if each.is_class:
        yield from _block(class_head(name, each))
        yield from _text(each, name)
        yield from _attributes(each, name)
        for method in _methods(each):
            yield f"### {name}.{method.name} {{ #{name}.{method.name} }}"
            yield ""
            yield from _function(method.name, method, name)
        yield from _inherited(each)
    elif each.is_function:
        yield from _function(name, each, name)
    else:
        yield from _block(f"{name} = {each.value}")
        yield from _text(each, name)


def _function(name: str, each: Any, owner: str) -> Iterator[str]:
    if each.is_attribute:  # a property
        yield from _block(f"{name}: {each.annotation}")
    else:
        shown = [signature(name, overload) for overload in _overloads(each) or [each]]
        yield from _block("\n".join(shown))
    yield from _text(each, owner)
    if not each.docstring:
        for overload in _overloads(each):
            yield from _text(overload, owner)


def _block(code: str) -> list[str]:
    return ["```python", code, "```", ""]


def _text(each: Any, owner: str) -> Iterator[str]:
    """Yield a docstring with links from the names of others."""
    if not each.docstring:
        return
    for line in each.docstring.value.splitlines():
        yield line if line.startswith("    ") else _CODE.sub(lambda found: _linked(found, owner), line)
    yield ""


def _linked(found: re.Match[str], owner: str) -> str:
    place = _places().get(found[1])
    return found[0] if place is None or found[1] == owner else f"[{found[0]}]({place})"


def _attributes(each: Any, owner: str) -> Iterator[str]:
    """Yield what instances hold: the attributes that are documented, or that are the members of a value."""
    is_value = {"NamedTuple", "Struct", "Enum", "StrEnum", "IntEnum", "TypedDict"} & _bases(each)
    is_value = is_value or {str(label) for label in each.labels} & {"dataclass"}
    for member in each.members.values():
        if member.name.startswith("_") or not member.is_attribute or "property" in member.labels:
            continue
        if not member.docstring and not is_value:
            continue
        kind = f": {member.annotation}" if member.annotation else ""
        value = f" = {member.value}" if member.value is not None else ""
        yield f"`{member.name}{kind}{value}`"
        text = " ".join(member.docstring.value.split()) if member.docstring else ""
        yield f":   {_CODE.sub(lambda found: _linked(found, owner), text) or '&nbsp;'}"
        yield ""


def _bases(each: Any) -> set[str]:
    return {str(base).rpartition(".")[2].partition("[")[0] for base in each.bases}


def _methods(each: Any) -> list[Any]:
    """Return the public methods and properties of a class, without those that a base class documents."""
    if not each.is_class:
        return []
    contract = {
        member.name
        for base in _mro(each)
        for member in base.members.values()
        if not member.name.startswith("_")
    }
    return [
        member
        for member in each.members.values()
        if not member.name.startswith("_")
        and not member.is_alias
        and (member.is_function or (member.is_attribute and "property" in member.labels))
        and (member.docstring or _overloads(member) or member.name not in contract)
    ]


def _mro(each: Any) -> list[Any]:
    """Return the bases of a class, as far as they are ours."""
    found = []
    for base in each.resolved_bases:
        target = base.final_target if base.is_alias else base
        if target.is_class:
            found += [target, *_mro(target)]
    return found


def _overloads(each: Any) -> list[Any]:
    return list(getattr(each, "overloads", None) or []) if each.is_function else []


def _inherited(each: Any) -> Iterator[str]:
    for base in each.resolved_bases:
        target = base.final_target if base.is_alias else base
        place = _places().get(target.name)
        names = ", ".join(f"`{method.name}`" for method in _methods(target))
        if place and names:
            yield f"From [`{target.name}`]({place}): {names}."
            yield ""
