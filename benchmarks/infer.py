"""Inference against the truth: databases of declared systems and of other software, inferred without them.

For each system: pairwise F1 of the grouping of keys, accuracy of kind, codec and expiry by key, coverage,
recall and precision of references and relations where some are declared, and the number of classes beside the
declared ones; then names a second, memory, a million hostile names and a million hostile values. Names of
systems as arguments narrow it: `python -m benchmarks.infer drc rq`.
"""

from __future__ import annotations

import gc
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from benchmarks.agreement import Score, score_of, stored_in
from benchmarks.inferred_links import link_measures
from benchmarks.measuring import FULL, Effort, Result, Target, Unit, at_least, at_most
from keywright import Binding
from keywright.errors import EngineError
from keywright.testing import RedisServer
from keywright.tools.infer import NameSample, infer
from keywright.tools.plugins import load_model

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))  # the databases and workloads of the tests

from audit_samples import SAMPLES
from foreign.programs import APART
from foreign.projects import Project, bullmq, python_project, workload
from inferred_modules import declared_space, hostile_keys, hostile_names, inferred_server

__all__ = ["measure"]

SHIPPED = ("drc", "spectacles", "registry", "openmod", "meetup")
SYSTEMS = (*SHIPPED, "bookshop", "town")
FOREIGN: dict[str, Callable[[], Project]] = {
    "rq": lambda: python_project("rq", "rq"),
    "celery": lambda: python_project("celery", "celery"),
    "dramatiq": lambda: python_project("dramatiq", "dramatiq"),
    "django": lambda: python_project("django", "django_redis", model="benchmarks.django_site:site"),
    "bullmq": lambda: bullmq(momentary=()),
    "flask-session": lambda: python_project("flask-session", "flask_session"),
    "huey": lambda: python_project("huey", "huey"),
    **{name: partial(APART.__getitem__, name) for name in APART},
}
NAMES = 1_000_000
SPEED_ROUNDS = 3
HOSTILE_KEYS, HOSTILE_VALUES = 4_000, 40
"""Keys of one module, and values of one key."""
ATTEMPTS = 3
"""Programs of others fail at times on a busy machine."""
GOALS = {"F1": 0.95, "kind": 1.0, "codec": 0.95, "expiry": 0.95, "coverage": 0.999}
MEAN_F1 = 0.98
"""The goal for the shipped systems and the programs together."""


def measure(effort: Effort = FULL, chosen: Sequence[str] = (*SYSTEMS, *FOREIGN)) -> Iterator[Result]:
    """Yield a result for each measure of each system, with the goal as the target; then the speed.

    The table of `docs/infer.md` goes to standard error.
    """
    scores: dict[str, Score] = {}
    with RedisServer(tcp=True) as server:
        for name in chosen:
            server.call("FLUSHALL")
            with tempfile.TemporaryDirectory() as folder:
                bindings = _filled(name, server, Path(folder))
            if bindings is None:
                continue
            scores[name] = score = scored(server, bindings)
            for measure, value in score.measures.items():
                goal = GOALS.get(measure)
                target = None if goal is None else at_least(goal)
                yield _result(f"{name} ({score.names:,} keys): {measure}", "share", value, target)
            yield _result(f"{name}: classes", "count", score.inferred, peer="declared", theirs=score.declared)
    sys.stderr.write(table_of(scores))
    means = [each.measures["F1"] for name, each in scores.items() if name in (*SHIPPED, *FOREIGN)]
    if means:
        mean = sum(means) / len(means)
        yield _result(f"mean of {len(means)} systems: F1", "share", mean, at_least(MEAN_F1))
    yield _speed(effort.rounds(SPEED_ROUNDS))
    yield from _memory()
    yield _hostile()
    yield _hostile_values()


def table_of(scores: Mapping[str, Score]) -> str:
    """Return a table in Markdown of the measures that have a goal, by system."""
    lines = [f"| | keys | {' | '.join(GOALS)} | classes / declared |", "|---" * (len(GOALS) + 3) + "|"]
    for name, score in scores.items():
        shown = (_cell(score.measures[unit], goal) for unit, goal in GOALS.items())
        classes = f"{score.inferred} / {score.declared}"
        lines.append(f"| {name} | {score.names:,} | {' | '.join(shown)} | {classes} |")
    return "\n".join(lines) + "\n"


