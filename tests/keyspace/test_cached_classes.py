"""Which classes may be cached, and what the tools say of those that are."""

from __future__ import annotations

import types
from datetime import timedelta
from typing import Any

import pytest

from cached_keys import Person, Word, shelf
from keywright import (
    Claim,
    Context,
    Id,
    Keyspace,
    Lease,
    Map,
    Stream,
    Value,
    connect,
    expires_in,
)
from keywright.errors import DeclarationError
from keywright.testing import RedisServer
from keywright.testing.servers import as_user
from keywright.tools import Model
from keywright.tools.acl import AclRole, AclServer, acl
from keywright.tools.docs.formats import Format, written
from keywright.tools.schema.builder import schema_of
from keywright.tools.schema.text import schema_text
from old_redis import old_binary

MINUTE = timedelta(minutes=1)


@pytest.mark.parametrize(
    ("base", "options", "reason"),
    [
        (Value[str], {"cached": timedelta()}, "not a time"),
        (Value[str], {"cached": 5}, "not a time"),
        (Value[str], {"cached": True, "expiry": expires_in(MINUTE, since="last use")}, "renew"),
        (Map[str, str], {"cached": True, "field_expiry": expires_in(MINUTE)}, "one by one"),
        (Lease, {"cached": True}, "who may do what"),
        (Claim, {"cached": True}, "who may do what"),
        (Stream[Person], {"cached": True}, "who may do what"),
    ],
    ids=lambda each: str(each)[:30],
)
def test_a_class_whose_reads_cannot_be_cached_is_refused(
    base: Any, options: dict[str, Any], reason: str
) -> None:
    space = Keyspace("refused", "Declarations with a fault.")
    declared = {"key": "refused:<n>", "space": space, **options}
    with pytest.raises(DeclarationError, match=reason):
        types.new_class("Refused", (base,), declared, lambda body: body.update(__annotations__={"n": Id}))


def test_a_binding_is_checked_as_the_declaration_is() -> None:
    other = Keyspace("other", "Another keyspace.")
    with pytest.raises(DeclarationError, match="not a key of 'other'"):
        other.bind(cached={Word: True})
    with pytest.raises(DeclarationError, match="not a time"):
        shelf.bind(cached={Word: timedelta(seconds=-1)})


def test_no_prefix_that_is_tracked_begins_with_another_one() -> None:
    space = Keyspace("nested", "Names within names.")

    class Short(Value[str], key="a:<n>", space=space, cached=True):
        """A text."""

        n: Id

    class Long(Value[str], key="a:b:<n>", space=space, cached=MINUTE):
        """A text."""

        n: Id

    context = Context([space.bind(prefix="app")])
    assert context.caches()
    assert context.cached == {Short: float("inf"), Long: 60.0}
    assert context.cached_prefixes() == (b"app:a:",)


def test_documents_say_what_is_cached_and_lock_files_do_not() -> None:
    space = Keyspace("said", "One key that is cached briefly.")

    class Rate(Value[int], key="rate:<n>", space=space, cached=MINUTE):
        """A number."""

        n: Id

    class Raw(Value[int], key="raw:<n>", space=space):
        """A number."""

        n: Id

    model = Model("said", (space,)).described()
    assert [key.cached for key in model.spaces[0].keys] == ["while unchanged, for 1 minute at most", None]
    assert "while unchanged, for 1 minute at most" in written(model, Format.MARKDOWN)
    # How one program reads is not part of the stored data, so lock files do not have it.
    assert '"cached"' not in schema_text(schema_of(Model("said", (space,))))
    assert (Rate.declaration.cached, Raw.declaration.cached) == (MINUTE, False)


@pytest.mark.parametrize("version", [AclServer.REDIS_7_0, AclServer.REDIS_6_2], ids=lambda each: each.value)
def test_a_user_with_the_rules_of_a_reader_can_cache(version: AclServer) -> None:
    binary = old_binary() if version is AclServer.REDIS_6_2 else None
    rules = acl(Model("shelf", (shelf,)).described(), AclRole.READER, user="reader", server=version)
    with RedisServer(binary=binary) as server:
        server.call("SET", "word:a", "x")
        server.call("ACL", "SETUSER", "reader", "on", ">pw", *rules.rules())
        with connect(as_user(server.url.replace("unix://", "unix://:x@"), "reader", "pw")) as database:
            database.run(Word("a").get())
            assert database.settle_cache(20.0), database.cache_stats().refusal
            assert [database.run(Word("a").get()) for _ in range(3)] == ["x"] * 3
            stats = database.cache_stats()
            assert stats.hits >= 2  # the first read may come before changes are tracked, or after
            assert stats.hits + stats.misses == 4
