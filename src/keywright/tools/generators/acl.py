"""An ACL file with a least-privilege user for each role."""

from __future__ import annotations

from keywright.errors import UsageError
from keywright.tools.acl import AclRole, AclServer, acl
from keywright.tools.generators.generator import Generation, Generator

__all__ = ["GENERATOR"]


def _generate(generation: Generation) -> str:
    server = generation.options.get("server", AclServer.REDIS_7_0.value)
    known = [each.value for each in AclServer]
    if server not in known:
        raise UsageError(f"{server!r} is not a server that rules are for. Use one of {', '.join(known)}.")
    described = generation.described
    first = described.spaces[0].name
    lines = [
        acl(described, role, user=f"{first}-{role.value}", server=AclServer(server)).as_file_line()
        for role in AclRole
    ]
    return "\n".join(lines) + "\n"


GENERATOR = Generator(
    "acl",
    "an ACL file with a reader, a writer and an auditor; replace PASSWORD-SHA256 in each line",
    _generate,
    {"server": "the oldest server that must understand the rules: 6.2, 7.0, 7.4 or 8.4"},
)
