"""`keywright recover`: the commits across slots that some process left behind, and those set aside."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Annotated

import typer

from keywright.cli.output import UNCHANGED, as_json, echo, echo_json
from keywright.cli.targets import (
    EmbeddedOption,
    ModelName,
    PrefixOption,
    UrlOption,
    bindings_of,
    one_part,
    proved_model,
    server_url,
)
from keywright.engine import Database, connect
from keywright.errors import UsageError
from keywright.keyspace.commits.recovery import Abandoned, Recovered, abandoned, discard_intent
from keywright.keyspace.commits.recovery import recover as recovered
from keywright.tools.layout import Line, Meaning
from keywright.tools.model import Model

__all__ = ["recover"]


class RecoverFormat(Enum):
    TEXT = "text"
    JSON = "json"


def recover(
    model: ModelName,
    url: UrlOption = None,
    embedded: EmbeddedOption = None,
    prefix: PrefixOption = None,
    remove: Annotated[
        list[str] | None,
        typer.Option(metavar="INTENT", help="Remove an intent that is set aside."),
    ] = None,
    form: Annotated[
        RecoverFormat, typer.Option("--format", help="How to print: for people, or for programs.")
    ] = RecoverFormat.TEXT,
    yes: Annotated[bool, typer.Option("--yes", help="Do it. Else it is only listed.")] = False,
) -> None:
    """Finish or undo commits that a process left behind on a cluster. Changes nothing without --yes.

    An intent that is malformed, or asks for more than its keyspace may do, is set aside: it is never carried
    out, and the keys with its marker cannot be written by commits. After its removal they can; audit the
    model then, since its commit may have been applied in part.

    Exits with 0 when nothing is left to do, 1 when something is, 2 for a wrong invocation, 3 when it could
    not run.

    Examples:
        keywright recover shop.schema:shop --url redis://localhost:7000
        keywright recover shop.schema:shop --yes
    """
    target = server_url(url, embedded)
    loaded = proved_model(model, prefix)
    loaded = one_part(loaded, target).model
    with connect(target, *bindings_of(loaded.spaces, prefix)) as db:
        left = _recovered(db, loaded, remove or [], form) if yes else _listed(db, loaded, form)
    if left:
        raise typer.Exit(1)


def _recovered(db: Database, model: Model, remove: Sequence[str], form: RecoverFormat) -> bool:
    for intent in remove:
        if not any(db.run(discard_intent(space, intent)) for space in model.spaces):
            raise UsageError(f"{model.name} has no intent {intent!r}. `keywright recover` lists them.")
        if form is RecoverFormat.TEXT:
            echo(f"removed {intent}")
    done: Recovered = db.run(recovered(*model.spaces))
    if form is RecoverFormat.JSON:
        aside = [str(error) for error in done.set_aside]
        counts = {**done._asdict(), "set_aside": aside, "removed": list(remove)}
        echo_json(as_json({"model": model.name, "applied": True, **counts}))
        return bool(done.waiting or aside)
    echo(f"{model.name}: {done.finished} finished, {done.undone} undone, {done.waiting} too young to judge")
    echo(*(_aside(error) for error in done.set_aside))
    return bool(done.waiting or done.set_aside)


def _listed(db: Database, model: Model, form: RecoverFormat) -> bool:
    found: list[Abandoned] = db.run(abandoned(*model.spaces))
    sound = [each for each in found if each.fault is None]
    decided = sum(each.state == "C" for each in sound)
    if form is RecoverFormat.JSON:
        aside = [str(each.fault) for each in found if each.fault is not None]
        counts = {"to_finish": decided, "to_undo": len(sound) - decided, "set_aside": aside}
        echo_json(as_json({"model": model.name, "applied": False, **counts}))
        return bool(found)
    echo(f"{model.name}: {decided} to finish, {len(sound) - decided} to undo unless they are still at work")
    echo(*(_aside(each.fault) for each in found if each.fault is not None))
    if sound:
        echo(UNCHANGED)
    return bool(found)


def _aside(fault: object) -> Line:
    return Line(Meaning.WARNING("set aside:"), f" {fault}", hang=2)
