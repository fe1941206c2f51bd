"""Inference against the truth: databases of declared systems and of other software, inferred without them.

For each system: pairwise F1 of the grouping of keys, accuracy of kind, codec and expiry by key, coverage, and
the number of classes beside the declared ones; then names a second. Names of systems as arguments narrow it:
`python -m benchmarks.infer drc rq`.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.measuring import Figure, Result
from keywright import Binding, Key
from keywright.engine import connect
from keywright.errors import EngineError
from keywright.keyspace.call import Plain
from keywright.keyspace.kinds import Record, Stream
from keywright.operations import Effect, Operation
from keywright.testing import RedisServer
from keywright.tools.infer import NameSample, infer
from keywright.tools.plugins import load_model

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))  # the databases and workloads of the tests

from audit_samples import SAMPLES
from foreign.projects import Project, bullmq, python_project, workload
from inferred_modules import declared_space, inferred_server

__all__ = ["Score", "measure"]

SYSTEMS = ("drc", "spectacles", "registry", "openmod", "meetup", "bookshop", "town")
FOREIGN = {
    "rq": lambda: python_project("rq", "rq", "rq"),
    "celery": lambda: python_project("celery", "celery", "celery"),
    "dramatiq": lambda: python_project("dramatiq", "dramatiq", "dramatiq"),
    "django": lambda: python_project("django", "django_redis", "cache"),
    "bullmq": lambda: bullmq(momentary=()),
}
NAMES = 1_000_000
GOALS = {"F1": 0.95, "kind": 1.0, "codec": 0.95, "expiry": 0.95, "coverage": 0.999}
_KEYS = Operation("keys", b"KEYS", Effect.READ)
_SAME_KIND = {"counter": "value", "claim": "value", "lease": "value", "due queue": "sorted set"}
_FAMILIES = {
    **dict.fromkeys(("Text", "LogPosition"), "text"),
    **dict.fromkeys(("Int64", "Uint64"), "integer"),
    **dict.fromkeys(("Raw", "Sealed", "SealedIfBound"), "bytes"),
    **dict.fromkeys(("Json", "JsonObject"), "json"),
    **dict.fromkeys(("MessagePack", "GoInt64", "GoRepository"), "messagepack"),
    **dict.fromkeys(("Deflated", "Pickled"), "bytes"),
}
_SEVERAL = {
    "TimeOrEmpty": {"Rfc3339", "text"},
    "IntegerOrPickle": {"integer", "bytes"},
    "JsonOrDeflated": {"json", "bytes", "integer", "text", "Boolean"},
    "EpochFloat": {"Float", "integer"},
    "Float": {"Float", "integer"},
    "EpochMs": {"EpochMs", "integer"},
    "EpochSeconds": {"EpochSeconds", "integer"},
}
"""Codecs of which one form or another is stored: a float may be whole, a time is a number by its size."""


class Score(NamedTuple):
    """The measures of one system, each a share of 1, and the classes."""

    measures: dict[str, float]
    inferred: int
    declared: int
    names: int


def measure(chosen: Sequence[str] = (*SYSTEMS, *FOREIGN)) -> Iterator[Result]:
    """Yield a result for each measure of each system, with the goal as the target; then the speed."""
    with RedisServer(tcp=True) as server:
        for name in chosen:
            server.call("FLUSHALL")
            with tempfile.TemporaryDirectory() as folder:
                bindings = _filled(name, server, Path(folder))
            if bindings is None:
                continue
            score = score_of(server, bindings)
            for unit, value in score.measures.items():
                yield _result(f"{name} ({score.names:,} keys)", unit, value, GOALS[unit])
            yield _result(name, "classes", score.inferred, None, peer="declared", theirs=score.declared)
    yield _speed()


def _filled(name: str, server: RedisServer, folder: Path) -> Sequence[Binding] | None:
    """Fill the server with the data of a system. Return its declarations; None if it is not installed."""
    if name in SAMPLES:
        sample = SAMPLES[name]()
        with sample.open(server.url) as db:
            sample.fill(db)
        return sample.bindings or [space.bind() for space in sample.model.spaces]
    project: Project = FOREIGN[name]()
    try:
        project.find()
    except EngineError as error:
        sys.stderr.write(f"{name} is left out: {error}\n")
        return None
    with workload(project, server, folder) as load:
        load.wait_ready()
        time.sleep(2)
        load.stop()
    return [space.bind() for space in load_model(project.model).spaces]


def score_of(server: RedisServer, bindings: Sequence[Binding]) -> Score:
    """Infer from the server and compare with its declarations, key by key."""
    with connect(server.url) as db:
        names: list[bytes] = db.run(Plain(_KEYS, (b"*",)))
    inference = inferred_server(server.url)
    space = declared_space(inference)
    pairs = [(_declared(name, bindings), type(space.parse(name))) for name in names]
    known = [(truth, found) for truth, found in pairs if truth is not None]
    lasting = {
        truth for name, (truth, _) in zip(names, pairs, strict=True) if server.call("PTTL", name) == -1
    }
    return Score(
        {
            "F1": pairwise_f1(known),
            "kind": _share(known, lambda truth, found: _kind(truth) == _kind(found)),
            "codec": _share(known, _codecs_agree),
            "expiry": _share(known, lambda truth, found: (truth not in lasting) == _expires(found)),
            "coverage": inference.matched / inference.names,
        },
        len(inference.keys),
        len({truth for truth, _ in known}),
        len(names),
    )


def pairwise_f1(groups: Sequence[tuple[object, object]]) -> float:
    """Return the harmonic mean of precision and recall of the pairs of keys that are of one class."""
    both, truth, found = (
        sum(count * (count - 1) // 2 for count in Counter(labels).values())
        for labels in (groups, [label for label, _ in groups], [label for _, label in groups])
    )
    return 2 * both / (truth + found) if truth + found else 1.0


def _declared(name: bytes, bindings: Sequence[Binding]) -> type[Key] | None:
    for binding in bindings:
        if name.startswith(binding.lead):
            for kind in binding.space:
                if kind.parse(name[len(binding.lead) :]) is not None:
                    return kind
    return None


def _share(
    pairs: Sequence[tuple[type[Key], type[Key]]], agree: Callable[[type[Key], type[Key]], float]
) -> float:
    agreed = {pair: agree(*pair) for pair in set(pairs)}
    return sum(agreed[pair] for pair in pairs) / len(pairs) if pairs else 1.0


def _kind(kind: type[Key]) -> str:
    return _SAME_KIND.get(kind.kind, kind.kind)


def _expires(kind: type[Key]) -> bool:
    return kind.declaration.expiry is not None


def _codecs_agree(truth: type[Key], found: type[Key]) -> float:
    """Return the share of stored parts whose codec is of the same family."""
    ours, theirs = _parts(found), _parts(truth)
    seen = [name for name in ours if name in theirs]
    return sum(bool(ours[name] & theirs[name]) for name in seen) / len(ours) if ours else 1.0


def _parts(kind: type[Key]) -> dict[object, set[str]]:
    parts: dict[object, set[str]] = {}
    if issubclass(kind, Record | Stream):
        for shape, _ in kind.declaration.storage.shapes:
            for member in shape.members:
                parts.setdefault(member.stored, set()).update(_families(member.codec))
        return parts
    return {number: _families(codec) for number, codec in enumerate(kind.declaration.codecs)}


def _families(codec: Any) -> set[str]:
    name = type(codec).__name__
    inner = getattr(codec, "inner", None)
    if name in ("Zstd", "SecretOf") and inner is not None:
        return _families(inner)
    if name in ("IdOf", "LiteralOf", "EnumOf"):
        samples = [codec.encode(sample) for sample in codec.samples]
        return {"integer"} if all(sample.lstrip(b"-").isdigit() for sample in samples) else {"text"}
    if name in ("Flag", "Boolean"):
        return {"text", "Boolean"} | ({"integer"} if codec.encode(True).isdigit() else set())
    return _SEVERAL.get(name) or {_FAMILIES.get(name, name)}


def _speed() -> Result:
    names = [b"user:%d:posts" % n if n % 2 else b"session:%032x" % (n * 7919) for n in range(NAMES)]
    sample = NameSample()
    started = time.perf_counter()
    for name in names:
        sample.add(name)
    infer(sample)
    return _result("names a second", "names", NAMES / (time.perf_counter() - started), 1.0, theirs=100_000)


def _result(
    subject: str, unit: str, value: float, target: float | None, *, peer: str = "goal", theirs: float = 1.0
) -> Result:
    ours, other = (Figure(each, each, each) for each in (value, theirs))
    return Result("infer", subject, unit, ours, peer, other, target)


def main() -> None:
    for result in measure(sys.argv[1:] or (*SYSTEMS, *FOREIGN)):
        met = {True: "met", False: "MISSED", None: ""}[result.met]
        shown = f"{result.ours.value:,.4g} of {result.theirs.value:,.4g}"
        print(f"{result.subject:28} {result.unit:10} {shown:20} {met}", flush=True)


if __name__ == "__main__":
    main()
