"""Values of a former codec: read, distinguished, and rewritten by the read that meets them."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from typing import Annotated, Any

import msgspec
import pytest

from keywright import (
    Call,
    Id,
    Keyring,
    Keyspace,
    MessagePack,
    Record,
    Value,
    aconnect,
    check,
    gather,
)
from keywright.errors import DeclarationError, StoredDataError
from keywright.keyspace.codecs import is_sealed
from keywright.operations import Procedure
from keywright.testing.runs import OpenRun, Raw, Run
from migrating import Book, BookOf, Card, CardOf, Review, Token, vault

LONG = "as it was typed, and long enough to be worth compressing, which takes sixty-four bytes"

ambiguous = Keyspace("ambiguous", "Codecs that cannot be distinguished.")


class Amount(Value[Annotated[int, MessagePack]], key="amount:<each>", space=ambiguous, formerly=[int]):
    """A number; 7 in text is the byte of 55 in MessagePack."""

    each: Id


def test_a_value_of_the_former_codec_is_read_and_rewritten(run: Run, raw: Raw) -> None:
    raw("SET", "book:a", b'{"title": "Waves", "pages": 3}', "PX", 60_000)
    assert run(BookOf("a").get()) == Book("Waves", 3)
    assert raw("GET", "book:a") == msgspec.msgpack.encode(Book("Waves", 3))
    assert 0 < raw("PTTL", "book:a") <= 60_000


def test_many_values_of_both_codecs_are_read_together(run: Run, raw: Raw) -> None:
    raw("SET", "book:a", b'{"title":"Waves"}')
    run(BookOf("b").set(Book("Emma")))
    assert run(BookOf.get_many(["a", "b", "c"])) == [Book("Waves"), Book("Emma"), None]


def test_a_value_in_the_present_encoding_is_left_alone(run: Run, raw: Raw) -> None:
    raw("SET", "review:a", "short")
    assert run(Review("a").get()) == "short"
    assert raw("GET", "review:a") == b"short"


def test_a_value_large_enough_to_compress_is_compressed(run: Run, raw: Raw) -> None:
    raw("SET", "review:a", LONG)
    assert run(Review("a").get()) == LONG
    assert raw("GET", "review:a") != LONG.encode()
    assert run(Review("a").get()) == LONG


def test_bytes_that_neither_codec_reads_are_an_error(run: Run, raw: Raw) -> None:
    raw("SET", "book:a", "[]")
    with pytest.raises(StoredDataError, match="MessagePack of Book"):
        run(BookOf("a").get())
    assert raw("GET", "book:a") == b"[]"


def test_a_member_of_the_former_codec_is_rewritten_and_the_rest_stays(run: Run, raw: Raw) -> None:
    raw("HSET", "card:a", "name", "Ann", "notes", '["late"]')
    assert run(CardOf("a").get()) == Card("Ann", ["late"])
    assert raw("HGETALL", "card:a") == {b"name": b"Ann", b"notes": b"\x91\xa4late"}


def test_a_writer_in_between_wins(run: Run, raw: Raw) -> None:
    raw("SET", "book:a", b'{"title":"Waves"}')

    def late() -> Generator[Call[Any], Any, bool]:
        yield BookOf("nobody").exists()
        written: bool = yield BookOf("a").set(Book("Orlando"))
        return written

    found, _ = run(gather(BookOf("a").get(), Procedure(late, "a late write")))
    assert found in (Book("Waves"), Book("Orlando"))
    assert run(BookOf("a").get()) == Book("Orlando")


def test_plaintext_is_sealed_by_the_read_that_meets_it(open_run: OpenRun, redis_url: str, raw: Raw) -> None:
    run = open_run(redis_url, vault.bind(keyring=Keyring.generate("first")))
    raw("SET", "token:ann", "secret")
    assert run(Token("ann").get()) == "secret"
    assert is_sealed(raw("GET", "token:ann"))
    assert run(Token("ann").get()) == "secret"


def test_codecs_that_cannot_be_distinguished_are_found() -> None:
    findings = [finding for finding in check(ambiguous) if finding.code == "codecs-not-distinct"]
    assert findings
    assert findings[0].template == "amount:<each>"


def test_a_former_codec_names_a_member() -> None:
    space = Keyspace("refused", "Nothing of it is kept.")
    with pytest.raises(DeclarationError, match="formerly names 'colour', which is not a member"):

        class Wrong(Record[Card], key="wrong:<each>", space=space, formerly={"colour": str}):
            """Has no colour."""

            each: Id


def test_two_readers_that_upgrade_at_once_agree(redis_url: str, raw: Raw) -> None:
    async def read() -> list[Book | None]:
        async with aconnect(redis_url) as one, aconnect(redis_url) as other:
            found = await asyncio.gather(
                *(db.run(BookOf("a").get()) for db in (one, other) for _ in range(5))
            )
            return list(found)

    raw("SET", "book:a", b'{"title":"Waves"}')
    assert asyncio.run(read()) == [Book("Waves")] * 10
