"""Writes the Lua scripts of the library into the TypeScript runtime: python scripts/typescript_scripts.py."""

from pathlib import Path

from keywright.tools.generators.typescript import runtime_scripts

if __name__ == "__main__":
    target = Path(__file__).parents[1] / "clients/typescript/src/scripts.ts"
    target.write_text(runtime_scripts(), encoding="utf-8")
