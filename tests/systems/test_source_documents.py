"""Every generated document contains everything that its source document says.

The source documents are kept as tables in `documents`: every key with its type, and its members, inverse or
expiry where the document names them. The tests read the generated Markdown.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from keywright.tools.docs.formats import Format, written
from keywright.tools.plugins import load_model, model_names

TABLES = Path(__file__).parent / "documents"
NAMES = sorted(path.stem for path in TABLES.glob("*.json"))


class Section(NamedTuple):
    """One key of a generated document."""

    key: str
    facts: dict[str, list[str]]
    members: list[list[str]]


def _sections(model: str) -> list[Section]:
    described = load_model(model).described()
    text = written(described, Format.MARKDOWN)
    leads = sorted((space.lead for space in described.spaces), key=len, reverse=True)
    found = []
    for chunk in re.split(r"(?m)^### ", text)[1:]:
        title, _, body = chunk.partition("\n")
        if title.startswith("`"):
            body = re.split(r"(?m)^## ", body)[0]
            found.append(Section(_anonymous(title.strip("`"), leads), _facts(body), _members(body)))
    return found


def _anonymous(template: str, leads: list[str]) -> str:
    bare = next(template.removeprefix(lead) for lead in leads if template.startswith(lead))
    return re.sub(r"<\w+>", "<>", bare)


def _facts(body: str) -> dict[str, list[str]]:
    facts: dict[str, list[str]] = {}
    for title, value in re.findall(r"(?m)^\| ([A-Z][A-Za-z ]+) \| (.*) \|$", body):
        facts.setdefault(title, []).append(value)
    return facts


def _members(body: str) -> list[list[str]]:
    """Return the members of each shape, optional ones with a question mark."""
    tables = re.findall(r"(?m)^\| Member \|.*\n\| ---.*\n((?:\|.*\n?)+)", body)
    rows = [re.findall(r"(?m)^\| `(\w+)` \|.*?\| (yes|no) \|", table) for table in tables]
    return [[name if required == "yes" else f"{name}?" for name, required in shape] for shape in rows]


def _said(section: Section, row: dict[str, Any]) -> list[str]:
    """Return the facts of the table about a key that its section lacks."""
    facts = section.facts
    missing = [] if facts["Redis type"][0].startswith(row["type"]) else [f"type {row['type']}"]
    for title, word in (("Holds", "holds"), ("Expires", "expires"), ("Older version", "version")):
        if word in row and not any(row[word] in value for value in facts.get(title, [])):
            missing.append(f"{word} {row[word]}")
    if "slot" in row and row["slot"] not in re.sub(r"<\w+>", "<>", facts["Slot"][0]):
        missing.append(f"slot {row['slot']}")
    if row.get("secret") and "Secret" not in facts.get("Confidential", [""])[0]:
        missing.append("secret")
    if "inverse" in row:
        relations = [re.sub(r"<\w+>", "<>", value) for value in facts.get("Relation", [])]
        if not any(
            value.startswith(f"{row['relation']}, inverse [`{row['inverse']}`]") for value in relations
        ):
            missing.append(f"inverse {row['inverse']}")
    shapes = [set(shape) for shape in section.members]
    gone = [wanted for wanted in row.get("shapes", ()) if not any(set(wanted) <= shape for shape in shapes)]
    return [*missing, *(f"members {wanted}" for wanted in gone)]


def test_every_source_document_has_a_table_and_a_model() -> None:
    assert NAMES == ["drc", "meetup", "openmod", "registry", "spectacles"]
    assert set(NAMES) <= set(model_names())


@pytest.mark.parametrize("model", NAMES)
def test_the_generated_document_says_all_that_the_source_document_says(model: str) -> None:
    table = msgspec.json.decode((TABLES / f"{model}.json").read_bytes())
    sections = _sections(model)
    missing: list[tuple[str, object]] = []
    for row in table["keys"]:
        candidates = [section for section in sections if section.key == row["key"]]
        gaps = [_said(section, row) for section in candidates]
        if not candidates:
            missing.append((row["key"], "the key"))
        elif [] not in gaps:
            missing.append((row["key"], min(gaps, key=len)))
    assert missing == []


def test_a_missing_member_type_or_inverse_is_noticed() -> None:
    section = next(each for each in _sections("meetup") if each.key == "meetup_event:<>:event_series")
    right = {"type": "string", "relation": "many-to-one", "inverse": "event_series:<>:meetup_events"}
    assert _said(section, right) == []
    wrong = {
        "type": "set",
        "relation": "many-to-one",
        "inverse": "nothing",
        "shapes": [["name"]],
        "holds": "x",
    }
    assert len(_said(section, wrong)) == 4
