"""Scores of sorted sets: the meaning of the 64-bit float that Redis keeps."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from math import floor
from typing import Annotated, Any, Generic, TypeVar, get_args, get_origin

from keywright.keyspace.codecs import Codec, CodecError, Duration, EpochFloat, EpochMs, EpochSeconds, codec_of

__all__ = ["FLOAT", "Score", "ScoreCodec", "score_of"]

S = TypeVar("S")

EXACT = 2**53
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
INFINITE = float("inf")


class Score(Generic[S]):
    """The meaning and encoding of a score, which Redis keeps as a 64-bit float."""

    def __init__(
        self,
        meaning: str,
        accepts: Any,
        write: Callable[[S], int | float],
        read: Callable[[float], S],
        samples: tuple[Any, ...],
        *,
        form: str,
        unit: str | None = None,
        or_never: bool = False,
    ) -> None:
        self.meaning = meaning
        self.form = form
        """Its name in schema files; `unit` is that of a duration: s or ms."""
        self.unit = unit
        self.or_never = or_never
        self.accepts = accepts
        self.write = write
        self.read = read
        self.samples = samples


class ScoreCodec(Codec[Any]):
    """The codec of a score as the server prints it."""

    python_type = float

    def __init__(self, score: Score[Any]) -> None:
        self.score = score
        self.expected = score.meaning
        self.samples = score.samples

    def encode(self, value: Any) -> bytes:
        return str(self.score.write(value)).encode()

    def decode(self, data: bytes) -> Any:
        return self.score.read(float(data))


def score_of(hint: Any) -> Score[Any] | None:
    """Return the score of a type hint; None if it has none.

    A time is in milliseconds unless `Annotated[datetime, EpochSeconds]` or `EpochFloat` says otherwise. Of a
    time or duration that may be None, None is the score `inf`.
    """
    kind, marks = (get_args(hint)[0], hint.__metadata__) if get_origin(hint) is Annotated else (hint, ())
    arms = get_args(kind)
    never = len(arms) == 2 and type(None) in arms
    if never:
        kind = arms[arms[0] is type(None)]
    if not marks and not never and kind in _NUMBERS:
        return _NUMBERS[kind]
    if kind is datetime:
        score = _TIMES.get(type(codec_of(Annotated[kind, *marks]))) if marks else _TIMES[EpochMs]
    elif kind is timedelta:
        codec = codec_of(Annotated[kind, *marks]) if marks else Duration()
        score = _duration(codec) if isinstance(codec, Duration) else None
    else:
        return None
    return _or_never(score) if never and score is not None else score


def _exact(value: int) -> int:
    if not -EXACT <= value <= EXACT:
        raise CodecError("a score within ±2^53, beyond which a float loses digits", repr(value))
    return value


def _whole(number: float) -> int:
    if not number.is_integer():
        raise CodecError("a whole number within ±2^53", repr(number))
    return int(number)


def _number(value: float) -> float:
    if value != value:
        raise CodecError("a number", "nan, which has no place in an order")
    return float(value)


def _time(form: str, meaning: str, unit: timedelta, *, fraction: bool = False) -> Score[datetime]:
    def write(moment: datetime) -> int | float:
        return (moment - EPOCH) / unit if fraction else (moment - EPOCH) // unit

    def read(number: float) -> datetime:
        try:
            return EPOCH + unit * (number if fraction else floor(number))
        except (OverflowError, ValueError) as error:
            raise CodecError(meaning, repr(number)) from error

    samples = EPOCH, datetime(2024, 2, 29, tzinfo=UTC)
    return Score(meaning, datetime, write, read, samples, form=form)


def _duration(codec: Duration) -> Score[timedelta]:
    def read(number: float) -> timedelta:
        try:
            return codec.unit * number
        except (OverflowError, ValueError) as error:
            raise CodecError(codec.expected, repr(number)) from error

    return Score(
        codec.expected,
        timedelta,
        lambda span: span / codec.unit,
        read,
        codec.samples[:2],
        form="duration",
        unit=codec.symbol,
    )


def _or_never(score: Score[Any]) -> Score[Any]:
    def write(value: Any) -> int | float:
        return INFINITE if value is None else score.write(value)

    def read(number: float) -> Any:
        return None if number == INFINITE else score.read(number)

    accepts = (score.accepts, type(None))
    return Score(
        f"{score.meaning}, or inf for none",
        accepts,
        write,
        read,
        (*score.samples, None),
        form=score.form,
        unit=score.unit,
        or_never=True,
    )


FLOAT: Score[Any] = Score("a number", (int, float), _number, float, (0.0, 1.0), form="float")
_NUMBERS: dict[object, Score[Any]] = {
    float: FLOAT,
    int: Score("a whole number within ±2^53", int, _exact, _whole, (0, 1), form="int"),
}
_TIMES: dict[type[Codec[Any]], Score[Any]] = {
    EpochMs: _time("epoch-ms", "a time, in ms since the epoch", timedelta(milliseconds=1)),
    EpochSeconds: _time("epoch-seconds", "a time, in seconds since the epoch", timedelta(seconds=1)),
    EpochFloat: _time(
        "epoch-float",
        "a time, in seconds since the epoch with a fraction",
        timedelta(seconds=1),
        fraction=True,
    ),
}
