"""The Lua scripts as a TypeScript module: the runtime package runs the very scripts of the library."""

from __future__ import annotations

from keywright.keyspace.script import Script

__all__ = ["SCRIPTS", "runtime_scripts"]

SCRIPTS = ("acquire", "claim_due", "commit", "expire_once", "extend", "release", "settle_due")

_HEAD = """/** Written by scripts/typescript_scripts.py from src/keywright/keyspace/scripts: do not edit. */

export interface Script {
  readonly source: string;
  /** The SHA-1 of the source, by which a server knows it. */
  readonly digest: string;
}
"""


def runtime_scripts() -> str:
    """Return the text of `clients/typescript/src/scripts.ts`."""
    return _HEAD + "".join(map(_constant, SCRIPTS))


def _constant(name: str) -> str:
    script = Script("keywright.keyspace", name)
    source = script.source.decode().replace("\\", "\\\\").replace("`", "\\`").replace("${", "\\${")
    digest = script.digest.decode()
    return f'\nexport const {name.upper()}: Script = {{\n  digest: "{digest}",\n  source: `{source}`,\n}};\n'
