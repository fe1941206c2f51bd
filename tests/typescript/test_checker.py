"""`tsc --strict` accepts right use and rejects wrong use, on exactly the lines that say so."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from keywright.tools.loader import load_keyspace
from keywright.tools.model import Model
from typescript_project import HERE, ROOT, NodeProject, models

TYPING = HERE / "typescript" / "typing"
DECLARED_AND_USED = ('python title="library.py"', "typescript")
MARK = re.compile(r"// E: (TS\d+)$")
REPORTED = re.compile(r"src/(?P<file>[\w.]+)\((?P<line>\d+),\d+\): error (?P<code>TS\d+)")


def test_the_compiler_rejects_exactly_the_marked_lines(tmp_path: Path) -> None:
    project = NodeProject(tmp_path / "checked")
    project.add_runtime()
    for model in models().values():
        project.add_model(model)
    project.add(TYPING / "accept.ts", TYPING / "reject.ts")
    marked = {
        ("reject.ts", number, mark[1])
        for number, line in enumerate((TYPING / "reject.ts").read_text().splitlines(), start=1)
        if (mark := MARK.search(line))
    }

    found = {
        (each["file"], int(each["line"]), each["code"])
        for line in project.refusals()
        if (each := REPORTED.match(line))
    }

    assert len(marked) > 20
    assert found == marked


def test_the_page_compiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (ROOT / "docs" / "typescript.md").read_text()
    declared, used = (re.search(rf"```{name}\n(.*?)```", page, re.DOTALL) for name in DECLARED_AND_USED)
    assert declared is not None
    assert used is not None
    (tmp_path / "page_library.py").write_text(declared[1])
    monkeypatch.syspath_prepend(tmp_path)
    library = load_keyspace("page_library:library")
    project = NodeProject(tmp_path / "page")
    project.add_runtime()
    module = project.add_model(Model("keyspace", (library,)))
    (project.sources / "page.ts").write_text(used[1])

    assert module == "./keyspace.js"
    assert project.refusals() == []


@pytest.mark.parametrize("model", models().values(), ids=lambda model: model.name)
def test_a_module_imports_only_the_runtime_package(model: object, project: NodeProject) -> None:
    name = model.name.replace("-", "_")  # type: ignore[attr-defined]  # a Model
    text = (project.sources / f"{name}.ts").read_text()

    assert set(re.findall(r'^import .* from "(.*)";$', text, re.MULTILINE)) <= {
        "keywright",
        "keywright/messagepack",
    }
