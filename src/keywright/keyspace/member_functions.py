"""Functions that are generated for a class with fields: from a value to its names and bytes, and back.

Their source has no loop over members: the codec of each is in line, or called by its name. Whatever they
cannot do, they leave to plain functions, which name the member that is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from keyword import iskeyword
from typing import TYPE_CHECKING, Any

from keywright.keyspace.generated import collector, for_each, function, in_bulk

if TYPE_CHECKING:
    from keywright.keyspace.fields import Member, Others, Shape
    from keywright.keyspace.kinds.bit_fields import Bits

__all__ = ["bits_reader", "bits_writer", "entries_reader", "flat_reader", "flat_writer", "records_reader"]


def flat_writer(shape: Shape[Any]) -> Callable[[Any], tuple[bytes, ...]]:
    """Return the function from a value to the names and bytes of its members, without absent ones."""
    if not _has_plain_names(shape):
        return shape.flat_plainly
    scope = {
        "kind": shape.type,
        "encode_others": shape.encode_others,
        **{f"name{n}": member.stored for n, member in enumerate(shape.members)},
        **{
            f"encode{n}": each.codec.quick_encode or each.codec.encode for n, each in enumerate(shape.members)
        },
    }
    lines = ["if not isinstance(value, kind): raise TypeError"]
    if not (shape.members and shape.members[0].required):
        lines.append("stored = ()")
    for required, together in groupby(enumerate(shape.members), key=lambda each: each[1].required):
        if required:
            written = list(together)
            lines += [f"item{n} = value.{member.attribute}" for n, member in written]
            parts = (f"name{n}, {member.codec.encoding(f'item{n}', f'encode{n}')}" for n, member in written)
            lines.append(f"stored {'=' if written[0][0] == 0 else '+='} ({', '.join(parts)},)")
            continue
        for n, member in together:
            absent = "item is None or item is False" if member.is_flag else "item is None"
            lines += [
                f"item = value.{member.attribute}",
                f"if not ({absent}): stored += (name{n}, {member.codec.encoding('item', f'encode{n}')})",
            ]
    if shape.others is not None:
        others = f"encode_others(value.{shape.others.attribute})"
        lines.append(f"for pair in {others}.items(): stored += pair")
    return function("value", [*lines, "return stored"], scope, shape.flat_plainly)


def flat_reader(shape: Shape[Any]) -> Callable[[list[bytes]], Any]:
    """Return the function from names and bytes to the value.

    Mostly all members are there, in the order in which they were written: then one comparison finds them.
    """
    if not _has_plain_names(shape):
        return shape.unflatten_plainly
    scope = {**_scope(shape), "read_others": shape.read_others}
    by_name, arguments = [], []
    for n, member in enumerate(shape.members):
        scope |= {f"name{n}": member.stored, f"default{n}": member.default}
        decoded = member.codec.decoding(f"data{n}", f"decode{n}")
        if member.required:
            by_name += [f"data{n} = stored[name{n}]", f"value{n} = {decoded}"]
        else:
            default = f"default{n}{'()' if callable(member.default) else ''}"
            by_name += [
                f"data{n} = stored.get(name{n})",
                f"value{n} = {default} if data{n} is None else {decoded}",
            ]
        arguments.append(f"{member.argument}=value{n}")
    if shape.others is not None:
        arguments.append(f"{shape.others.argument}=read_others(stored)")
    lines = [
        *([] if shape.others else ["if reply[::2] == names:", *_in_order(shape, "reply", "    return")]),
        "stored = dict(zip(reply[::2], reply[1::2], strict=True))",
        *by_name,
        f"return make({', '.join(arguments)})",
    ]
    return function("reply", lines, scope, shape.unflatten_plainly)


def records_reader(shape: Shape[Any]) -> Callable[[Sequence[Any]], list[Any]]:
    """Return the function from many replies, each names and bytes, to the values; None for an empty one."""
    scope = {**_scope(shape), "unflatten": shape.unflatten}
    by_name = "unflatten(reply) if reply else None"
    if shape.others or not _has_plain_names(shape):
        return for_each("reply", by_name, scope)
    in_order = _in_order(shape, "reply", "    value =")
    lines = ["if reply[::2] == names:", *in_order, f"else: value = {by_name}", "found.append(value)"]
    return collector("reply", lines, scope)


def entries_reader(
    shape: Shape[Any], entry: type[Any], plainly: Callable[[list[Any]], list[Any]]
) -> Callable[[list[Any]], list[Any]]:
    """Return the function from entries of a stream, as ids with names and bytes, to those with values."""
    if shape.others or not _has_plain_names(shape):
        return plainly
    lines = [
        "found = []",
        "for entry_id, flat in reply:",
        "    if flat is None: continue",
        "    if flat[::2] == names:",
        *_in_order(shape, "flat", "        value ="),
        "    else: value = unflatten(flat)",
        "    found.append(new(entry, (entry_id.decode(), value)))",  # in half the time of entry(…)
        "return found",
    ]
    scope = {"entry": entry, "new": tuple.__new__, "unflatten": shape.unflatten}
    return function("reply", lines, {**_scope(shape), **scope}, plainly)


def _scope(shape: Shape[Any]) -> dict[str, Any]:
    return {
        "make": shape.make,
        "names": [member.stored for member in shape.members],
        **{
            f"decode{n}": each.codec.quick_decode or each.codec.decode for n, each in enumerate(shape.members)
        },
    }


def _in_order(shape: Shape[Any], flat: str, result: str) -> list[str]:
    """Return lines that make the value of a flat list with all members in their order."""
    indent = result[: len(result) - len(result.lstrip())]
    names = "".join(f"_, data{n}, " for n in range(len(shape.members)))
    arguments = (
        f"{member.argument}={member.codec.decoding(f'data{n}', f'decode{n}')}"
        for n, member in enumerate(shape.members)
    )
    return [f"{indent}[{names}] = {flat}", f"{result} make({', '.join(arguments)})"]


def bits_writer(
    shape: Shape[Any], bits: Sequence[Bits], plainly: Callable[[Any], tuple[Any, ...]]
) -> Callable[[Any], tuple[Any, ...]]:
    """Return the function from a value to the operands of BITFIELD that write all members."""
    if not _has_plain_names(shape):
        return plainly
    lines = ["if not isinstance(value, kind): raise TypeError"]
    for n, (member, each) in enumerate(zip(shape.members, bits, strict=True)):
        fits = f"type(item{n}) is int and {each.lowest} <= item{n} <= {each.highest}"
        lines += [f"item{n} = value.{member.attribute}", f"if not ({fits}): raise ValueError"]
    operands = (f"b'SET', {each.type!r}, {each.at}, b'%d' % item{n}" for n, each in enumerate(bits))
    lines.append(f"return ({', '.join(operands)})")
    return function("value", lines, {"kind": shape.type}, plainly)


def bits_reader(shape: Shape[Any], plainly: Callable[[list[int]], Any]) -> Callable[[list[int]], Any]:
    """Return the function from the reply of BITFIELD, which asked for all members, to the value."""
    if not _has_plain_names(shape):
        return plainly
    items = "".join(f"item{n}, " for n in range(len(shape.members)))
    arguments = ", ".join(f"{member.attribute}=item{n}" for n, member in enumerate(shape.members))
    made, scope = f"kind({arguments})", {"kind": shape.type}
    reader = function("reply", [f"[{items}] = reply", f"return {made}"], scope, plainly)
    return in_bulk(reader, for_each(f"[{items}]", made, scope))


def _has_plain_names(shape: Shape[Any]) -> bool:
    """Return whether source can name all members; an alias of a model of Pydantic may be any text."""
    members: list[Member | Others] = [*shape.members]
    if shape.others is not None:
        members.append(shape.others)
    names = {name for member in members for name in (member.attribute, member.argument)}
    return all(name.isidentifier() and not iskeyword(name) for name in names)
