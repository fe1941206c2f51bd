"""Secrets are not shown; sealed values open only where they belong."""

from __future__ import annotations

import copy
import json
import logging
import pickle
import traceback
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keywright import Codec, CodecError, Int64, Json, Keyring, Sealed, Secret, Zstd
from keywright.errors import DeclarationError, UsageError
from keywright.keyspace.codecs import Plaintext, SealRefused, SecretOf, Text, is_sealed
from sealing import Bound

HIDDEN = "hunter2-token"
OLD = {"2024": b"o" * 32}
NEW = {"2025": b"n" * 16}
old_ring = Keyring("2024", OLD)
both_ring = Keyring("2025", OLD | NEW)
new_ring = Keyring("2025", NEW)
CONTEXT = b"user:<id>:token"


def sealed_under(keyring: Keyring, context: bytes = CONTEXT) -> Codec[str]:
    return Bound(Sealed(Text()), keyring, context)


def test_a_secret_shows_nothing_however_it_is_printed(caplog: pytest.LogCaptureFixture) -> None:
    secret = Secret(HIDDEN)
    logging.getLogger("keywright").warning("%s %r", secret, {"token": secret})
    shown = [
        repr(secret),
        str(secret),
        f"{secret}",
        f"{secret!r:>30}",
        repr([secret]),
        caplog.text,
    ]
    assert all("Secret(…)" in text and HIDDEN not in text for text in shown)
    assert secret.reveal() == HIDDEN


@pytest.mark.parametrize("write", [json.dumps, msgspec.json.encode, msgspec.msgpack.encode, pickle.dumps])
def test_a_secret_is_not_serialised_by_accident(write: Any) -> None:
    with pytest.raises(TypeError):
        write({"token": Secret(HIDDEN)})
    with pytest.raises(CodecError):
        Json().encode({"token": Secret(HIDDEN)})


def test_secrets_compare_hash_and_copy_by_value() -> None:
    assert Secret("naïve") == Secret("naïve") != Secret("other")
    assert Secret(b"a") != Secret("a")
    assert Secret([1]) == Secret([1])
    assert Secret("a") != "a"
    assert len({Secret("a"), Secret("a")}) == 1
    assert copy.deepcopy(Secret("a")) == copy.copy(Secret("a")) == Secret("a")


def test_a_secret_does_not_change() -> None:
    secret = Secret(HIDDEN)
    with pytest.raises(AttributeError):
        secret._hidden = "other"
    assert not hasattr(secret, "__dict__")


@given(st.text())
def test_secrets_round_trip(value: str) -> None:
    codec = SecretOf(Text())
    assert codec.decode(codec.encode(Secret(value))) == Secret(value)


@pytest.mark.parametrize(
    "fail",
    [
        lambda: SecretOf(Int64()).decode(HIDDEN.encode()),
        lambda: SecretOf(Int64()).encode(Secret(HIDDEN)),  # type: ignore[arg-type]  # the mistake under test
        lambda: SecretOf(Text()).encode(HIDDEN),  # type: ignore[arg-type]  # the mistake under test
        lambda: SecretOf(Json(list[int])).decode(f'["{HIDDEN}"]'.encode()),
        lambda: Zstd(SecretOf(Int64())).decode(HIDDEN.encode()),
        lambda: Bound(Sealed(Int64()), old_ring, CONTEXT).encode(HIDDEN),  # type: ignore[arg-type]  # as above
        lambda: Bound(Sealed(Int64()), old_ring, CONTEXT).decode(sealed_under(old_ring).encode(HIDDEN)),
        lambda: Bound(Sealed(Int64(), allow_plaintext=True), old_ring, CONTEXT).decode(HIDDEN.encode()),
    ],
)
def test_an_error_about_a_secret_does_not_tell_it(fail: Any) -> None:
    with pytest.raises(CodecError) as caught:
        fail()
    error: BaseException | None = caught.value
    assert caught.value.found == "<secret>"
    assert HIDDEN not in "".join(traceback.format_exception(caught.value))
    while error is not None:
        assert HIDDEN not in repr(error)
        error = error.__cause__ or error.__context__


@given(st.text())
def test_sealed_values_round_trip_unreadably(value: str) -> None:
    stored = sealed_under(old_ring).encode(value)
    assert is_sealed(stored)
    assert len(value) < 4 or value.encode() not in stored[len(b"kw2\x042024") :]
    assert sealed_under(old_ring).decode(stored) == value


def test_the_wire_form_is_magic_key_id_nonce_and_ciphertext() -> None:
    stored = sealed_under(old_ring).encode("abc")
    assert stored[:8] == b"kw2\x042024"
    assert len(stored) == 8 + 12 + 3 + 16
    assert stored != sealed_under(old_ring).encode("abc")


