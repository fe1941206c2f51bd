"""Codecs and scores as expressions of the runtime package."""

from __future__ import annotations

from typing import Any

from keywright.tools.generators.typescript.alphabets import Alphabets, Expression
from keywright.tools.generators.typescript.notation import Unsupported, literal, string
from keywright.tools.generators.typescript.shapes import Definitions
from keywright.tools.schema.document import CodecSchema, ScoreSchema

__all__ = ["Codecs"]

_SIMPLE = {
    "text": Expression("kw.text", "string"),
    "bytes": Expression("kw.bytes", "Uint8Array"),
    "int64": Expression("kw.int64", "bigint"),
    "uint64": Expression("kw.uint64", "bigint"),
    "float": Expression("kw.float", "number"),
    "rfc3339": Expression("kw.rfc3339", "Date"),
    "epoch-ms": Expression("kw.epochMs", "Date"),
    "epoch-seconds": Expression("kw.epochSeconds", "Date"),
    "epoch-float": Expression("kw.epochFloat", "Date"),
}
_SCORES = {
    "float": Expression("kw.floatScore", "number"),
    "int": Expression("kw.intScore", "number"),
    "epoch-ms": Expression('kw.timeScore("ms")', "Date"),
    "epoch-seconds": Expression('kw.timeScore("s")', "Date"),
    "epoch-float": Expression('kw.timeScore("fraction")', "Date"),
}
_REASONS = {
    "sealed": "a sealed value: the keys of seals are known to Python only",
    "pickled": "a Python pickle",
    "first-of": "a value that is stored in one of several forms",
}


class Codecs:
    """The codecs of one module."""

    def __init__(self, alphabets: Alphabets, definitions: Definitions) -> None:
        self._alphabets = alphabets
        self._definitions = definitions
        self.messagepack = False
        """Whether the module needs `@msgpack/msgpack`."""

    def expression(self, codec: CodecSchema) -> Expression:
        """Return a codec and the type of its values. Raise Unsupported with the reason if there is none."""
        if codec.codec in _SIMPLE:
            return _SIMPLE[codec.codec]
        match codec.codec:
            case "boolean":
                words = [string(codec.true or ""), string(codec.false or "")]
                plain = (codec.true, codec.false) == ("1", "0")
                return Expression(f"kw.boolean({'' if plain else ', '.join(words)})", "boolean")
            case "flag":
                return Expression(f"kw.flag({string(codec.true or '')})", "boolean")
            case "enum" | "literal":
                values = [literal(value) for value in codec.values]
                return Expression(f"kw.literal({', '.join(values)})", " | ".join(values))
            case "id":
                assert codec.alphabet is not None
                alphabet = self._alphabets.constant(codec.alphabet)
                return Expression(f"kw.id({alphabet.code})", alphabet.type)
            case "duration":
                return Expression(f"kw.duration({string(codec.unit or 's')})", "kw.Duration")
            case "json" | "msgpack":
                return self._structured(codec)
        return self._around(codec)

    def score(self, score: ScoreSchema) -> Expression:
        """Return a score and the type of its values."""
        if score.score == "duration":
            found = Expression(f"kw.durationScore({string(score.unit or 's')})", "kw.Duration")
        elif score.score in _SCORES:
            found = _SCORES[score.score]
        else:
            raise Unsupported(f"scores that are {score.words}")
        return Expression(f"kw.orNever({found.code})", f"{found.type} | null") if score.or_never else found

    def _structured(self, codec: CodecSchema) -> Expression:
        if not codec.strict:
            raise Unsupported("values whose numbers may be stored as text")
        kind = self._definitions.type_of(codec.schema, codec.codec)
        shape = self._definitions.shape(codec.schema)
        known = ", definitions" if "$ref" in shape else ""
        if codec.codec == "json":
            return Expression(f"kw.json<{kind}>({shape}{known})", kind)
        self.messagepack = True
        return Expression(f"messagePack<{kind}>({shape}{known})", kind)

    def _around(self, codec: CodecSchema) -> Expression:
        if codec.codec in _REASONS:
            raise Unsupported(_REASONS[codec.codec])
        if codec.inner is None:
            raise Unsupported(f"the codec {codec.name or codec.codec!r}, which only Python knows")
        inner = self.expression(codec.inner)
        match codec.codec:
            case "custom":
                return inner
            case "secret":
                return Expression(f"kw.secret({inner.code})", f"kw.Secret<{inner.type}>")
            case "empty-as-none":
                return Expression(f"kw.emptyAsNull({inner.code})", f"{inner.type} | null")
            case "compressed" if codec.form in ("zlib", "gzip", "zstd"):
                return Expression(
                    f"kw.compressed({string(codec.form)}, {inner.code}{_options(codec)})", inner.type
                )
        raise Unsupported(
            f"values compressed with {codec.form}" if codec.form else f"the codec {codec.codec!r}"
        )


def _options(codec: CodecSchema) -> str:
    given: dict[str, Any] = {"level": codec.level, "minSize": codec.min_size, "maxSize": codec.max_size}
    return f", {literal({name: value for name, value in given.items() if value is not None})}"
