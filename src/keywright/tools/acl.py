"""Access control lists from a declaration: the least privileges of a role on the keys of a model.

Since Redis 7.0 rules are selectors, one for each Redis type: the commands that its kinds send, on the names
that its templates make. Only a writer runs scripts, which have the privileges of their caller. Redis 6.2 has
no selectors: there every command of the role is allowed on every key of the model.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable, Iterator
from enum import Enum
from typing import NamedTuple

from keywright.errors import UsageError
from keywright.keyspace.commits.plans import Intents, Marker, journals
from keywright.keyspace.commits.work import ANY_TYPE
from keywright.keyspace.layouts import LAYOUTS
from keywright.keyspace.slots import hash_tag
from keywright.tools.describe.description import KeyDescription, SpaceDescription
from keywright.tools.describe.globs import example_of, glob_escaped, regex_of
from keywright.tools.model import ModelDescription

__all__ = ["READS", "WRITES", "Acl", "AclRole", "AclServer", "acl"]


class AclRole(Enum):
    """The role of a user: a program that only reads, one that also writes, or an auditor of all keys."""

    READER = "reader"
    WRITER = "writer"
    AUDITOR = "auditor"


class AclServer(Enum):
    """The server version that the rules are for: 6.2 has no selectors, later ones have more commands."""

    REDIS_6_2 = "6.2"
    REDIS_7_0 = "7.0"
    REDIS_7_4 = "7.4"
    REDIS_8_4 = "8.4"


def _commands(text: str) -> tuple[str, ...]:
    return tuple(text.split())


# A test compares them with the commands of the kinds.
READS = {redis_type: layout.reads for redis_type, layout in LAYOUTS.items()}
WRITES = {redis_type: layout.writes for redis_type, layout in LAYOUTS.items()}
_FIELD_READS = {"hash": _commands("hpttl hpexpiretime")}
NEWER_READS = {AclServer.REDIS_7_4: _FIELD_READS, AclServer.REDIS_8_4: _FIELD_READS}
_FIELD_WRITES = _commands("hpexpire hpexpireat hpersist")
NEWER = {
    AclServer.REDIS_7_4: {"hash": _FIELD_WRITES},
    AclServer.REDIS_8_4: {"hash": _FIELD_WRITES, "string": ("msetex",)},
}
ANY_READS = _commands("exists type pttl dump memory|usage")
ANY_WRITES = tuple(verb.decode().lower() for verb in ANY_TYPE)
RENEWING = _commands("getex pexpire pexpireat")
MOVING = _commands("rename restore")
# Servers count these reads as writes, since they may update a cached result in the key.
CACHING = ("pfcount",)
# A server that does not know a script yet is sent its text, which makes it known.
SCRIPTS = ("evalsha", "eval")

CONNECTING = _commands("ping select client|setname info command|info asking cluster|slots")
TRACKING = ("client|tracking",)
TRANSACTIONS = _commands("multi exec discard time")
LOOKING_AROUND = _commands("scan dbsize readonly time")
DURABILITY = ("wait",)
SUBSCRIBING = _commands("subscribe psubscribe unsubscribe punsubscribe")
SUBSCRIBING_SHARDED = _commands("ssubscribe sunsubscribe")

_HASH = re.compile("[0-9a-f]{64}")
PLACEHOLDER = "PASSWORD-SHA256"


class Selector(NamedTuple):
    """Commands that are allowed on the keys that match some patterns."""

    commands: tuple[str, ...]
    patterns: tuple[str, ...]
    access: str = "RW"


class Acl(NamedTuple):
    """The rules of one user."""

    user: str
    commands: tuple[str, ...]
    selectors: tuple[Selector, ...]
    server: AclServer
    password_hash: str | None = None
    channels: tuple[str, ...] = ()
    """The patterns of channels that the user may publish on, or subscribe to."""
    exposed: tuple[str, ...] = ()
    """Secret templates, not granted, some of whose names match the pattern of a granted one."""

    def rules(self) -> list[str]:
        """Return the rules that follow the user's name, without the password."""
        root = [f"&{pattern}" for pattern in self.channels] + [f"+{command}" for command in self.commands]
        if self.server is AclServer.REDIS_6_2:
            commands = _distinct(command for each in self.selectors for command in each.commands)
            patterns = _distinct(pattern for each in self.selectors for pattern in each.patterns)
            return [*root, *(f"+{command}" for command in commands), *(f"~{pattern}" for pattern in patterns)]
        return [*root, *map(_written, self.selectors)]

    def as_command(self) -> str:
        """Return the ACL SETUSER command, which replaces all earlier rules of the user."""
        # Since a reset leaves a user of Redis 6.2 all channels, they are taken away by name.
        return " ".join(["ACL SETUSER", self.user, "reset resetchannels on", self._password, *self.rules()])

    def as_file_line(self) -> str:
        """Return the user's line of an ACL file."""
        return " ".join(
            ["user", self.user, "on sanitize-payload", self._password, "resetchannels -@all", *self.rules()]
        )

    @property
    def _password(self) -> str:
        return f"#{self.password_hash or PLACEHOLDER}"


