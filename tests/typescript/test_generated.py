"""The generator of TypeScript, and the scripts of its runtime."""

from __future__ import annotations

from pathlib import Path

import pytest

from invoking import invoke_keywright
from keywright.tools.generators.typescript import runtime_scripts, typescript
from keywright.tools.model import Model
from keywright.tools.schema import keyspaces_from_schema, parsed_schema, schema_of, schema_text
from typescript_project import ROOT, models


def test_the_runtime_has_the_scripts_of_the_library() -> None:
    shipped = (ROOT / "clients/typescript/src/scripts.ts").read_text()

    assert shipped == runtime_scripts(), "write it again: python scripts/typescript_scripts.py"


@pytest.mark.parametrize("model", models().values(), ids=lambda model: model.name)
def test_a_schema_file_gives_the_module_of_its_model(model: Model) -> None:
    read = parsed_schema(schema_text(schema_of(model)).encode(), "file")

    again = typescript(schema_of(Model(read.model, keyspaces_from_schema(read))))

    assert again == typescript(schema_of(model))


def test_the_command_writes_the_module(tmp_path: Path) -> None:
    target = tmp_path / "keyspace.ts"

    done = invoke_keywright("generate", "typescript", "drc", "-o", str(target))

    assert done.exit_code == 0, done.output
    assert target.read_text() == typescript(schema_of(models()["drc"]))


def test_docstrings_become_tsdoc() -> None:
    text = typescript(schema_of(models()["meetup"]))

    assert (
        "/**\n * All currently tracked Meetup events.\n *\n * Its names are `meetup_events`.\n */\n" in text
    )
    assert "  /** Title of the event as it appears on Meetup. */\n  readonly name: string;\n" in text


def test_what_cannot_be_shared_says_why() -> None:
    text = typescript(schema_of(models()["every_kind"]))

    assert (
        "Its values are not read or written from TypeScript: its entries have an expiry of their own." in text
    )
    assert "// Moods (mood:<raw>) is left out: its names are not UTF-8.\n" in text
    assert "// The relation Customers in Known is left out: Customers cannot be written.\n" in text
