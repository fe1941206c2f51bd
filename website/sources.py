"""The pages of the site: where each file of the repository is on it, and the files that pages link to."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path
from urllib.parse import unquote

from website.diagrams import drawn
from website.markdown import as_site

__all__ = ["ROOT", "Sources"]

ROOT = Path(__file__).parents[1]
# Pages outside docs/, by their path on the site.
ELSEWHERE = {
    "CHANGELOG.md": "project/changelog.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "SECURITY.md": "project/security-policy.md",
    "benchmarks/README.md": "project/benchmarks.md",
    "deploy/README.md": "project/deploy.md",
    "demo/README.md": "systems/demo/index.md",
    "demo/docs/up.md": "systems/demo/up.md",
    "soak/README.md": "project/soak.md",
}
LANGUAGES = {
    "lua": "lua",
    "py": "python",
    "toml": "toml",
    "json": "json",
    "yaml": "yaml",
    "yml": "yaml",
    "sh": "sh",
}
LARGEST_SOURCE = 200_000
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:")


class Sources:
    """Writes the Markdown of the site into a folder, with every link to where its target is there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.places = dict(_places())
        self._linked: dict[Path, str] = {}

    def write(self) -> None:
        """Write every page, every picture, and a page for each file of the repository that is linked."""
        for source, place in self.places.items():
            if source == ROOT:
                continue
            target = self.folder / place
            target.parent.mkdir(parents=True, exist_ok=True)
            if source.suffix == ".md":
                target.write_text(self._page(source, place), "utf-8")
            else:
                shutil.copyfile(source, target)
        for source, place in self._linked.items():
            self.add(place, _listing(source))

    def add(self, place: str, text: str) -> None:
        """Write a page that is not in the repository."""
        target = self.folder / place
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, "utf-8")

    def _page(self, source: Path, place: str) -> str:
        def moved(link: str) -> str:
            return self._moved(link, source, place)

        try:
            return as_site(drawn(source.read_text("utf-8"), source), moved)
        except ValueError as error:
            raise ValueError(f"{source.relative_to(ROOT)}: {error}") from error

    def _moved(self, link: str, source: Path, place: str) -> str:
        if _SCHEME.match(link) or link.startswith("#"):
            return link
        path, hash_sign, anchor = unquote(link).partition("#")
        target = (source.parent / path).resolve()
        found = (
            self.places.get(ROOT if target == ROOT / "README.md" else target)
            or self.places.get(target / "README.md")
            or self._source(target)
        )
        return os.path.relpath(found, Path(place).parent) + hash_sign + anchor

    def _source(self, target: Path) -> str:
        """Return the place of a file or a folder of the repository that is not a page."""
        if not target.exists():
            raise ValueError(f"there is no {target.relative_to(ROOT)}")
        return self._linked.setdefault(target, f"source/{target.relative_to(ROOT).as_posix()}.md")


def _places() -> dict[Path, str]:
    found = {
        path: path.relative_to(ROOT / "docs").as_posix()
        for path in sorted((ROOT / "docs").rglob("*"))
        if path.is_file() and path.suffix in (".md", ".png", ".svg", ".toml")
    }
    found |= {ROOT / path: place for path, place in ELSEWHERE.items()}
    found[ROOT] = (
        "index.md"  # links to the folder or to its README.md, which the first page of the site replaces
    )
    for path in sorted(ROOT.glob("systems/*/**/*.md")):
        system, *inner = path.relative_to(ROOT / "systems").parts
        inner = [part for part in inner if part != "docs"]
        found[path] = "/".join(["systems", system, *inner[:-1], inner[-1].replace("README.md", "index.md")])
    return found


def _listing(source: Path) -> str:
    """Return a page with a file or the names in a folder; searches do not find it."""
    name = source.relative_to(ROOT).as_posix()
    head = f"---\nsearch:\n  exclude: true\nhide:\n  - toc\n---\n\n# {name}\n\n"
    if source.is_dir():
        names = sorted(f"{each.name}/" if each.is_dir() else each.name for each in source.iterdir())
        shown = [each for each in names if not each.startswith((".", "__pycache__"))]
        return f"{head}A folder of the repository.\n\n" + "".join(f"- `{each}`\n" for each in shown)
    text = source.read_text("utf-8")[:LARGEST_SOURCE]
    ticks = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
    language = LANGUAGES.get(source.suffix.removeprefix("."), "text")
    return f"{head}A file of the repository.\n\n{ticks}{language}\n{text.rstrip()}\n{ticks}\n"