def test_after_rotation_old_seals_open_and_new_ones_use_the_new_key() -> None:
    stored = sealed_under(old_ring).encode("abc")
    assert sealed_under(both_ring).decode(stored) == "abc"
    assert both_ring.needs_resealing(stored)
    resealed = sealed_under(both_ring).encode("abc")
    assert not both_ring.needs_resealing(resealed)
    assert sealed_under(new_ring).decode(resealed) == "abc"


def test_a_key_that_was_dropped_is_named() -> None:
    with pytest.raises(SealRefused, match="unknown key '2024'"):
        sealed_under(new_ring).decode(sealed_under(old_ring).encode("abc"))


def test_the_same_id_with_another_key_does_not_open() -> None:
    impostor = Keyring("2024", {"2024": b"x" * 32})
    with pytest.raises(SealRefused):
        sealed_under(impostor).decode(sealed_under(old_ring).encode("abc"))


@given(st.data())
def test_no_byte_of_a_seal_can_be_changed(data: st.DataObject) -> None:
    stored = bytearray(sealed_under(old_ring).encode("abc"))
    position = data.draw(st.integers(0, len(stored) - 1))
    stored[position] ^= data.draw(st.integers(1, 255))
    with pytest.raises(SealRefused):
        sealed_under(old_ring).decode(bytes(stored))


def test_a_seal_does_not_open_under_another_name() -> None:
    stored = sealed_under(old_ring).encode("abc")
    with pytest.raises(SealRefused, match="another key or member"):
        sealed_under(old_ring, b"guild:<id>:token").decode(stored)


def test_plaintext_is_refused_unless_a_migration_allows_it() -> None:
    with pytest.raises(SealRefused) as caught:
        sealed_under(old_ring).decode(b"abc")
    assert caught.value.found == "plaintext"
    assert Bound(Sealed(Text(), allow_plaintext=True), old_ring, CONTEXT).decode(b"abc") == "abc"
    assert old_ring.needs_resealing(b"abc")


def test_a_seal_refused_inside_a_secret_stays_a_seal_refused() -> None:
    with pytest.raises(SealRefused):
        Bound(SecretOf(Sealed(Text())), old_ring, CONTEXT).decode(b"abc")


def test_a_sealed_codec_alone_writes_only_what_is_marked_for_sealing() -> None:
    written = SecretOf(Sealed(Text())).encode(Secret(HIDDEN))
    assert type(written) is Plaintext
    assert HIDDEN not in repr(written)


def test_a_seal_that_nobody_opened_is_not_read() -> None:
    with pytest.raises(SealRefused, match="not opened"):
        Sealed(Text()).decode(sealed_under(old_ring).encode(HIDDEN))


def test_compressing_what_is_sealed_is_refused() -> None:
    with pytest.raises(UsageError, match="before Sealed"):
        Zstd(Sealed(Text()))


def test_a_keyring_shows_ids_and_never_keys() -> None:
    ring = Keyring("a", {"a": b"sixteen byte key"})
    assert repr(ring) == "Keyring(primary='a', keys=['a'])"
    assert "sixteen" not in repr([getattr(ring, slot) for slot in Keyring.__slots__])
    with pytest.raises(TypeError):
        pickle.dumps(ring)


def test_a_keyring_is_read_back_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEYWRIGHT_SEAL_KEYS", both_ring.export())
    ring = Keyring.from_env()
    assert ring.primary == "2025"
    assert sealed_under(ring).decode(sealed_under(old_ring).encode("abc")) == "abc"


def test_a_generated_key_is_fresh() -> None:
    with pytest.raises(SealRefused):
        sealed_under(Keyring.generate("a")).decode(sealed_under(Keyring.generate("a")).encode("abc"))


@pytest.mark.parametrize(
    "text", ["", "c2VjcmV0", "a:???", "a:c2VjcmV0", "a b:" + "A" * 22 + "==", "a:" + "A" * 22 + "==," * 2]
)
def test_a_malformed_keyring_is_refused_without_quoting_it(
    monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setenv("KEYWRIGHT_SEAL_KEYS", text)
    with pytest.raises(DeclarationError) as caught:
        Keyring.from_env()
    assert "c2VjcmV0" not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize(
    ("primary", "keys"), [("b", {"a": b"k" * 32}), ("a", {"a": b"short"}), ("", {"": b"k" * 32})]
)
def test_an_unsound_keyring_is_refused(primary: str, keys: dict[str, bytes]) -> None:
    with pytest.raises(DeclarationError):
        Keyring(primary, keys)
