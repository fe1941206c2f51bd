"""Build the documentation site into build/site: `make docs`, or `python -m website [FOLDER]`."""

from __future__ import annotations

import argparse
from pathlib import Path

from website.builder import build
from website.sources import ROOT


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "build")
    folder = parser.parse_args().folder
    print(f"{build(folder)} pages: open {folder / 'site' / 'index.html'}")


if __name__ == "__main__":
    main()