def _cell(value: float, goal: float) -> str:
    shown = "1" if value == 1 else f"{value:.3f}"
    return shown if value >= goal else f"MISSED {shown}"


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
    for attempt in range(ATTEMPTS):
        try:
            _run(project, server, folder)
            break
        except AssertionError as error:
            sys.stderr.write(f"{name} failed: {error}\n")
            if attempt + 1 == ATTEMPTS:
                return None
            server.call("FLUSHALL")
    return [space.bind() for space in load_model(project.model).spaces]


def _run(project: Project, server: RedisServer, folder: Path) -> None:
    with workload(project, server, folder) as load:
        load.wait_ready()
        time.sleep(2)
        load.stop()


def scored(server: RedisServer, bindings: Sequence[Binding]) -> Score:
    """Infer from the server and compare with its declarations, key by key."""
    inference = inferred_server(server.url)
    stored = stored_in(server)  # afterwards: keys that expire in between are not compared
    space = declared_space(inference)
    coverage = inference.matched / inference.names
    score = score_of(stored, bindings, space.find, inferred=len(inference.keys), coverage=coverage)
    return score._replace(
        measures={**score.measures, **link_measures(inference, bindings, stored, space.find)}
    )


def _speed(rounds: int) -> Result:
    names, rates = list(_names(NAMES)), []
    for _ in range(rounds):
        started = time.perf_counter()
        infer(_sampled(names))
        rates.append(NAMES / (time.perf_counter() - started))
    goal = [100_000.0] * rounds
    return Result.of("infer", "names", "ops_per_second", rates, "100,000 a second", goal, at_least(1))


def _names(count: int) -> Iterator[bytes]:
    for n in range(count):
        yield b"user:%d:posts" % n if n % 2 else b"session:%032x" % (n * 7919)


def _sampled(names: Iterable[bytes]) -> NameSample:
    sample = NameSample()
    for name in names:
        sample.add(name)
    return sample


def _memory() -> Iterator[Result]:
    """Yield the peak of memory, in MB, for numbers of names; the goal is twice the first."""
    peaks: list[float] = []
    for count in (NAMES // 100, NAMES // 10, NAMES):
        gc.collect()
        tracemalloc.start()
        infer(_sampled(_names(count)))
        peaks.append(tracemalloc.get_traced_memory()[1] / 1e6)
        tracemalloc.stop()
        yield _result(
            f"memory of {count:,} names",
            "megabytes",
            peaks[-1],
            at_most(1),
            peer="twice that of the fewest",
            theirs=2 * peaks[0],
        )


def _hostile() -> Result:
    """Infer from a million hostile names. The module is parsed, run and proved, or this raises."""
    found = infer(_sampled(hostile_names(NAMES)))
    declared_space(found)
    return _result("templates of hostile names", "count", len(found.keys), peer="names", theirs=found.names)


def _hostile_values() -> Result:
    """Infer from keys with a million hostile values, of all types. Each module is parsed, run and proved."""
    values, templates, seed = 0, 0, 0
    while values < NAMES:
        facts = dict(hostile_keys(HOSTILE_KEYS, HOSTILE_VALUES, seed))
        found = infer(_sampled(facts), facts, show_ids=seed % 2 == 0)
        declared_space(found)
        values += sum(
            len(each.values) + sum(2 * len(fields) for fields in each.fields) for each in facts.values()
        )
        templates += len(found.keys)
        seed += 1
    return _result("templates of hostile values", "count", templates, peer="values", theirs=values)


def _result(
    subject: str,
    unit: Unit,
    value: float,
    target: Target | None = None,
    *,
    peer: str = "the truth",
    theirs: float = 1.0,
) -> Result:
    return Result.of("infer", subject, unit, [value], peer, [theirs], target)


def main() -> None:
    for result in measure(chosen=sys.argv[1:] or (*SYSTEMS, *FOREIGN)):
        met = {True: "met", False: "MISSED", None: ""}[result.met]
        shown = f"{result.ours.value:,.4g} of {result.theirs.value:,.4g}"
        print(f"{result.subject:48} {shown:20} {met}", flush=True)


if __name__ == "__main__":
    main()
