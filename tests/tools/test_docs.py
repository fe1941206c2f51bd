"""Documents: whole, linked, escaped, self-contained, and the same every time."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import msgspec
import pytest

from keywright import Id, Keyspace, Record, Set, Value, many_to_one
from keywright.errors import UsageError
from keywright.tools.diagram.entities import schema_of
from keywright.tools.docs.asyncapi import ChannelParameter, MessageChannel, ProgramChannels, asyncapi
from keywright.tools.docs.formats import Format, is_current, written
from keywright.tools.docs.mermaid import mermaid
from keywright.tools.model import Model, ModelDescription
from keywright.tools.plugins import load_model, model_names

nasty = Keyspace("nasty<script>alert(1)</script>", "Breaks | tables, *stars* and <b>HTML</b>, `code|bar`.")


class Shape(msgspec.Struct):
    """<img src=x onerror=alert(1)>"""

    first: str
    """A | bar and a `tick`."""


class Nasty(Record[Shape], key=r"na|sty:\[x\]*&:<id>", space=nasty):
    """</style><script>alert(2)</script> & "quotes" 'too'."""

    id: Id


class Parent(Value[Id], key="child:<child>:parent", space=nasty):
    """The parent."""

    child: Id


class Children(Set[Id], key="parent:<parent>:children", space=nasty):
    """The children."""

    parent: Id


family = many_to_one(Parent, inverse=Children)


@pytest.fixture
def hostile() -> ModelDescription:
    return Model("nasty", (nasty,)).described()


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta", "wbr", "img", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def _parsed(text: str) -> _Tags:
    parser = _Tags()
    parser.feed(text)
    assert parser.open == []
    return parser


@pytest.mark.parametrize("model", model_names())
def test_every_link_of_a_document_leads_somewhere(model: str) -> None:
    described = load_model(model).described()
    text = written(described, Format.MARKDOWN)
    anchors = re.findall(r'<a id="([^"]+)">', text)
    assert len(anchors) == len(set(anchors))
    assert set(re.findall(r"\]\(#([^)]+)\)", text)) <= set(anchors)
    tags = _parsed(written(described, Format.HTML)).tags
    ids = [values["id"] for _, values in tags if "id" in values]
    assert len(ids) == len(set(ids))
    links = {values["href"] for tag, values in tags if tag == "a"}
    assert links <= {f"#{each}" for each in ids}


@pytest.mark.parametrize("form", Format)
def test_a_document_is_the_same_every_time(form: Format, hostile: ModelDescription) -> None:
    assert written(hostile, form) == written(Model("nasty", (nasty,)).described(), form)


def test_html_holds_no_script_and_nothing_to_load(hostile: ModelDescription) -> None:
    for model in (hostile, load_model("meetup").described()):
        text = written(model, Format.HTML)
        parsed = _parsed(text)
        names = {tag for tag, _ in parsed.tags}
        assert not names & {"script", "img", "link", "iframe", "object", "embed", "form"}
        attributes = {name for _, values in parsed.tags for name in values}
        assert not attributes & {"src", "srcset", "onclick", "onerror", "onload", "style", "data"}
        assert not re.search(r"url\(|@import|https?://", text)
        assert "default-src 'none'" in text


def test_html_has_the_diagram_for_wide_screens_and_for_phones() -> None:
    text = written(load_model("drc").described(), Format.HTML)
    classes = re.findall(r'<svg class="([^"]*)"', text)
    boxes = [len(re.findall("data-box=", drawing)) for drawing in text.split("<svg ")[1:]]
    assert classes == ["diagram large", "diagram narrow"]
    assert boxes == [38, 38]
    assert "(max-width: 560px) { .diagram { display: none; } .diagram.narrow { display: block; } }" in text


def test_html_escapes_declared_text(hostile: ModelDescription) -> None:
    text = written(hostile, Format.HTML)
    assert "&lt;script&gt;alert(2)&lt;/script&gt; &amp; &quot;quotes&quot;" in text
    assert "<title>Data model: nasty</title>" in text
    assert "&lt;img src=x onerror=alert(1)&gt;" in text


def test_markdown_cells_keep_their_bars_and_markup(hostile: ModelDescription) -> None:
    text = written(hostile, Format.MARKDOWN)
    assert r"Breaks \| tables, \*stars\* and \<b\>HTML\</b\>, `code|bar`." in text
    for row in (line for line in text.splitlines() if line.startswith("| `first`")):
        assert len(re.split(r"(?<!\\)\|", row)) == 6
    assert r"[`na\|sty:\[x\]*&:<id>`]" in text


def test_mermaid_has_an_entity_for_each_key_and_a_line_for_each_relation_and_reference() -> None:
    text = mermaid(schema_of(load_model("meetup").described().spaces))
    assert '"SeriesOfEvent" }o--o| "SeriesEvents" : "many-to-one"' in text
    assert '"EventGuests" }o..o| "MeetupEvent" : "event"' in text
    assert '"DiscordUserOfMeetupUser" }o--|| "MeetupUsers" : "index"' in text
    assert 'record key "meetup_event:\u2039event\u203a"' in text


def test_mermaid_gets_no_character_it_could_take_for_its_own(hostile: ModelDescription) -> None:
    text = mermaid(schema_of(hostile.spaces))
    assert text.startswith("erDiagram\n")
    assert '"Parent" }o--o| "Children" : "many-to-one"' in text
    assert 'record key "na|sty:\uff3c[x\uff3c]*&:\u2039id\u203a"' in text
    assert all(line.count('"') % 2 == 0 for line in text.splitlines())


def test_boxes_and_lines_of_the_drawing_lead_to_their_descriptions() -> None:
    text = written(load_model("drc").described(), Format.HTML)
    assert '<a class="box" data-box="Presence@drc" href="#drc-Presence">' in text
    assert re.search(
        r'<a class="wire reference" data-from="PresenceIndex@drc-private" [^>]*'
        r'data-name="presences" href="#drc-private-PresenceIndex" tabindex="-1">',
        text,
    )
    assert '<td data-title="By">presences</td>' in text


def test_json_is_the_description(hostile: ModelDescription) -> None:
    assert msgspec.json.decode(written(hostile, Format.JSON), type=ModelDescription) == hostile


def test_a_committed_document_is_current_until_the_declaration_changes(
    tmp_path: Path, hostile: ModelDescription
) -> None:
    text = written(hostile, Format.MARKDOWN)
    committed = tmp_path / "nasty.md"
    assert not is_current(text, committed)
    committed.write_bytes(text.replace("\n", "\r\n").encode())
    assert is_current(text, committed)
    committed.write_text(text.replace("The parent.", "The mother."))
    assert not is_current(text, committed)
    with pytest.raises(UsageError, match="cannot be read"):
        is_current(text, tmp_path)


def test_a_guarantee_stands_once_with_the_keys_that_give_it() -> None:
    text = written(load_model("openmod").described(), Format.MARKDOWN)
    assert text.count("A claim hides a member by moving its time") == 1
    assert "Written whole in one transaction" in text


def test_asyncapi_refers_only_to_its_own_definitions() -> None:
    events = MessageChannel(
        "events",
        "{event}",
        "Events.",
        "send",
        "Event",
        {"type": "object"},
        {"event": ChannelParameter("Its name.", ("A",))},
    )
    described = ProgramChannels("Program", "What it does.", "1.0", "group", "application/json", (events,))
    document = msgspec.json.decode(asyncapi(described))
    assert document["asyncapi"] == "3.0.0"
    references = re.findall(r'"\$ref":\s*"#/([^"]+)"', asyncapi(described))
    assert len(references) == 3
    for reference in references:
        place = document
        for step in reference.split("/"):
            place = place[step]
    assert document["operations"]["sendEvent"]["action"] == "send"
    assert document["channels"]["events"]["parameters"]["event"]["enum"] == ["A"]
