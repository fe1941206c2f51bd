"""Inferred references and relations against the declared ones.

A link is a pair of key classes, whatever its direction and kind. Inferred classes stand for the declared
class that most of their keys have. Of the declared links those count whose classes both have keys.

A link that holds in the data and that the schema does not declare counts as wrong, so precision is a lower
bound.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

from benchmarks.agreement import declared_key
from keywright import Binding, Key, Keyspace
from keywright.tools.infer import Inference

__all__ = ["link_measures"]

Pair = frozenset[type[Key]]


def link_measures(
    inference: Inference,
    bindings: Sequence[Binding],
    names: Iterable[bytes],
    found_key: Callable[[bytes], Key | None],
) -> dict[str, float]:
    """Return recall and precision of links; nothing if none is declared."""
    pairs = [(declared_key(name, bindings), found_key(name)) for name in names]
    known = [(type(truth), type(found)) for truth, found in pairs if truth is not None and found is not None]
    votes: dict[str, Counter[type[Key]]] = {}
    for truth, inferred in known:
        votes.setdefault(inferred.__name__, Counter())[truth] += 1
    meant = {name: counted.most_common(1)[0][0] for name, counted in votes.items()}
    present = {truth for truth, _ in known}
    declared = {pair for binding in bindings for pair in _declared(binding.space) if pair <= present}
    found = {
        frozenset((meant[one], meant[other]))
        for link in inference.links
        for one, other in link.edges
        if one in meant and other in meant
    }
    if not declared:
        return {}
    right = len(declared & found)
    return {"links recall": right / len(declared), "links precision": right / len(found) if found else 0.0}


def _declared(space: Keyspace) -> Iterator[Pair]:
    for reference in space.references:
        yield frozenset((reference.source, reference.target))
    for link in space.links:
        parts: dict[str, type[Key]] = vars(link)
        for one, other in (
            *(("of", "by"), ("forward", "inverse")),
            *(("forward", "index"), ("inverse", "inverse_index")),
        ):
            if parts.get(one) is not None and parts.get(other) is not None:
                yield frozenset((parts[one], parts[other]))
