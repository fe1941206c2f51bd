"""`keywright acl`: the access rules of the server for one role."""

from __future__ import annotations

from enum import Enum
from typing import Annotated

import typer

from keywright.cli.output import as_json, echo_exact, echo_json, printable, warn
from keywright.cli.targets import ModelName, PrefixOption, UnprovedOption, proved_model
from keywright.tools.acl import AclRole, AclServer
from keywright.tools.acl import acl as rules_of

__all__ = ["acl"]


class AclFormat(Enum):
    COMMAND = "command"
    ACLFILE = "aclfile"
    JSON = "json"


def acl(
    model: ModelName,
    role: Annotated[AclRole, typer.Option(help="The role of the user.", show_default=False)],
    form: Annotated[
        AclFormat,
        typer.Option("--format", help="ACL SETUSER, a line of an ACL file, or JSON."),
    ] = AclFormat.COMMAND,
    user: Annotated[str | None, typer.Option(help="The user's name, else MODEL-ROLE.")] = None,
    prefix: PrefixOption = None,
    server: Annotated[
        AclServer, typer.Option(help="The oldest server that must understand the rules.")
    ] = AclServer.REDIS_7_0,
    password_hash: Annotated[
        str | None,
        typer.Option(
            metavar="SHA256",
            help="The SHA-256 of the password in hexadecimal, else a placeholder.",
            show_default=False,
        ),
    ] = None,
    scan: Annotated[
        bool, typer.Option("--scan/--no-scan", help="Whether a writer may list names, those of others too.")
    ] = True,
    renew: Annotated[
        bool,
        typer.Option(
            "--renew/--no-renew",
            help="Whether a reader may renew sliding expiries, which lets it expire keys.",
        ),
    ] = False,
    with_secrets: Annotated[
        bool, typer.Option("--with-secrets", help="Whether a reader or auditor may read secrets.")
    ] = False,
    unproved: UnprovedOption = False,
) -> None:
    """Print least-privilege access rules for the keys of a model. Needs no server, and changes nothing.

    A reader may read. It cannot upgrade older data, and renews expiries that slide only with --renew. A
    writer may do all that the model's operations do. An auditor may read and list names. Keys that hold
    secrets are for the writer, unless --with-secrets is given.

    The password is never printed: replace PASSWORD-SHA256, or give --password-hash. Feed the command to the
    server with redis-cli's standard input, which leaves the patterns as they are.

    Examples:
        keywright acl shop.schema:shop --role reader
        keywright acl shop.schema:shop --role writer --format aclfile --user shop
        keywright acl shop.schema:shop --role auditor | redis-cli
    """
    described = proved_model(model, prefix, unproved=unproved).described()
    named = user or f"{described.spaces[0].name}-{role.value}"
    made = rules_of(
        described,
        role,
        user=named,
        prefix=prefix,
        server=server,
        password_hash=password_hash,
        scan=scan,
        renew=renew,
        with_secrets=with_secrets,
    )
    for template in made.exposed:
        warn(
            f"{template} holds secrets, and some of its names match the pattern of another template, so this "
            f"user can read them. Rename one of the templates."
        )
    if form is AclFormat.JSON:
        echo_json(
            as_json(
                {
                    "user": made.user,
                    "role": role.value,
                    "server": server.value,
                    "rules": made.rules(),
                    "exposed": list(made.exposed),
                    "command": made.as_command(),
                }
            )
        )
        return
    # Not wrapped: it is for a server.
    echo_exact(printable(made.as_command() if form is AclFormat.COMMAND else made.as_file_line()))
