"""The rules that a sound declaration satisfies, proved without a server.

Each finding names the template, the reason and, where there is one, a counterexample.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from keywright.keyspace.codecs import Codec, CodecError, Json, MessagePack, alternatives_in
from keywright.keyspace.codecs.samples import samples_of
from keywright.keyspace.context import Binding
from keywright.keyspace.key import Key
from keywright.keyspace.languages.automaton import alternation, is_empty
from keywright.keyspace.languages.language import difference
from keywright.keyspace.misuse import explained
from keywright.keyspace.relations import Index, Link, ManyToOne, OneToOne
from keywright.keyspace.space import Keyspace
from keywright.keyspace.versions.codecs import is_former
from keywright.keyspace.versions.upgrades import Recoding


class Finding(NamedTuple):
    """One unsound thing. Codes are stable; notes (severity 'note') do not fail a check."""

    code: str
    template: str
    reason: str
    counterexample: str | None = None
    severity: str = "error"

    def __str__(self) -> str:
        example = f"\n    for example {self.counterexample}" if self.counterexample else ""
        return f"{self.code} {self.template}: {self.reason}{example}"


@explained
def check(*spaces: Keyspace | Binding) -> list[Finding]:
    """Return every finding of a keyspace; an empty list, or only notes, means that it is proved.

    Of several, which share a database, their names are compared too: a keyspace with its declared prefix,
    or a binding with its own, as in `check(shop, billing.bind(prefix="eu"))`.
    """
    bindings = [space.bind() if isinstance(space, Keyspace) else space for space in spaces]
    alone = [finding for binding in bindings for prove in PROOFS for finding in prove(binding.space)]
    return alone + list(keyspaces_share_no_name(bindings))


def names_parse_back(space: Keyspace) -> Iterator[Finding]:
    """Every name of a key or channel parses back to one and one only."""
    for kind in (*space, *space.channels):
        readings = kind._template.two_readings()
        if readings:
            name, one, other = readings
            yield Finding(
                "ambiguous-template",
                kind._template.source,
                "one name can be read in two ways",
                f"{_shown(name)} is {_assigned(one)} and {_assigned(other)}",
            )
    for one_kind, other_kind in itertools.combinations(space, 2):
        if one_kind in other_kind.declaration.superiors() or other_kind in one_kind.declaration.superiors():
            continue
        common = one_kind._template.collision(other_kind._template)
        if common is not None:
            yield Finding(
                "overlapping-templates",
                one_kind._template.source,
                f"overlaps with {other_kind._template.source!r}: both can make the same name",
                f"{_shown(common)} is a {one_kind.__name__} and a {other_kind.__name__}",
            )
    for one_channel, other_channel in itertools.combinations(space.channels, 2):
        common = one_channel._template.collision(other_channel._template)
        if common is not None:
            yield Finding(
                "overlapping-templates",
                one_channel._template.source,
                f"overlaps with {other_channel._template.source!r}: both can make the same channel",
                f"{_shown(common)} is a {one_channel.__name__} and a {other_channel.__name__}",
            )


def precedence_is_needed(space: Keyspace) -> Iterator[Finding]:
    """A class yields only to classes of its keyspace that share names with it, and some names are left."""
    for kind in space:
        source = kind._template.source
        for superior in kind._yields_to:
            if superior._space is not space:
                yield Finding("foreign-precedence", source, f"{superior.__name__} is of another keyspace")
                continue
            common = kind._template.collision(superior._template)
            if common is None:
                yield Finding(
                    "needless-precedence",
                    source,
                    f"it yields to {superior._template.source!r}, but no name is of both. Remove it from "
                    f"yields_to",
                )
            else:
                yield Finding(
                    "precedence",
                    source,
                    f"yields to {superior._template.source!r}",
                    f"{_shown(common)} is a {superior.__name__}, not a {kind.__name__}",
                    severity="note",
                )
        superiors = list(kind.declaration.superiors())
        if not superiors:
            continue
        if kind._fallback:
            yield Finding("precedence", source, "has the names that no other template makes", severity="note")
        taken = alternation(superior._template.language for superior in superiors)
        try:
            if is_empty(difference(kind._template.language, taken)):
                yield Finding(
                    "unreachable-template", source, "no name is left to it by the templates it yields to"
                )
        except ValueError as error:
            yield Finding(
                "precedence",
                source,
                f"whether any name is left to it is not proved: {error}",
                severity="note",
            )


def former_names_are_free(space: Keyspace) -> Iterator[Finding]:
    """A former name of a key is not a name of another key."""
    former = [(kind, old) for kind in space for old in kind._former]
    for kind, old in former:
        for other in space:
            common = old._template.collision(other._template)
            if common is not None:
                yield Finding(
                    "former-name-in-use",
                    old._template.source,
                    f"{kind.__name__} had this template, but {other._template.source!r} makes the same name",
                    f"{_shown(common)} is a {other.__name__} and may be a {kind.__name__}",
                )
    for (kind, old), (other, older) in itertools.combinations(former, 2):
        common = old._template.collision(older._template)
        if common is not None:
            yield Finding(
                "former-name-twice",
                old._template.source,
                f"{kind.__name__} and {other.__name__} had templates that make the same name",
                _shown(common),
            )


def former_codecs_are_distinct(space: Keyspace) -> Iterator[Finding]:
    """Bytes of a former codec are recognised, or mean the same to the present one."""
    for kind in space:
        for upgrade in getattr(kind, "_upgrades", ()):
            for recoding in upgrade.recodings:
                for sample in recoding.former.samples:
                    problem = _mistaken(recoding, sample)
                    if problem:
                        yield Finding("codecs-not-distinct", kind._template.source, problem, repr(sample))


def alternatives_are_distinct(space: Keyspace) -> Iterator[Finding]:
    """Bytes of one form of a value are not of a form that is tried before it, or mean the same there."""
    for kind in space:
        for several in (each for codec in kind._codecs for each in alternatives_in(codec)):
            for codec in several.codecs:
                for sample in codec.samples:
                    earlier = several.mistaken(codec, sample)
                    if earlier is not None:
                        yield Finding(
                            "codecs-not-distinct",
                            kind._template.source,
                            f"bytes of {codec.expected} are also {earlier.expected}, which is tried first. "
                            f"Put the codec that reads less before the other",
                            "<secret>" if several.secret else repr(sample),
                        )


def values_round_trip(space: Keyspace) -> Iterator[Finding]:
    """Every codec reads back what it wrote."""
    held = [(kind._template.source, codec) for kind in space for codec in kind._codecs]
    held += [(each._template.source, each.declaration.codec) for each in space.channels]
    for source, codec in held:
        values = codec.samples or _generated(codec)
        if not values:
            yield Finding("codec-without-samples", source, _without_samples(codec))
        for value in values:
            problem = _round_trip(codec, value)
            if problem:
                yield Finding("codec-does-not-round-trip", source, problem, repr(value))


def docstrings_are_there(space: Keyspace) -> Iterator[Finding]:
    """The docstring is the documentation, so there is one."""
    if not space.description.strip():
        yield Finding("missing-description", space.name, "the keyspace has no description")
    for kind in (*space, *space.channels):
        if not (kind.__dict__.get("__doc__") or "").strip():
            yield Finding("missing-docstring", kind._template.source, f"{kind.__name__} has no docstring")


def parts_belong(space: Keyspace) -> Iterator[Finding]:
    """A part has the variables of what it is part of, so that it can be found from it."""
    for kind in space:
        whole = kind._part_of
        if whole is None:
            continue
        if whole._space is not space:
            yield Finding("foreign-part", kind._template.source, f"{whole.__name__} is of another keyspace")
        elif kind._template.variables != whole._template.variables:
            yield Finding(
                "unreachable-part",
                kind._template.source,
                f"its variables differ from those of {whole._template.source!r}, so erase() cannot name it",
            )


def expiries_fit(space: Keyspace) -> Iterator[Finding]:
    """No side of a relation outlives the other, and no set or index lists keys that expired."""
    for link in space.links:
        sides = [] if isinstance(link, Index) else list(link.keys[:2])
        if len({_lifetime(side) for side in sides}) > 1:
            yield Finding(
                "expiries-differ",
                sides[0]._template.source,
                f"{link.name}: its sides expire at different times, so one outlives the other",
                ", ".join(map(_lifetime_shown, sides)),
            )
            continue
        if isinstance(link, OneToOne) and any(_drifts(side) for side in sides):
            yield Finding(
                "expiries-differ",
                sides[0]._template.source,
                f"{link.name}: with jitter, renewed by reads, or for some keys only, one side outlives the "
                f"other. Use expires_in without jitter, counted from a write",
                ", ".join(map(_lifetime_shown, sides)),
            )
        for listed, by in _listings(link):
            yield from _outlived(link, listed, by)


def references_lead_somewhere(space: Keyspace) -> Iterator[Finding]:
    """The targets of required references are of the same keyspace, and reference names are unique."""
    names = [(reference.source, reference.name) for reference in space.references]
    for reference in space.references:
        if reference.required and reference.target._space is not space:
            yield Finding(
                "foreign-reference",
                reference.source._template.source,
                f"{reference.name}: {reference.target.__name__} is of another keyspace",
            )
        if names.count((reference.source, reference.name)) > 1:
            yield Finding(
                "reference-twice",
                reference.source._template.source,
                f"two references of {reference.source.__name__} are called {reference.name!r}",
            )


def invariants_are_checked(space: Keyspace) -> Iterator[Finding]:
    """Each invariant has the function that checks it."""
    for each in space.invariants:
        if not each.checked:
            yield Finding("unchecked-invariant", each.name, "it is declared, but no function checks it")


def slots_are_known(space: Keyspace) -> Iterator[Finding]:
    """Each relation commits in one slot, or is noted as going through the journal on a cluster."""
    for link in space.links:
        if not one_slot(link):
            yield Finding(
                "several-slots",
                link.keys[0]._template.source,
                f"{link.name} spans slots: atomic on one server, through the journal on a cluster",
                severity="note",
            )


def keyspaces_share_no_name(bindings: Sequence[Binding]) -> Iterator[Finding]:
    """No name of one keyspace is a name of another in its database, with the prefixes they are bound to.

    A fallback class yields to the classes of the other keyspaces too, and to their fallbacks it does not.
    """
    # Sorted: the findings are the same in whichever order the keyspaces are given.
    ordered = sorted({each.space: each for each in bindings}.values(), key=lambda b: (b.space.name, b.lead))
    for one, other in itertools.combinations(ordered, 2):
        if one.space.replaced_by is other.space or other.space.replaced_by is one.space:
            continue
        if None not in (one.database, other.database) and one.database != other.database:
            continue
        for mine, theirs in itertools.product(_with_former(one.space), _with_former(other.space)):
            common = mine._template.collision(theirs._template, one.lead, other.lead)
            if common is not None and mine._fallback == theirs._fallback:
                overlapped = f"{other.lead.decode()}{theirs._template.source}"
                yield Finding(
                    "overlapping-keyspaces",
                    f"{one.lead.decode()}{mine._template.source}",
                    f"{one.space.name} overlaps with {overlapped!r} of {other.space.name}: both can make the "
                    f"same name. Bind one of them to another prefix",
                    f"{_shown(common)} is a {mine.__name__} of {one.space.name} and a {theirs.__name__} of "
                    f"{other.space.name}",
                )
            elif common is not None:
                lead, lower, upper = (
                    (one.lead, mine, theirs) if mine._fallback else (other.lead, theirs, mine)
                )
                yield Finding(
                    "precedence",
                    f"{lead.decode()}{lower._template.source}",
                    f"the fallback yields to {upper.__name__} of {upper._space.name}",
                    f"{_shown(common)} is a {upper.__name__}, not a {lower.__name__}",
                    severity="note",
                )


PROOFS: tuple[Callable[[Keyspace], Iterator[Finding]], ...] = (
    names_parse_back,
    precedence_is_needed,
    former_names_are_free,
    values_round_trip,
    former_codecs_are_distinct,
    alternatives_are_distinct,
    docstrings_are_there,
    parts_belong,
    expiries_fit,
    references_lead_somewhere,
    invariants_are_checked,
    slots_are_known,
)


def _with_former(space: Keyspace) -> list[type[Key]]:
    return [each for kind in space for each in (kind, *kind._former)]


def _generated(codec: Codec[Any]) -> list[Any]:
    """Return generated values of the codec's type that it accepts, for a codec that has no samples."""
    accepted = []
    for value in samples_of(codec.python_type):
        with suppress(CodecError):
            codec.encode(value)
            accepted.append(value)
    return accepted


