"""Identifiers of a narrow set of characters, written as they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from keywright.keyspace.alphabets.alphabet import Verbatim, refuse_unwritable
from keywright.keyspace.languages.language import Language, characters, literal, one_of
from keywright.keyspace.misuse import explained_constructor

__all__ = ["Base64Url", "Email", "Hex", "Plain", "Prefixed", "Ulid"]


@explained_constructor
@dataclass(frozen=True)
class Plain(Verbatim):
    """An identifier: ASCII letters, digits, ``_``, ``-``, and what ``extra`` adds. No colon unless given."""

    extra: str = ""
    max_length: int | None = None

    def __post_init__(self) -> None:
        refuse_unwritable(self.extra)
        _refuse_short(self.max_length)

    @property
    def expected(self) -> str:
        also = "".join(f" {char}" for char in self.extra)
        return f"an identifier (A-Z a-z 0-9 _ -{also}{_at_most(self.max_length)})"

    @property
    def language(self) -> Language:
        identifier = characters(self.extra + "_-", (0x30, 0x39), (0x41, 0x5A), (0x61, 0x7A))
        return identifier.repeat(1, self.max_length)

    @property
    def samples(self) -> tuple[str, ...]:
        longest = ("aZ09_-" + self.extra) * 8
        return ("a", "0", "-", *self.extra, longest[: self.max_length])

    def inline(self, var: str, const: str) -> str | None:
        if self.max_length is not None:
            return super().inline(var, const)
        # Most ids are letters and digits, and str tells that in a third of the time.
        return f"type({var}) is str and ({var}.isascii() and {var}.isalnum() or {const}({var}) is not None)"


@explained_constructor
@dataclass(frozen=True)
class Hex(Verbatim):
    """Exactly ``length`` hexadecimal digits, lower-case unless ``upper``."""

    length: int
    upper: bool = False

    def __post_init__(self) -> None:
        _refuse_short(self.length)

    @property
    def expected(self) -> str:
        return f"{self.length} {'upper' if self.upper else 'lower'}-case hexadecimal digits"

    @property
    def language(self) -> Language:
        digits = b"0123456789ABCDEF" if self.upper else b"0123456789abcdef"
        return one_of(digits).repeat(self.length, self.length)

    @property
    def samples(self) -> tuple[str, ...]:
        return "0" * self.length, ("F" if self.upper else "f") * self.length


@explained_constructor
@dataclass(frozen=True)
class Base64Url(Verbatim):
    """Exactly ``length`` characters of base64url, as ``secrets.token_urlsafe`` makes them."""

    length: int

    def __post_init__(self) -> None:
        _refuse_short(self.length)

    @property
    def expected(self) -> str:
        return f"{self.length} characters of base64url"

    @property
    def language(self) -> Language:
        return characters("_-", (0x30, 0x39), (0x41, 0x5A), (0x61, 0x7A)).repeat(self.length, self.length)

    @property
    def samples(self) -> tuple[str, ...]:
        return "A" * self.length, "_" * self.length, ("aZ09-_" * self.length)[: self.length]


@dataclass(frozen=True)
class Ulid(Verbatim):
    """A ULID: 26 digits of Crockford's base32, upper-case, below 2**128."""

    @property
    def expected(self) -> str:
        return "a ULID (26 digits of Crockford's base32)"

    @property
    def language(self) -> Language:
        return one_of(b"01234567") + one_of(b"0123456789ABCDEFGHJKMNPQRSTVWXYZ").repeat(25, 25)

    @property
    def samples(self) -> tuple[str, ...]:
        return "0" * 26, "01ARZ3NDEKTSV4RRFFQ69G5FAV", "7" + "Z" * 25


@dataclass(frozen=True)
class Email(Verbatim):
    """An e-mail address as it is: unquoted ASCII, without braces. Case is kept, so cases are two names."""

    @property
    def expected(self) -> str:
        return "an e-mail address (local@domain)"

    @property
    def language(self) -> Language:
        letters = ((0x30, 0x39), (0x41, 0x5A), (0x61, 0x7A))
        local = characters("!#$%&'*+-./=?^_`|~", *letters).repeat(1)
        return local + literal(b"@") + characters("-.", *letters).repeat(1)

    @property
    def samples(self) -> tuple[str, ...]:
        return "a@b", "Ann.Lee+news@mail.example.com", "!#$%&'*/=?^_`|~@1.2"


_BODIES = {
    "base36": b"0123456789abcdefghijklmnopqrstuvwxyz",
    "decimal": b"0123456789",
    "hex": b"0123456789abcdef",
}


@explained_constructor
@dataclass(frozen=True)
class Prefixed(Verbatim):
    """An id that opens with a fixed prefix, as Reddit's ``t3_1a2b``. The str includes the prefix.

    ``max_length`` counts what follows the prefix.
    """

    prefix: str
    body: Literal["base36", "decimal", "hex"] = "base36"
    max_length: int | None = None

    def __post_init__(self) -> None:
        if not self.prefix or self.body not in _BODIES:
            raise ValueError(f"Prefixed() needs a prefix, and a body out of {', '.join(_BODIES)}")
        refuse_unwritable(self.prefix)
        _refuse_short(self.max_length)

    @property
    def expected(self) -> str:
        return f"{self.prefix} followed by {self.body}{_at_most(self.max_length)}"

    @property
    def language(self) -> Language:
        return literal(self.prefix.encode()) + one_of(_BODIES[self.body]).repeat(1, self.max_length)

    @property
    def samples(self) -> tuple[str, ...]:
        digits = _BODIES[self.body].decode()
        return f"{self.prefix}0", f"{self.prefix}{digits[-1]}", f"{self.prefix}{digits[: self.max_length]}"


def _refuse_short(length: int | None) -> None:
    if length is not None and length < 1:
        raise ValueError(f"a length of {length} leaves no text")


def _at_most(length: int | None) -> str:
    return "" if length is None else f", at most {length} characters"
