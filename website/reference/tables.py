"""Pages made from declarations: the rules of `check`, addresses of servers, and configuration."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator, Mapping
from enum import Enum
from importlib import import_module
from typing import Any, get_type_hints

import griffe
import msgspec

from keywright.engine.address import parse_address
from keywright.keyspace.proof import rules
from website.sources import ROOT

__all__ = ["table_pages"]

URLS = {
    "redis://localhost": "a server on port 6379, database 0",
    "redis://user:password@host:6379/2": "with user, password, port and database",
    "rediss://host:6380": "with TLS; `valkey://` and `valkeys://` are the same as `redis://` and `rediss://`",
    "unix:///run/redis.sock?db=2": "a unix socket",
    "redis+cluster://host:7000": "a cluster, of which any node is given; `rediss+cluster://` with TLS",
    "redis+sentinel://host:26379,other:26379/service/0": "the primary that the sentinels of a service report",
}
VARIABLES = {
    "REDIS_URL": (
        "keywright.engine.factory",
        "The server, where no URL is given; without it `connect()` starts an embedded server.",
    ),
    "KEYWRIGHT_SEAL_KEYS": (
        "keywright.keyspace.codecs.keyring",
        "The keys of sealed values, for commands and `Keyring.from_env`.",
    ),
    "KEYWRIGHT_SERVER": (
        "keywright.engine.embedded",
        "The server program that is started for embedded servers and for tests.",
    ),
    "KEYWRIGHT_EXPLORER_TOKEN": ("keywright.cli.explore", "The token that the explorer asks for."),
    "KEYWRIGHT_TEST_VERSIONS": (
        "keywright.testing.versions",
        "The versions of servers on which a test run must be; another one fails it.",
    ),
}
SERVICES = {
    "Gateway": "keywright_discord.gateway.configuration",
    "Open Mod": "keywright_openmod.service.configuration",
    "Registry": "keywright_registry.service.configuration",
    "Meetup": "keywright_meetup.service.configuration",
}


def table_pages() -> dict[str, str]:
    """Return the pages by their place on the site."""
    return {
        "reference/rules.md": "\n".join(_rules()),
        "reference/urls.md": "\n".join(_urls()),
        "reference/configuration.md": "\n".join(_configuration()),
    }


def _rules() -> Iterator[str]:
    yield "# Rules of check\n"
    yield "What [`keywright check`](commands/check.md) proves of a keyspace, and the findings of each rule. "
    yield "A note does not fail a check.\n"
    for run in (*rules.PROOFS, rules.keyspaces_share_no_name):
        yield f"## {run.__name__.replace('_', ' ').capitalize()}\n"
        yield f"{inspect.getdoc(run)}\n"
        found = dict(_findings(run))
        if found:
            yield "| finding | level |\n|---|---|"
            yield from (f"| `{code}` | {level} |" for code, level in found.items())
            yield ""
    yield "A declaration that is not valid is refused when its module is imported: `refused-declaration`.\n"


def _findings(run: Any) -> Iterator[tuple[str, str]]:
    """Yield the code and the level of each finding in a rule and in the functions that it calls."""
    seen: set[str] = set()
    names = [run.__name__]
    while names:
        name = names.pop()
        function = getattr(rules, name, None)
        if name in seen or not inspect.isfunction(function) or function.__module__ != rules.__name__:
            continue
        seen.add(name)
        for node in ast.walk(ast.parse(inspect.getsource(function))):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
                continue
            names.append(node.func.id)
            if node.func.id == "Finding" and isinstance(code := node.args[0], ast.Constant):
                levels = [each.value for each in node.keywords if each.arg == "severity"]
                level = levels[0].value if levels and isinstance(levels[0], ast.Constant) else "error"
                yield str(code.value), str(level)


def _urls() -> Iterator[str]:
    yield "# URLs and options\n"
    yield "Addresses that [`connect`](python/databases.md#connect), `aconnect` and `--url` take. "
    yield "[Clients](../clients.md) has clients of redis-py and other ways.\n"
    yield "| URL | opens |\n|---|---|"
    for url, meaning in URLS.items():
        parse_address(url)  # raises for one that is not true
        yield f"| `{url}` | {meaning} |"
    yield "\nSpecial characters of a user or password are percent-encoded, as `%23` for `#`.\n"
    yield "## Options\n"
    yield "Keywords of `connect` and `aconnect`, or options of the URL, as `?protocol=3`.\n"
    options = griffe.load("keywright.engine.options", search_paths=[str(ROOT / "src")])["ConnectionOptions"]
    for each in options.members.values():
        yield f"`{each.name}: {each.annotation}`"
        yield f":   {' '.join(each.docstring.value.split()) if each.docstring else '&nbsp;'}\n"


def _configuration() -> Iterator[str]:
    yield "# Configuration\n"
    yield "Variables of the library and its commands, then the settings of the services. "
    yield "Arguments and flags win over variables, which win over files.\n"
    yield "## The library\n\n| variable | meaning |\n|---|---|"
    for name, (module, meaning) in VARIABLES.items():
        if name not in inspect.getsource(import_module(module)):
            raise ValueError(f"{module} does not read {name}: correct website/reference/tables.py")
        yield f"| `{name}` | {meaning} |"
    for title, module in SERVICES.items():
        reader = import_module(module).READER
        variables = {setting: name for name, (setting, _) in reader.variables.items()}
        yield f"\n## {title}\n"
        guide = reader.document.replace("/docs/", "/")
        yield f"Settings of the service, which [its guide](../{guide}) explains.\n"
        yield "| setting | variable | default |\n|---|---|---|"
        yield from _settings(reader.shape, (), variables)


def _settings(shape: Any, where: tuple[str, ...], variables: Mapping[str, str]) -> Iterator[str]:
    hints = get_type_hints(shape)
    for field in msgspec.structs.fields(shape):
        inner, name = hints[field.name], ".".join((*where, field.name))
        if isinstance(inner, type) and issubclass(inner, msgspec.Struct):
            yield from _settings(inner, (*where, field.name), variables)
        else:
            variable = f"`{variables[name]}`" if name in variables else "-"
            yield f"| `{name}` | {variable} | {_default(field)} |"


def _default(field: Any) -> str:
    value = field.default
    if field.default_factory is not msgspec.NODEFAULT:
        value = field.default_factory()
    if value is msgspec.NODEFAULT:
        return "required"
    if value is None or value in ((), {}, [], frozenset()):
        return "-"
    shown = value.value if isinstance(value, Enum) else value
    return "`" + str(shown).replace("|", "\\|") + "`"