def _without_samples(codec: Codec[Any]) -> str:
    name = type(codec).__name__
    partial = f"Write partial({name}, samples=(…,)) in place of {name}"
    remedy = partial if isinstance(codec, Json | MessagePack) else "Declare `samples` on the codec"
    return f"no value of {codec.expected} can be generated, so its round trip is not proved. {remedy}"


def _round_trip(codec: Codec[Any], sample: Any) -> str | None:
    try:
        back = codec.decode(codec.encode(sample))
    except Exception as error:  # noqa: BLE001  # a codec of the user may raise anything: it is the finding
        return f"{codec.expected} fails on its own sample: {error}"
    return None if back == sample else f"{codec.expected} reads back {back!r}"


def _mistaken(recoding: Recoding, sample: Any) -> str | None:
    data = bytes(recoding.former.encode(sample))
    if is_former(data, recoding):
        return None
    try:
        found = recoding.present.decode(data)
    except CodecError:
        return f"{recoding.former.expected} does not read what it wrote"
    if found == sample:
        return None
    return (
        f"bytes of {recoding.former.expected} are also {recoding.present.expected}, and mean something else"
    )


def _listings(link: Link) -> list[tuple[type[Key], type[Key] | None]]:
    """Return the keys that a relation or an index lists, each with the set that lists it."""
    if isinstance(link, Index):
        return [(link.of, link.by)]
    if isinstance(link, ManyToOne):
        return [(link.forward, link.inverse), (link.forward, link.index)]
    if isinstance(link, OneToOne):
        return [(link.forward, link.index), (link.inverse, link.inverse_index)]
    return [(link.keys[0], link.keys[1]), (link.keys[1], link.keys[0])]


