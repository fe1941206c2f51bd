"""`keywright generate`: files for other programs and languages, made from a model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from keywright.cli.files import write_file
from keywright.cli.output import echo, echo_exact
from keywright.cli.targets import UnprovedOption, proved_model
from keywright.errors import UsageError
from keywright.tools.audit.budgets import parse_budget
from keywright.tools.generators import Generation, generator_summaries, load_generator
from keywright.tools.lock import read_lock
from keywright.tools.model import Model
from keywright.tools.schema import keyspaces_from_schema

__all__ = ["generate"]


def generate(
    generator: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="What to make. Without it: list all.", show_default=False),
    ] = None,
    model: Annotated[
        str | None,
        typer.Argument(
            metavar="MODEL",
            help="A model, as for `keywright check`, or a schema file that ends with .json.",
            show_default=False,
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The file to write, else standard output.")
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="An option of the generator.", show_default=False),
    ] = None,
    max_bytes: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TEMPLATE=SIZE", help="A budget of a template, or of * for all.", show_default=False
        ),
    ] = None,
    unproved: UnprovedOption = False,
) -> None:
    """Write a file for other programs or languages from a model. Needs no server.

    Without NAME it lists the generators: those of Keywright, and those of installed distributions. The same
    declaration always gives the same file, so it can be committed.

    Exits with 2 when the generator or the model is not known, or cannot make such a file.

    Examples:
        keywright generate
        keywright generate schema shop.schema:shop -o shop.json
        keywright generate prometheus shop.schema:shop --max-bytes 'cart:<user>=512MB'
        keywright generate redis-exporter shop.json -o exporter.env
    """
    if generator is None:
        _list()
        return
    chosen = load_generator(generator)
    if model is None:
        raise UsageError(f"{generator} needs a model. Write keywright generate {generator} MODEL.")
    generation = Generation(
        _model(model, unproved=unproved),
        dict(map(_pair, option or ())),
        tuple(map(parse_budget, max_bytes or ())),
    )
    text = chosen.run(generation)
    if output is None:
        echo_exact(text, nl=False)
    else:
        write_file(output, text)


def _list() -> None:
    found = generator_summaries()
    width = max(map(len, found))
    echo(*(f"{name:<{width}}  {summary}" for name, summary in found.items()))


def _model(name: str, *, unproved: bool) -> Model:
    if not name.endswith(".json"):
        return proved_model(name, unproved=unproved)
    schema = read_lock(Path(name)).schema
    if schema is None:
        raise UsageError(
            f"{name} is of a former format, which has words only. Write it again from the model."
        )
    return Model(schema.model, keyspaces_from_schema(schema))


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise UsageError(f"--option must be NAME=VALUE, got {text!r}.")
    return name, value
