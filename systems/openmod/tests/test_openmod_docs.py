"""The pages of Open Mod: the guide's code runs as pasted, the generated document is current."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple, get_args

import msgspec
import pytest

from invoking import invoke_keywright
from keywright.tools import load_model
from keywright_openmod.actions import LinkAction
from keywright_openmod.errors import MalformedEventError
from keywright_openmod.events import Event, decode_event

DOCS = Path(__file__).parents[1] / "docs"
SOURCE_DOCUMENTS = Path(__file__).parents[4] / "shared" / "seeds"


def test_the_code_of_the_guide_runs_as_pasted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("REDIS_URL", raising=False)
    fenced = (DOCS / "guide.md").read_text().split("```")[1::2]
    blocks = [block.partition("\n")[2] for block in fenced if block.startswith("python\n")]
    script = tmp_path / "pasted.py"
    script.write_text("\n".join(blocks))
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "r/cats_log: u/Mod removed a post from r/cats",
        "recorded  t3_x0",
        "duplicate  None",
        f"LinkExtract(type={LinkAction.REMOVE_LINK!r}, actor='t2_mod', target='t2_ann', link='t3_1')",
        "recorded False",
        "EnforcerBatch(active=0, erased=0, troubles=(), more=False)",
    ]


def test_the_generated_document_is_current() -> None:
    done = invoke_keywright("docs", "openmod", "--check", str(DOCS / "model.md"))
    assert done.exit_code == 0, done.stderr


@pytest.mark.parametrize("event", get_args(Event), ids=lambda event: event.__name__)
def test_the_guide_lists_every_field_of_every_event(event: type[msgspec.Struct]) -> None:
    """A MalformedEventError refers to this section."""
    section = (DOCS / "guide.md").read_text().partition("\n## Events\n")[2].partition("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("| ")]
    assert any(f"`{event.__name__}`" in row for row in rows)
    for field in msgspec.structs.fields(event):
        assert any(re.search(rf"`{field.encode_name}(\.\w+)?`", row) for row in rows), field.encode_name


def test_the_events_of_the_guide_can_be_ingested(tmp_path: Path, redis_url: str) -> None:
    (lines,) = re.findall(r"```json\n(.*?)```", (DOCS / "guide.md").read_text(), re.DOTALL)
    file = tmp_path / "events.jsonl"
    file.write_text(lines)
    done = invoke_keywright("openmod", "ingest", str(file), "--url", redis_url)
    assert done.exit_code == 0, done.stderr
    assert "3 events: 3 recorded." in done.stderr


def test_a_malformed_event_refers_to_the_guide() -> None:
    with pytest.raises(MalformedEventError, match=r"`source`.*systems/openmod/docs/guide\.md#events"):
        decode_event({"type": "PostDelete", "postId": "t3_1"})


def test_every_cited_resolution_exists() -> None:
    anchors = set(re.findall(r'<a id="([^"]+)"', (DOCS / "resolutions.md").read_text()))
    sources = [path.read_text() for path in DOCS.parent.rglob("*.py")]
    cited = {name for source in sources for name in re.findall(r"resolutions\.md#([\w-]+)", source)}
    assert {f"mistake-{number}" for number in range(1, 14)} <= cited
    assert cited <= anchors


class Row(NamedTuple):
    """A row of a table of the source document."""

    table: str
    member: str
    description: str


def source_rows() -> list[Row]:
    """Return the rows that describe a member in words. Rows of `type` list enumeration values instead."""
    (document,) = SOURCE_DOCUMENTS.glob("001_*.txt")
    rows, heading = [], ""
    for line in document.read_text().splitlines():
        if line.startswith("#"):
            heading = line.strip("# ")
        elif found := re.fullmatch(r"\| `(\w+)\??` \|\s*(.*) \|", line):
            rows.append(Row(heading, *found.groups()))
    return [row for row in rows if "Type." not in row.description]


SHAPES = {
    "Audit Hash": "AuditRecord",
    "Link Extract": "LinkExtract",
    "Comment Extracts": "CommentExtract",
    "Ban Extracts": "BanExtract",
    "Mute Extracts": "MuteExtract",
    "Comment": "CachedComment",
    "Post": "CachedPost",
    "User": "CachedUser",
}


@pytest.mark.skipif(not SOURCE_DOCUMENTS.is_dir(), reason="the source documents are not part of a checkout")
def test_every_member_is_described_in_the_words_of_the_source_document() -> None:
    described = {
        (shape.name, member.name): member.doc
        for space in load_model("openmod").described().spaces
        for key in space.keys
        for shape in key.shapes
        for member in shape.members
    }
    rows = source_rows()
    assert len(rows) == 24
    for row in rows:
        found = described[SHAPES[row.table], row.member]
        assert row.description.casefold() in found.casefold(), row
