"""The journal's protocol, explored as a model; and the model, compared with the code.

`KEYWRIGHT_JOURNAL_MODEL=large` explores the large settings too, which takes minutes.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator
from typing import Any

import pytest

from keywright import Database
from relations.journal_model import (
    AWAY,
    LARGE,
    SMALL,
    Checker,
    End,
    Protocol,
    Setting,
    Violation,
    Wire,
)

Opener = Callable[..., Database]
Steps = Generator[list[Wire], tuple[Any, ...], Any]

CHOSEN: tuple[Setting, ...] = LARGE if os.environ.get("KEYWRIGHT_JOURNAL_MODEL") == "large" else ()


@pytest.mark.parametrize("setting", [*SMALL, *CHOSEN], ids=lambda setting: setting.name)
def test_every_interleaving_keeps_the_invariants(
    setting: Setting, pytestconfig: pytest.Config, capsys: pytest.CaptureFixture[str]
) -> None:
    explored = Checker(setting).run()
    with capsys.disabled():
        pytestconfig.get_terminal_writer().line(f" {explored}")
    assert explored.ends > 0


def test_a_writer_alone_succeeds() -> None:
    assert Checker(Setting("alone", ("writer",))).run().results == {"done"}


def test_every_result_of_a_writer_is_reached() -> None:
    """Else an invariant would hold because nothing happens."""
    alone = Checker(Setting("", ("writer",), losses=2)).run().results
    assert alone == {"done", "busy", "away", "unknown", "unfinished"}
    assert Checker(Setting("", ("writer", "writer"))).run().results == {"done", "busy", "refused"}


# One mutation for each step of the protocol: left out, out of order, or without its condition.


class WithoutIntent(Protocol):
    def put(self, intent: int, expected: tuple[int, ...]) -> list[Wire]:
        return [wire._replace(extra=(*wire.extra, "unstored")) for wire in super().put(intent, expected)]


class IntentSentAgain(Protocol):
    """As it was until the checker found it: a late copy brings back an intent that was undone."""

    def put(self, intent: int, expected: tuple[int, ...]) -> list[Wire]:
        return [wire._replace(effect="repeatable") for wire in super().put(intent, expected)]


class WithoutPreparation(Protocol):
    def prepare(self, intent: int) -> list[Wire]:
        return []


class PreparationOfOccupiedKeys(Protocol):
    def prepare(self, intent: int) -> list[Wire]:
        return [wire._replace(extra=("occupied",)) for wire in super().prepare(intent)]


class PreparationWithoutChecks(Protocol):
    def prepare(self, intent: int) -> list[Wire]:
        return [wire._replace(extra=("unchecked",)) for wire in super().prepare(intent)]


class PreparationSentAgain(Protocol):
    def prepare(self, intent: int) -> list[Wire]:
        return [wire._replace(effect="repeatable") for wire in super().prepare(intent)]


class PreparationBeforeTheIntent(WithoutIntent):
    def decided(self, number: int, attempt: int, expected: tuple[int, ...]) -> Any:
        yield Protocol.put(self, self.intent_of(number, attempt), expected)
        return (yield from super().decided(number, attempt, expected))


class WithoutDecision(Protocol):
    def commit_intent(self, intent: int) -> Steps:
        return "C"
        yield []


class DecisionOverAnother(Protocol):
    def decide(self, intent: int) -> list[Wire]:
        return [wire._replace(extra=("P", "C", "whatever it is")) for wire in super().decide(intent)]


class DecisionInDoubtTakenForNone(Protocol):
    def commit_intent(self, intent: int) -> Steps:
        [state] = yield self.decide(intent)
        return AWAY if state == "unknown" else state


class DecisionInDoubtNotLookedAt(Protocol):
    """As it was until a review found it: an intent that is found in the journal is decided again."""

    def commit_intent(self, intent: int) -> Steps:
        [state] = yield self.decide(intent)
        if state == "unknown":
            [state] = yield self.look_up(intent)
            if state in ("", AWAY):
                return "unknown"
            [state] = yield self.decide(intent)
        return state


class ErrorAfterDoubt(Protocol):
    """As it was until a review found it: the error of the look-up was raised."""

    def commit_intent(self, intent: int) -> Steps:
        [state] = yield self.decide(intent)
        if state == "unknown":
            [state] = yield self.look_up(intent)
            if state == "P":
                [state] = yield self.decide(intent)
            return state or "unknown"
        return state


class WithoutSharedParts(Protocol):
    def apply_shared(self, intent: int) -> list[Wire]:
        return []


class WithoutExclusiveParts(Protocol):
    def apply_exclusive(self, intent: int) -> list[Wire]:
        return []


class ExclusivePartsFirst(Protocol):
    def apply_shared(self, intent: int) -> list[Wire]:
        return super().apply_exclusive(intent)

    def apply_exclusive(self, intent: int) -> list[Wire]:
        return super().apply_shared(intent)


class AllPartsAtOnce(Protocol):
    def apply_shared(self, intent: int) -> list[Wire]:
        return [*super().apply_shared(intent), *super().apply_exclusive(intent)]

    def apply_exclusive(self, intent: int) -> list[Wire]:
        return []


class AppliedWithoutMarker(Protocol):
    def apply_shared(self, intent: int) -> list[Wire]:
        return [wire._replace(extra=("unmarked",)) for wire in super().apply_shared(intent)]

    def apply_exclusive(self, intent: int) -> list[Wire]:
        return [wire._replace(extra=("unmarked",)) for wire in super().apply_exclusive(intent)]


class MarkerKept(Protocol):
    def apply_exclusive(self, intent: int) -> list[Wire]:
        return [wire._replace(extra=("keep",)) for wire in super().apply_exclusive(intent)]


class WithoutDropping(Protocol):
    def drop_committed(self, intent: int) -> list[Wire]:
        return []


class DroppedFirst(Protocol):
    def finish(self, intent: int) -> Steps:
        yield self.drop_committed(intent)
        yield from super().finish(intent)
        return "ok"


class FailureReportedAfterTheDecision(Protocol):
    """As it was: the error of a node that went away, which advises to call again."""

    def finishing(self, intent: int) -> Any:
        return End("done" if (yield from self.finish(intent)) == "ok" else AWAY, (intent,))


class UndoneWithoutAborting(Protocol):
    def abort(self, intent: int) -> list[Wire]:
        return [Wire("get_intent", intent=intent, effect="read")]


class UndoneAlthoughCommitted(Protocol):
    def undo(self, intent: int) -> Steps:
        yield self.abort(intent)
        yield self.release(intent)
        yield self.drop_aborted(intent)
        return "A"


class WithoutReleasing(Protocol):
    def release(self, intent: int) -> list[Wire]:
        return []


class AbortedNotDropped(Protocol):
    def drop_aborted(self, intent: int) -> list[Wire]:
        return []


class ReleasedAfterDropping(Protocol):
    def release(self, intent: int) -> list[Wire]:
        return super().drop_aborted(intent)

    def drop_aborted(self, intent: int) -> list[Wire]:
        return super().release(intent)


class RefusedAndNotUndone(Protocol):
    def refused(self, number: int, attempt: int, expected: Any, busy: Any, unknown: bool) -> Any:
        return End("refused", (self.intent_of(number, attempt),))
        yield []


class MarkerWithoutIntentKept(Protocol):
    def clear_marker(self, part: int, intent: int) -> list[Wire]:
        return [Wire("get_marker", part, effect="read")]


class MarkerClearedUnseen(Protocol):
    def settle_marker(self, part: int) -> Steps:
        [intent] = yield self.get_marker(part)
        if intent:
            yield self.clear_marker(part, intent)
        return "ok"


class UndecidedFinished(Protocol):
    def settle(self, intent: int, state: str) -> Steps:
        return (yield from self.finish(intent))


class CommittedUndone(Protocol):
    def settle(self, intent: int, state: str) -> Steps:
        yield self.release(intent)
        yield self.drop_committed(intent)
        return "ok"


class LivingTakenForDead(Protocol):
    """Not a fault: a process that is undone by mistake finds out. The clock only saves work."""

    def settle(self, intent: int, state: str) -> Steps:
        if state == "C" or (yield from self.undo(intent)) == "C":
            return (yield from self.finish(intent))
        return "ok"


class ValueReadBeforeTheMarker(Protocol):
    """As it was until a review found it."""

    def settled(self, part: int) -> Steps:
        [value] = yield [Wire("read", part, effect="read")]
        [intent] = yield self.get_marker(part)
        if intent == 0:
            return value
        yield from self.settle_marker(part)
        return None


class ReaderThatDoesNotSettle(Protocol):
    def settled(self, part: int) -> Steps:
        [value] = yield [Wire("read", part, effect="read")]
        return value


class OneScriptOnOccupiedKeys(Protocol):
    def in_one_script(self, part: int, intent: int, expected: tuple[int, ...]) -> list[Wire]:
        return [
            wire._replace(extra=(*wire.extra, "occupied"))
            for wire in super().in_one_script(part, intent, expected)
        ]


FAULTY = [
    kind
    for kind in (*Protocol.__subclasses__(), *WithoutIntent.__subclasses__())
    if kind.__module__ == __name__ and kind is not LivingTakenForDead
]


@pytest.mark.parametrize("mutation", FAULTY, ids=lambda kind: kind.__name__)
def test_the_checker_fails_without_a_step_of_the_protocol(mutation: type[Protocol]) -> None:
    with pytest.raises(Violation):
        _check_all(mutation)


def _check_all(protocol: type[Protocol]) -> None:
    for setting in SMALL:
        Checker(setting, protocol).run()


def test_a_wrong_clock_does_no_harm() -> None:
    setting = next(each for each in SMALL if each.name == "a writer and a recoverer")
    Checker(setting, LivingTakenForDead).run()