def acl(
    model: ModelDescription,
    role: AclRole,
    *,
    user: str | None = None,
    prefix: str | None = None,
    server: AclServer = AclServer.REDIS_7_0,
    password_hash: str | None = None,
    scan: bool = True,
    renew: bool = False,
    with_secrets: bool = False,
) -> Acl:
    """Return the rules of a role: keys and commands, and the declared channels.

    `prefix` replaces the declared prefix, for a database that is opened with another one;
    `password_hash` is the SHA-256 of the password in hexadecimal. Without `scan` a writer cannot sweep
    its keys, but cannot list the names of others either: SCAN is not limited by patterns. With `renew` a
    reader renews sliding expiries, so it can also expire those keys. A reader and an auditor get the keys
    that hold secrets with `with_secrets` only.
    """
    name = user or f"{model.name}-{role.value}"
    if not re.fullmatch(r"[^\s\x00()]+", name):
        raise UsageError(
            f"{name!r} is not a valid user name. Give --user one without spaces and parentheses."
        )
    if password_hash is not None and not _HASH.fullmatch(password_hash):
        raise UsageError("the password hash must be a SHA-256: 64 lower-case hexadecimal digits.")
    all_names = _Names(model, prefix)
    names = all_names if with_secrets or role is AclRole.WRITER else all_names.without_secrets()
    selectors = tuple(each for each in _SELECTORS[role](names, server, renew=renew) if each.patterns)
    listed = [pattern for each in selectors for pattern in each.patterns]
    for pattern in (*listed, *all_names.channels()):
        if re.search(r"[\s\x00()]", pattern):
            raise UsageError(
                f"{pattern!r} cannot be written in access rules: spaces and parentheses are separators. "
                "Use another prefix or template."
            )
    sweeping = ("scan",) if scan and role is AclRole.WRITER else ()
    exposed = _exposed(all_names, names, selectors)
    channels = all_names.channels() if role is not AclRole.AUDITOR else ()
    messaging = _messaging(role, server) if channels else ()
    tracking = TRACKING if names.cached and role is not AclRole.AUDITOR else ()
    commands = (*_ROOT[role], *sweeping, *tracking, *messaging)
    return Acl(name, commands, selectors, server, password_hash, channels, exposed)


def _messaging(role: AclRole, server: AclServer) -> tuple[str, ...]:
    """Return the commands of channels: a reader subscribes, a writer publishes too."""
    sharded = server is not AclServer.REDIS_6_2
    commands = (*SUBSCRIBING, *(SUBSCRIBING_SHARDED if sharded else ()))
    if role is AclRole.WRITER:
        commands += ("publish", *(("spublish",) if sharded else ()))
    return commands


