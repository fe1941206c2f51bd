"""Values that Python has a type for: UUIDs, dates, times, decimal numbers and booleans."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from uuid import UUID

from keywright.keyspace.alphabets.alphabet import Alphabet, Verbatim, refuse_unwritable
from keywright.keyspace.languages.language import Language, alternation, concatenation, literal, one_of
from keywright.keyspace.misuse import explained_constructor

__all__ = ["Day", "Instant", "PlainDecimal", "Truth", "Uuid", "UuidText"]

_DIGIT = one_of(b"0123456789")
_NONZERO = one_of(b"123456789")
_UUID_LENGTHS = (8, 4, 4, 4, 12)


def _uuid(digits: bytes, dash: bytes) -> Language:
    parts: list[Language] = []
    for length in _UUID_LENGTHS:
        parts += [literal(dash), one_of(digits).repeat(length, length)]
    return concatenation(parts[1:])


@explained_constructor
@dataclass(frozen=True)
class Uuid(Alphabet[UUID]):
    """A UUID, in lower case with dashes unless said otherwise."""

    upper: bool = False
    dashes: bool = True

    @property
    def expected(self) -> str:
        return (
            f"a UUID in {'upper' if self.upper else 'lower'} case{'' if self.dashes else ' without dashes'}"
        )

    @property
    def python_type(self) -> type:
        return UUID

    @property
    def language(self) -> Language:
        digits = b"0123456789ABCDEF" if self.upper else b"0123456789abcdef"
        return _uuid(digits, b"-" if self.dashes else b"")

    @property
    def samples(self) -> tuple[UUID, ...]:
        return UUID(int=0), UUID("f81d4fae-7dec-41d0-a765-00a0c91e6bf6"), UUID(int=2**128 - 1)

    def render(self, value: object) -> str:
        if not isinstance(value, UUID):
            raise self._refusal(value)
        text = str(value) if self.dashes else value.hex
        return text.upper() if self.upper else text

    def read(self, text: str) -> UUID:
        return UUID(text)


@dataclass(frozen=True)
class UuidText(Verbatim):
    """A UUID as a str: lower case, with dashes."""

    @property
    def expected(self) -> str:
        return "a UUID as text (lower case, with dashes)"

    @property
    def language(self) -> Language:
        return Uuid().language

    @property
    def samples(self) -> tuple[str, ...]:
        return tuple(map(str, Uuid().samples))


@explained_constructor
@dataclass(frozen=True)
class Day(Alphabet[date]):
    """A date, as ``2024-02-29``, or ``20240229`` with an empty ``separator``."""

    separator: str = "-"

    def __post_init__(self) -> None:
        refuse_unwritable(self.separator)
        if self.separator.isdigit():
            raise ValueError("digits cannot separate the digits of a date")

    @property
    def expected(self) -> str:
        return f"a date (YYYY{self.separator}MM{self.separator}DD)"

    @property
    def python_type(self) -> type:
        return date

    @property
    def pattern_decides(self) -> bool:
        return False

    @property
    def language(self) -> Language:
        return _day(literal(self.separator.encode()))

    @property
    def samples(self) -> tuple[date, ...]:
        return date.min, date(2024, 2, 29), date.max

    def render(self, value: object) -> str:
        # A datetime is a date to Python, and its text would lose the time.
        if type(value) is not date:
            raise self._refusal(value)
        return self.separator.join((f"{value.year:04}", f"{value.month:02}", f"{value.day:02}"))

    def read(self, text: str) -> date:
        digits = text.replace(self.separator, "")
        return date(int(digits[:4]), int(digits[4:6]), int(digits[6:]))


def _day(separator: Language) -> Language:
    month = literal(b"0") + _NONZERO | literal(b"1") + one_of(b"012")
    day = literal(b"0") + _NONZERO | one_of(b"12") + _DIGIT | literal(b"3") + one_of(b"01")
    return concatenation((_DIGIT.repeat(4, 4), separator, month, separator, day))


@dataclass(frozen=True)
class Instant(Alphabet[datetime]):
    """A time in UTC as RFC 3339 has it: ``2024-02-29T12:30:00Z``, with six decimals if it has a fraction."""

    @property
    def expected(self) -> str:
        return "a time in UTC (YYYY-MM-DDThh:mm:ssZ)"

    @property
    def python_type(self) -> type:
        return datetime

    @property
    def pattern_decides(self) -> bool:
        return False

    @property
    def language(self) -> Language:
        sixty = one_of(b"012345") + _DIGIT
        hour = one_of(b"01") + _DIGIT | literal(b"2") + one_of(b"0123")
        fraction = (literal(b".") + _DIGIT.repeat(6, 6)).repeat(0, 1)
        colon = literal(b":")
        return concatenation(
            (_day(literal(b"-")), literal(b"T"), hour, colon, sixty, colon, sixty, fraction, literal(b"Z"))
        )

    @property
    def samples(self) -> tuple[datetime, ...]:
        return (
            datetime(1970, 1, 1, tzinfo=UTC),
            datetime(2024, 2, 29, 12, 30, 0, 1, tzinfo=UTC),
            datetime.max.replace(tzinfo=UTC),
        )

    def render(self, value: object) -> str:
        if not isinstance(value, datetime) or value.utcoffset() is None:
            raise self._refusal(value)
        try:
            moment = value.astimezone(UTC)
        except OverflowError as beyond:
            raise self._refusal(value) from beyond
        return moment.isoformat().removesuffix("+00:00") + "Z"

    def read(self, text: str) -> datetime:
        moment = datetime.fromisoformat(text)
        if self.render(moment) != text:
            raise self._refusal(text)  # a fraction of zero is not written
        return moment


@dataclass(frozen=True)
class PlainDecimal(Alphabet[Decimal]):
    """A decimal number without an exponent, as ``-12.50``. Digits are kept: 1.5 and 1.50 are two names."""

    @property
    def expected(self) -> str:
        return "a decimal number without an exponent, of at most 64 digits"

    @property
    def python_type(self) -> type:
        return Decimal

    @property
    def pattern_decides(self) -> bool:
        return False

    @property
    def language(self) -> Language:
        whole = literal(b"0") | _NONZERO + _DIGIT.repeat(0, 63)
        return literal(b"-").repeat(0, 1) + whole + (literal(b".") + _DIGIT.repeat(1, 63)).repeat(0, 1)

    @property
    def samples(self) -> tuple[Decimal, ...]:
        return Decimal(0), Decimal("-12.50"), Decimal("0.001"), Decimal("9" * 40)

    def render(self, value: object) -> str:
        if not isinstance(value, Decimal) or not value.is_finite() or (value.is_signed() and not value):
            raise self._refusal(value)
        if abs(int(value.as_tuple().exponent)) > 63 or value.adjusted() > 63:
            raise self._refusal(value)
        return f"{value:f}"

    def read(self, text: str) -> Decimal:
        value = Decimal(text)
        if self.render(value) != text:
            raise self._refusal(text)
        return value


@explained_constructor
@dataclass(frozen=True)
class Truth(Alphabet[bool]):
    """A bool, as one of two words: ``Truth("1", "0")``."""

    true: str = "true"
    false: str = "false"

    def __post_init__(self) -> None:
        refuse_unwritable(self.true + self.false)
        if not self.true or not self.false or self.true == self.false:
            raise ValueError("Truth() needs two different words")

    @property
    def expected(self) -> str:
        return f"a bool (written as {self.true} or {self.false})"

    @property
    def python_type(self) -> type:
        return bool

    @property
    def language(self) -> Language:
        return alternation((literal(self.true.encode()), literal(self.false.encode())))

    @property
    def samples(self) -> tuple[bool, ...]:
        return True, False

    def render(self, value: object) -> str:
        if type(value) is not bool:
            raise self._refusal(value)
        return self.true if value else self.false

    def read(self, text: str) -> bool:
        return text == self.true
