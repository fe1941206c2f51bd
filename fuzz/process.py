"""`python -m fuzz.process MODULE [libFuzzer's arguments]`: the process in which one target is fuzzed."""

from __future__ import annotations

import importlib
import sys

import atheris  # type: ignore[import-untyped]

INSTRUMENTED = ["keywright", "keywright_messaging", "keywright_discord", "keywright_registry"]


def main(module: str, *arguments: str) -> None:
    with atheris.instrument_imports(include=INSTRUMENTED):
        one_input = importlib.import_module(module).one_input
    atheris.Setup([sys.argv[0], *arguments], one_input)
    atheris.Fuzz()


if __name__ == "__main__":
    main(*sys.argv[1:])