class _Names:
    """The names of a model's keys as globs, by type and use of the keys."""

    def __init__(self, model: ModelDescription, prefix: str | None) -> None:
        self.spaces = [(_lead(space, prefix), space) for space in model.spaces]
        self.keys = [(lead, key) for lead, space in self.spaces for key in space.keys]
        self.linked = any(space.links for space in model.spaces)
        self._former = [
            (key, pattern)
            for space in model.spaces
            for key in space.keys
            for pattern in _former_patterns(space, key, prefix)
        ]

    def without_secrets(self) -> _Names:
        """Return the names of the keys that hold no secret."""
        names = copy.copy(self)
        names.keys = [(lead, key) for lead, key in self.keys if not key.secret]
        names._former = [(key, pattern) for key, pattern in self._former if not key.secret]
        return names

    def of(self, redis_type: str) -> tuple[str, ...]:
        return _patterns(pair for pair in self.keys if pair[1].redis_type == redis_type)

    def of_modules(self) -> tuple[str, ...]:
        """Return the names of keys whose types have commands that are not known here."""
        return _patterns(pair for pair in self.keys if pair[1].redis_type not in READS)

    @property
    def cached(self) -> bool:
        """Return whether reads of any of the keys are cached by clients."""
        return any(key.cached for _, key in self.keys)

    def all(self) -> tuple[str, ...]:
        return _patterns(self.keys)

    def channels(self) -> tuple[str, ...]:
        """Return the patterns of channels. A server compares that of PSUBSCRIBE as it is."""
        return _distinct(
            glob_escaped(lead) + pattern
            for lead, space in self.spaces
            for channel in space.channels
            for pattern in (*channel.patterns, channel.every)
            if pattern
        )

    def former(self, *redis_types: str) -> tuple[str, ...]:
        """Return the former names of keys of these types that upgrades may not have moved yet."""
        return _distinct(pattern for key, pattern in self._former if key.redis_type in redis_types)

    def moving(self) -> tuple[str, ...]:
        """Return the names of keys that were renamed, and their former names."""
        keys = [key for key, _ in self._former]
        return (*_patterns(pair for pair in self.keys if pair[1] in keys), *self.former(*READS))

    def sliding(self) -> tuple[str, ...]:
        return _patterns(pair for pair in self.keys if pair[1].expiry and pair[1].expiry.sliding)

    def journal(self) -> tuple[str, ...]:
        """Return the names of the journals of this model's keyspaces, and of the markers beside its keys."""
        return _distinct(pattern for lead, space in self.spaces for pattern in _journal(lead, space))


def _journal(lead: str, space: SpaceDescription) -> Iterator[str]:
    journal = {"space": space.name, "prefix": lead.removesuffix(":")}
    before = glob_escaped(f"{journals.prefix}:")
    intents = Intents.declaration.template.glob(journal).decode()
    yield f"{before}{intents.removesuffix('*')}[0-9a-f]"
    marker = Marker.declaration.template.glob(journal).decode().removesuffix("*}")
    for tag in _distinct(tag for key in space.keys for tag in _tags(lead, key)):
        yield f"{before}{marker}{tag}}}"


def _reader(names: _Names, server: AclServer, *, renew: bool) -> Iterator[Selector]:
    for redis_type, commands in READS.items():
        own = (*names.of(redis_type), *names.former(*_converted(redis_type)))
        yield Selector((*commands, *_newer_reads(server, redis_type), *ANY_READS), own, "R")
    yield Selector(ANY_READS, names.of_modules(), "R")
    yield from _own(names, writes=False)
    # Who may renew an expiry may also shorten it, which deletes the key.
    yield Selector(RENEWING, names.sliding() if renew else ())
    # Whether a key still has its former name is asked before each operation.
    yield Selector(("exists",), names.former(*READS), "R")
    yield Selector(("hget",), names.journal() if names.linked else (), "R")


def _writer(names: _Names, server: AclServer, *, renew: bool) -> Iterator[Selector]:
    del renew  # a writer always may
    # One script reaches keys of several types, so the rights to run it are not split by type.
    everywhere = (*names.all(), *names.former(*READS), *names.journal())
    yield Selector((*SCRIPTS, *ANY_READS, *ANY_WRITES), everywhere)
    yield Selector(MOVING, names.moving())
    for redis_type, commands in WRITES.items():
        more = (*_newer_reads(server, redis_type), *NEWER.get(server, {}).get(redis_type, ()))
        own = (*names.of(redis_type), *(names.journal() if redis_type == "hash" else ()))
        yield Selector((*READS[redis_type], *commands, *more), own)
        yield Selector(READS[redis_type], names.former(*_converted(redis_type)))
    yield from _own(names, writes=True)


def _newer_reads(server: AclServer, redis_type: str) -> tuple[str, ...]:
    return NEWER_READS.get(server, {}).get(redis_type, ())


