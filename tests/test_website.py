"""The documentation site builds without a warning, has every page and public name, and fetches nothing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.main import get_command
from website.anchors import slug
from website.builder import BuildError, build, generate
from website.markdown import as_site, links_in
from website.navigation import navigation, paths_in
from website.reference.python import documented, undocumented
from website.sources import ROOT, Sources

import keywright
from keywright.cli import app
from keywright.tools.audit.findings import CODES


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a site that was built, which takes some seconds: once."""
    folder = tmp_path_factory.mktemp("website")
    build(folder)
    return folder


def test_every_page_of_the_documentation_is_in_the_navigation(built: Path) -> None:
    pages = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    listed = list(paths_in(navigation(built / "pages")))
    assert pages - set(listed) == set()
    assert len(listed) == len(set(listed))


def test_every_page_of_the_navigation_is_built(built: Path) -> None:
    listed = paths_in(navigation(built / "pages"))
    pages = [re.sub(r"README$", "index", path.removesuffix(".md")) for path in listed]
    assert [page for page in pages if not (built / "site" / f"{page}.html").is_file()] == []


def test_every_public_name_has_a_docstring() -> None:
    assert undocumented() == []


def test_every_name_that_users_import_is_on_a_page_of_the_reference(built: Path) -> None:
    text = "".join(page.read_text() for page in (built / "site/reference/python").glob("*.html"))
    assert [name for name in keywright.__all__ if f'id="{name}"' not in text] == []
    assert {name for names in documented().values() for name, _ in names} >= set(keywright.__all__)


def test_every_command_and_every_option_is_in_the_reference(built: Path) -> None:
    program = get_command(app)
    context = program.make_context("keywright", [], resilient_parsing=True)
    missing = []
    for name in program.list_commands(context):  # type: ignore[attr-defined]  # a group
        page = (built / "pages/reference/commands" / f"{name}.md").read_text()
        command = program.get_command(context, name)  # type: ignore[attr-defined]
        options = [option for each in command.params for option in each.opts if option.startswith("--")]
        missing += [
            f"{name} {option}"
            for option in options
            if not re.search(rf"^`[^`\n]*(?<![\w-]){option}(?![\w-])", page, re.MULTILINE)
        ]
    assert missing == []


def test_every_finding_has_its_page_on_the_site(built: Path) -> None:
    assert [code for code in CODES if not (built / "site/findings" / f"{code}.html").is_file()] == []


def test_the_site_fetches_nothing_from_elsewhere(built: Path) -> None:
    fetched = re.compile(
        r'<(?:script|img|source|iframe|link(?! rel="canonical"))\b[^>]*(?:src|srcset|href)="?(https?:)?//'
    )
    assert [str(page) for page in (built / "site").rglob("*.html") if fetched.search(page.read_text())] == []


def test_the_search_needs_no_server(built: Path) -> None:
    assert "many_to_one" in (built / "site" / "search.js").read_text()


def test_language_models_find_every_page(built: Path) -> None:
    overview = (built / "site" / "llms.txt").read_text()
    listed = re.findall(r"^- \[[^\]]+\]\(([^)]+)\)", overview, re.MULTILINE)
    assert [page for page in listed if not (built / "site" / page).is_file()] == []
    assert len(listed) > 80
    assert "class Lease" in (built / "site" / "llms-full.txt").read_text()


def test_a_link_that_leads_nowhere_fails_the_build(tmp_path: Path) -> None:
    (tmp_path / "pages").mkdir()
    (tmp_path / "pages" / "index.md").write_text("# Home\n\n[a](nowhere.md)\n")
    with pytest.raises(BuildError, match=r"nowhere\.md|does not exist"):
        generate(tmp_path, ["index.md"])


def test_an_anchor_that_does_not_exist_fails_the_build(tmp_path: Path) -> None:
    (tmp_path / "pages").mkdir()
    (tmp_path / "pages" / "index.md").write_text("# Home\n\n[a](#nowhere)\n")
    with pytest.raises(BuildError, match="nowhere"):
        generate(tmp_path, ["index.md"])


def test_a_page_that_the_navigation_lists_and_does_not_exist_is_refused(tmp_path: Path) -> None:
    (tmp_path / "navigation.toml").write_text('[[section]]\npages = ["nowhere.md"]\n')
    with pytest.raises(ValueError, match=r"lists nowhere\.md"):
        navigation(tmp_path)


def test_a_folder_of_the_navigation_has_the_order_of_its_index(tmp_path: Path) -> None:
    (tmp_path / "howto").mkdir()
    (tmp_path / "navigation.toml").write_text('[[section]]\ntitle = "Learn"\npages = ["howto/", "new*.md"]\n')
    for name, text in {"README": "# How-to\n\n[b](b.md)", "a": "# A", "b": "# The `b`", "c": "# C"}.items():
        (tmp_path / "howto" / f"{name}.md").write_text(text)
    listed = [
        {"How-to": "howto/README.md"},
        {"The b": "howto/b.md"},
        {"A": "howto/a.md"},
        {"C": "howto/c.md"},
    ]
    assert navigation(tmp_path) == [{"Learn": listed}]


def test_links_follow_their_targets_and_code_stays_as_it_is() -> None:
    page = '[a](x.md#y) `[b](x.md)`\n\n```python title="a.py" replace\n[c](x.md)\n```\n<img src="x.md">\n'
    moved = as_site(page, lambda link: f"moved/{link}")
    assert moved == (
        '[a](moved/x.md#y) `[b](x.md)`\n\n```python title="a.py"\n[c](x.md)\n```\n<img src="moved/x.md">\n'
    )
    assert links_in(page) == ["x.md#y", "x.md"]


def test_an_alert_of_github_is_a_box_of_the_site() -> None:
    assert as_site("> [!NOTE]\n> One\n> two.\n\nText", str) == "!!! note\n\n    One\n    two.\n\nText"


def test_anchors_are_those_of_github() -> None:
    assert slug("What is `kept`, and what's not?") == "what-is-kept-and-whats-not"


def test_a_file_of_the_repository_that_a_page_links_to_is_a_page(tmp_path: Path) -> None:
    Sources(tmp_path).write()
    assert "class Database" in (tmp_path / "source/src/keywright/engine/database.py.md").read_text()