def _outlived(link: Link, listed: type[Key], by: type[Key] | None) -> Iterator[Finding]:
    if by is not None and listed._expiry is not None:
        yield Finding(
            "lists-expired-keys",
            by._template.source,
            f"{link.name}: {listed.__name__} expires, and {by.__name__} still lists it afterwards. Use "
            f"LiveIndex instead, which drops expired keys from the set, or remove the expiry",
            _lifetime_shown(listed),
        )
    elif by is not None and by._expiry is not None:
        yield Finding(
            "expiries-differ",
            by._template.source,
            f"{link.name}: {by.__name__} expires and then misses keys that exist. Remove its expiry",
            f"{_lifetime_shown(by)}, {_lifetime_shown(listed)}",
        )


def _lifetime(kind: type[Key]) -> object:
    expiry = kind._expiry
    return expiry and (expiry.longest_ms, expiry.moment, expiry.ttl_of, expiry.optional)


def _drifts(kind: type[Key]) -> bool:
    expiry = kind._expiry
    return expiry is not None and bool(expiry.jitter or expiry.sliding or expiry.optional)


def _lifetime_shown(kind: type[Key]) -> str:
    if kind._expiry is None:
        return f"{kind.__name__} never expires"
    longest = kind._expiry.longest_ms
    when = kind._expiry.describe() if longest is None or kind._expiry.optional else f"in {longest / 1000:g} s"
    return f"{kind.__name__} expires {when}"


def one_slot(link: Link) -> bool:
    """Return whether all keys of a relation provably live in one slot."""
    return (
        all(kind._template.slot_fixed for kind in link.keys) and len({_tag(kind) for kind in link.keys}) == 1
    )


def _tag(kind: type[Key]) -> tuple[str, ...]:
    return kind._template.tag or kind._template.parts


def _shown(name: bytes) -> str:
    return repr(name.decode("utf-8", "backslashreplace"))


def _assigned(values: dict[str, Any]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in values.items()) or "itself"