def _own(names: _Names, *, writes: bool) -> Iterator[Selector]:
    """Yield the commands that kinds send beside those of their Redis type."""
    for commands in _distinct_groups((key.reads, key.writes) for _, key in names.keys):
        patterns = _patterns(pair for pair in names.keys if (pair[1].reads, pair[1].writes) == commands)
        reads, own = commands
        if writes:
            yield Selector((*reads, *own), patterns)
            continue
        plain = tuple(command for command in reads if command not in CACHING)
        yield Selector(plain, patterns if plain else (), "R")
        caching = tuple(command for command in reads if command in CACHING)
        yield Selector(caching, patterns if caching else ())


def _distinct_groups(
    groups: Iterable[tuple[tuple[str, ...], tuple[str, ...]]],
) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    return [group for group in dict.fromkeys(groups) if any(group)]


def _auditor(names: _Names, server: AclServer, *, renew: bool) -> Iterator[Selector]:
    del renew  # an auditor never does
    for redis_type, commands in READS.items():
        own = (*names.of(redis_type), *(names.journal() if redis_type == "hash" else ()))
        yield Selector((*commands, *_newer_reads(server, redis_type), *ANY_READS), own, "R")
    yield Selector(ANY_READS, names.of_modules(), "R")
    # SCAN returns every name anyway, and with its TYPE option the type too: this reveals no more.
    yield Selector(("type",), ("*",) if server is not AclServer.REDIS_6_2 else (), "R")


_SELECTORS = {AclRole.READER: _reader, AclRole.WRITER: _writer, AclRole.AUDITOR: _auditor}
_ROOT = {
    AclRole.READER: (*CONNECTING, *TRANSACTIONS, "readonly"),
    AclRole.WRITER: (*CONNECTING, *TRANSACTIONS, *DURABILITY),
    AclRole.AUDITOR: (*CONNECTING, *LOOKING_AROUND),
}


def _lead(space: SpaceDescription, prefix: str | None) -> str:
    if prefix is None:
        return space.lead
    return "".join(f"{part}:" for part in (prefix, space.version) if part)


def _former_patterns(space: SpaceDescription, key: KeyDescription, prefix: str | None) -> Iterator[str]:
    for former in (upgrade.moved_from for upgrade in key.upgrades if upgrade.moved_from is not None):
        own = former.startswith(space.lead)
        name = _lead(space, prefix) + former.removeprefix(space.lead) if own else former
        yield re.sub("<[^<>]+>", "?*", glob_escaped(name))


def _converted(redis_type: str) -> tuple[str, ...]:
    """Return the types that older versions of a key may have: an upgrade may convert a value to a record."""
    return ("string", "hash") if redis_type in ("string", "hash") else (redis_type,)


def _patterns(keys: Iterable[tuple[str, KeyDescription]]) -> tuple[str, ...]:
    return _distinct(glob_escaped(lead) + pattern for lead, key in keys for pattern in key.patterns)


def _tags(lead: str, key: KeyDescription) -> tuple[str, ...]:
    """Return globs of the hashed part of a key's names."""
    tag = hash_tag(lead.encode()).decode()
    if tag != lead:
        return (glob_escaped(tag),)
    before = "" if key.slot.tagged else glob_escaped(lead)
    return tuple(before + pattern for pattern in key.slot.patterns)


def _exposed(model: _Names, granted: _Names, selectors: Iterable[Selector]) -> tuple[str, ...]:
    """Return the templates that are not granted, and yet match the pattern of one that is.

    A glob cannot tell `user:<id>` from `user:<id>:token`, and rules cannot exclude names.
    """
    patterns = [pattern for each in selectors if each.commands != ("type",) for pattern in each.patterns]
    return _distinct(
        key.template
        for lead, key in model.keys
        if (lead, key) not in granted.keys
        for own in _patterns([(lead, key)])
        if any(re.fullmatch(regex_of(pattern), example_of(own)) for pattern in patterns)
    )


def _written(selector: Selector) -> str:
    sign = "~" if selector.access == "RW" else f"%{selector.access}~"
    names = [f"{sign}{pattern}" for pattern in selector.patterns]
    return f"({' '.join([*names, *(f'+{command}' for command in selector.commands)])})"


def _distinct(items: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(items))
