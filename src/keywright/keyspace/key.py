"""The key as a type: a class is a template, its instances are concrete keys.

A subclass with `key=` gets a generated `__init__` that checks every variable against its alphabet
and renders the name once; instances are immutable, hashable and compare by name.
"""

from __future__ import annotations

import inspect
import operator
import types
import typing
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from itertools import groupby
from typing import Any, ClassVar, NamedTuple, Self, TypeAlias, TypedDict, TypeVar, Unpack, dataclass_transform

from keywright.errors import DeclarationError, UsageError, VariableError
from keywright.keyspace.alphabets import Alphabet, Derived, alphabet_of
from keywright.keyspace.cached_reads import Cached, required
from keywright.keyspace.call import Call, Command, as_is
from keywright.keyspace.codecs import Codec
from keywright.keyspace.declaration import Declaration
from keywright.keyspace.expiry import Expiry
from keywright.keyspace.field_expiry import FieldExpiry
from keywright.keyspace.misuse import explained
from keywright.keyspace.renames import move_first
from keywright.keyspace.space import Keyspace
from keywright.keyspace.storage import storage_of
from keywright.keyspace.template import Part, Template, encoded
from keywright.keyspace.wires import Effect, Operation

EXISTS = Operation("exists", b"EXISTS", Effect.READ)
DELETE = Operation("delete", b"UNLINK", Effect.REPEATABLE)
TTL = Operation("ttl", b"PTTL", Effect.READ)
EXPIRE = Operation("expire", b"PEXPIRE", Effect.REPEATABLE)
EXPIRE_AT = Operation("expire_at", b"PEXPIREAT", Effect.REPEATABLE)
PERSIST = Operation("persist", b"PERSIST", Effect.REPEATABLE)
TOUCH = Operation("touch", b"TOUCH", Effect.REPEATABLE)
TYPE = Operation("type", b"TYPE", Effect.READ)
MEMORY = Operation("memory", b"MEMORY", Effect.READ)
DUMP = Operation("dump", b"DUMP", Effect.READ)


# A function kept on a class; typed as a Callable it would be taken for a method.
Unbound: TypeAlias = Any
K = TypeVar("K")


class KeyOptions(TypedDict, total=False):
    """What a class declares beside its kind and variables: ``class Order(…, key="order:<id>", …)``."""

    key: str
    """The template of its names."""
    space: Keyspace
    expiry: Expiry | None
    cached: Cached
    """Whether reads of unchanged keys are answered from memory, or how long at most."""
    part_of: type[Key]
    """The class whose keys this one is part of: `erase` deletes both."""
    moved_from: str | Sequence[str]
    """Former templates; reads move keys from there."""
    yields_to: type[Key] | Sequence[type[Key]]
    """The classes that own the names which this one could make as well."""
    fallback: bool
    """Whether it has the names that no other class of the keyspace makes."""
    open: bool
    """Whether values may have members that are not declared."""


@dataclass_transform(frozen_default=True, kw_only_default=False)
class Key:
    """Any declared key. Subclass one of its kinds: Value, Record, Set, …"""

    redis_type: ClassVar[str] = "none"
    kind: ClassVar[str] = "key"
    declaration: ClassVar[Declaration]
    """What the class declares: template, keyspace, expiry, codecs, versions."""
    _template: ClassVar[Template]
    _space: ClassVar[Keyspace]
    _expiry: ClassVar[Expiry | None] = None
    _cached: ClassVar[Cached] = False
    _field_expiry: ClassVar[FieldExpiry | None] = None
    _codecs: ClassVar[tuple[Codec[Any], ...]] = ()
    _derived: ClassVar[dict[str, Derived]] = {}
    _part_of: ClassVar[type[Key] | None] = None
    _yields_to: ClassVar[tuple[type[Key], ...]] = ()
    _fallback: ClassVar[bool] = False
    _yields: ClassVar[bool] = False
    _former: ClassVar[tuple[type[Key], ...]] = ()
    hides: ClassVar[tuple[str, ...]] = ()
    """Fields of its objects, at any depth, that no tool shows: credentials in a document kept as it came."""
    _open: ClassVar[bool] = False
    _sealed: ClassVar[bool] = False
    _secret: ClassVar[bool] = False
    _storage: ClassVar[Unbound] = staticmethod(storage_of)
    _render: ClassVar[Unbound]
    # Set per instance; ClassVars so that they are no constructor arguments.
    _name: ClassVar[bytes]
    _values: ClassVar[tuple[Any, ...]]

    def __init_subclass__(cls, **options: Unpack[KeyOptions]) -> None:
        super().__init_subclass__()
        key, space = options.get("key"), options.get("space")
        if key is None:
            return
        if space is None:
            raise DeclarationError(cls.__name__, "belongs to no keyspace", "Add space=your_keyspace.")
        variables = variables_of(cls)
        alphabets = {name: each.alphabet for name, each in variables.items()}
        cls._template = Template(key, alphabets)
        check_optional(cls, variables)
        cls._derived = {name: each.derived for name, each in variables.items() if each.derived}
        cls._space = space
        cls._expiry = _fitting(cls, options.get("expiry"))
        cls._part_of = options.get("part_of")
        yields_to = options.get("yields_to", ())
        cls._yields_to = (yields_to,) if isinstance(yields_to, type) else tuple(yields_to)
        cls._fallback = options.get("fallback", False)
        cls._yields = cls._fallback or bool(cls._yields_to)
        cls._open = options.get("open", False)
        cls._codecs = tuple(cls._declare())
        cls._sealed = any(codec.sealed for codec in cls._codecs)
        cls._secret = any(codec.secret for codec in cls._codecs)
        cls._cached = required(cls, options.get("cached", False))
        generate(cls, list(alphabets), alphabets)
        cls.declaration = Declaration(cls)
        space.keys.append(cls)
        moved_from = options.get("moved_from", ())
        cls._former = tuple(_former(cls, (moved_from,) if isinstance(moved_from, str) else moved_from))
        if cls._former:
            move_first(cls)

    @classmethod
    def _declare(cls) -> Iterable[Codec[Any]]:
        """Resolve the type arguments of the kind. Return the codecs of its parts."""
        raise NotImplementedError

    @classmethod
    def parse(cls, name: bytes) -> Self | None:
        """Return the key of this name, given without the bound prefix, or None."""
        values = cls._template.parse(name)
        if values is None or (cls._yields and cls._owner_of(name) is not cls):
            return None
        # The template may name its variables in another order than the class does.
        return cls(**dict(zip(cls._template.variables, values, strict=True)))

    @classmethod
    def _owner_of(cls, name: bytes) -> type[Key]:
        """Return the class of a name that this template makes: itself, or one to which it yields."""
        for kind in cls.declaration.superiors():
            if kind._template.parse(name) is not None:
                return kind
        return cls

    @classmethod
    def of(cls, source: str) -> Self:
        """Return the key whose derived variables are computed from `source`."""
        missing = [name for name in cls._template.variables if name not in cls._derived]
        if missing or not cls._derived:
            raise DeclarationError(
                cls.__name__,
                f"not every variable is derived ({', '.join(missing) or 'it has none'})",
                "Annotate the variables with Derived, or call the constructor.",
            )
        return cls.made(tuple(cls._derived[name].by(source) for name in _arguments(cls)))

    @classmethod
    @explained
    def names(cls, ids: Iterable[object]) -> list[bytes]:
        """Return the names of many keys, given as keys or as arguments of the constructor."""
        render = cls._render
        asked = list(ids)
        if not any(issubclass(kind, tuple | Key) for kind in set(map(type, asked))):
            return list(map(render, asked))
        return [
            each._name if isinstance(each, Key) else render(*each) if type(each) is tuple else render(each)
            for each in asked
        ]

    @classmethod
    @explained
    def names_along(
        cls,
        shared: tuple[object, ...],
        last: Sequence[Any],
        lead: bytes = b"",
        tails: list[bytes] | None = None,
    ) -> list[bytes]:
        """Return the names, after `lead`, of keys that differ in their last variable only.

        The values of `last` are checked together. `tails` are their texts, if the caller has them already.
        """
        variable = _arguments(cls)[-1]
        if last and not cls._yields and cls._template.marked_parts[-1] == Part(variable, is_variable=True):
            try:
                tails = tails or cls._template.alphabets[variable].render_all(last)
            except ValueError:
                pass  # one by one it is found which
            else:
                first: bytes = cls._render(*shared, last[0])
                stem = lead + first[: len(first) - len(tails[0])]
                return [stem + tail for tail in tails]
        return [lead + name for name in cls.names([(*shared, each) for each in last])]

    @classmethod
    def made(cls, identity: object) -> Self:
        """Return a key, given as a key, as its variable, or as a tuple of several."""
        if isinstance(identity, cls):
            return identity
        return _make(cls, identity if type(identity) is tuple else (identity,))

    def exists(self) -> Call[bool]:
        """Return whether the key exists."""
        return Command(EXISTS, self, (), bool)

    def delete(self) -> Call[bool]:
        """Delete the key without blocking the server (UNLINK). Return whether it existed."""
        return Command(DELETE, self, (), bool)

    def ttl(self) -> Call[timedelta | None]:
        """Return the time to live, or None if the key has no expiry or does not exist."""
        return Command(TTL, self, (), _ttl)

    @explained
    def expire(self, after: timedelta) -> Call[bool]:
        """Let the key expire after a time. Return False if it does not exist."""
        return Command(EXPIRE, self, (round(after / timedelta(milliseconds=1)),), bool)

    @explained
    def expire_at(self, moment: datetime) -> Call[bool]:
        """Let the key expire at a moment. Return False if it does not exist."""
        return Command(EXPIRE_AT, self, (round(moment.timestamp() * 1000),), bool)

    def persist(self) -> Call[bool]:
        """Remove the expiry. Return whether there was one."""
        return Command(PERSIST, self, (), bool)

    def touch(self) -> Call[bool]:
        """Mark the key as used, for eviction. Return whether it exists."""
        return Command(TOUCH, self, (), bool)

    def stored_type(self) -> Call[str]:
        """Return the Redis type that the server holds under this name, or 'none'."""
        return Command(TYPE, self, (), bytes.decode)

    def memory(self) -> Call[int | None]:
        """Return the memory of the key in bytes, as the server estimates it."""
        return _Memory(MEMORY, self, (), as_is)

    def dump(self) -> Call[bytes | None]:
        """Return the key as the server serialises it (DUMP)."""
        return Command(DUMP, self, (), as_is)

    def __bytes__(self) -> bytes:
        """Return the name without the bound prefix; `Context.name` has the full one."""
        return self._name

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other._name == self._name

    def __hash__(self) -> int:
        return hash(self._name)  # which bytes keep; keys of two classes hardly ever share a name

    def __repr__(self) -> str:
        named = zip(_arguments(type(self)), self._values, strict=True)
        inner = ", ".join(f"{name}={value!r}" for name, value in named)
        return f"{type(self).__name__}({inner})"


class _Memory(Command[int | None]):
    """MEMORY USAGE has its subcommand before the key."""

    def lower(self, context: Any) -> Any:
        wire = super().lower(context)
        return wire.with_arguments((b"MEMORY", b"USAGE", wire.name, b"SAMPLES", 0))


def type_arguments(cls: type[Any], kind: type[Any]) -> tuple[object, ...]:
    """Return the type arguments of the kind in a declaration: `Set[EventId]` gives (EventId,)."""
    for base in getattr(cls, "__orig_bases__", ()):
        origin = typing.get_origin(base)
        if isinstance(origin, type) and issubclass(origin, kind):
            given = typing.get_args(base)
            return given if origin is kind else _passed_on(origin, given, kind)
    raise DeclarationError(
        cls.__name__,
        "does not say what it stores",
        f"Write {kind.__name__}[...] with the type of its values.",
    )


def _passed_on(middle: type[Any], given: tuple[object, ...], kind: type[Any]) -> tuple[object, ...]:
    """Return the arguments that a kind in between passes on: `DueQueue[M]` gives (M, datetime)."""
    values = dict(zip(middle.__parameters__, given, strict=True))
    return tuple(values.get(argument, argument) for argument in type_arguments(middle, kind))


class Variable(NamedTuple):
    """A variable of a template."""

    alphabet: Alphabet[Any]
    derived: Derived | None
    may_be_none: bool


def variables_of(cls: type[Any]) -> dict[str, Variable]:
    """Return the variables that a class of keys or channels annotates, with their alphabets."""
    own = inspect.get_annotations(cls)
    try:
        hints = typing.get_type_hints(cls, include_extras=True)
    except NameError as error:
        raise DeclarationError(
            cls.__name__,
            f"the type of a variable is not known here ({error})",
            "Define the id types at module level, before the class.",
        ) from error
    variables = {}
    for name in own:
        hint = hints[name]
        if typing.get_origin(hint) is ClassVar:
            continue
        if name.startswith("_"):
            raise DeclarationError(
                cls.__name__, f"a variable cannot begin with an underscore: {name!r}", "Give it another name."
            )
        if hasattr(Key, name) or any(name in base.__dict__ for base in cls.__mro__[1:]):
            raise DeclarationError(
                cls.__name__,
                f"a variable cannot be called {name!r}: keys have an operation of that name",
                "Give the variable another name.",
            )
        try:
            variables[name] = Variable(
                *alphabet_of(_without_none(hint)), types.NoneType in typing.get_args(hint)
            )
        except TypeError as error:
            reason = f"variable <{name}>: {str(error).rstrip('.')}"
            raise DeclarationError(cls.__name__, reason, "Use a typed id.") from error
    return variables


def _without_none(hint: object) -> object:
    """Return X for `X | None`, the type of a variable in an optional segment."""
    if typing.get_origin(hint) not in (typing.Union, types.UnionType):
        return hint
    others = [each for each in typing.get_args(hint) if each is not types.NoneType]
    return others[0] if len(others) == 1 else hint


def check_optional(cls: type[Any], variables: dict[str, Variable]) -> None:
    """Require of the variables in optional segments, and of no others, that they may be None."""
    for name, (_, _, may_be_none) in variables.items():
        if may_be_none and name not in cls._template.optional:
            remedy = f"Write […] around <{name}> and what comes with it, or drop the None."
            raise DeclarationError(cls.__name__, f"<{name}> may be None, but is not optional", remedy)
        if name in cls._template.optional and not may_be_none:
            raise DeclarationError(
                cls.__name__, f"<{name}> is optional, but cannot be None", f"Declare {name}: … | None."
            )


def _former(cls: type[Key], templates: Iterable[str]) -> Iterable[type[Key]]:
    """Make a class for each former template; it has no former names."""
    if templates and cls._sealed:
        raise DeclarationError(
            cls.__name__,
            "a seal is bound to the name, so a sealed value cannot just be renamed",
            "Declare an Upgrade with moved_from, which opens it and seals it again.",
        )
    for template in templates:
        yield variant(cls, f"{cls.__name__} as {template}", template, cls._space)


def variant(cls: type[Key], name: str, template: str, space: Keyspace) -> type[Key]:
    """Make a class of the same keys under other names; it is not listed in the keyspace."""
    alphabets = {name: cls._template.alphabets[name] for name in _arguments(cls)}
    other: type[Key] = types.new_class(name, (cls,))
    other._template = Template(template, alphabets)
    other._space = space
    other.__doc__ = cls.__doc__
    generate(other, list(alphabets), alphabets)
    other.declaration = Declaration(other)
    return other


def _fitting(cls: type[Key], expiry: Expiry | None) -> Expiry | None:
    if expiry is not None and callable(expiry.moment) and cls.kind not in ("value", "record"):
        raise DeclarationError(
            cls.__name__,
            f"a {cls.kind} is not written as a whole, so no value tells when it expires",
            "Use expires_in, or expires_at with a fixed moment.",
        )
    return expiry


def _make(kind: Callable[..., K], arguments: tuple[object, ...]) -> K:
    # As a Callable: what a constructor takes is known of each declared class, not of Key.
    return kind(*arguments)


def _arguments(cls: type[Key]) -> list[str]:
    names: list[str] = cls.__dict__["_argument_names"]
    return names


def generate(cls: type[Any], names: list[str], alphabets: dict[str, Alphabet[Any]]) -> None:
    """Write `__init__` and `_render` for one class: a check and an f-string, no loops."""
    scope: dict[str, Any] = {
        "_refuse": _refuse,
        "_rendered": _rendered,
        "_encoded": encoded,
        "_own": _own,
        "_cls": cls,
    }
    own = "_own(_cls, {})" if cls._yields else "{}"
    places = [f"_v{index}" for index in range(len(names))]
    for index, name in enumerate(names):
        scope[f"_alphabet{index}"] = alphabets[name]
        scope[f"_match{index}"] = getattr(alphabets[name], "matcher", None)
    render_checks, rendered = _checked_text(cls, alphabets, dict(zip(names, places, strict=True)))
    if _INLINE_USES.isdisjoint(names):
        checks, text = _checked_text(cls, alphabets, {name: name for name in names})
        text = own.format(text)
    else:
        checks, text = "", f"_render({', '.join(names)})"
    kept = "".join(f"    _self.{place} = {name}\n" for place, name in zip(places, names, strict=True))
    source = (
        f"def _render({_parameters(cls, names, places)}):\n{render_checks}    return {own.format(rendered)}\n"
        f"def __init__(_self, {_parameters(cls, names, names)}):\n{checks}"
        f"    _self._name = {text}\n{kept}"
        f"def _values(_self):\n    return ({''.join(f'_self.{place}, ' for place in places)})\n"
    )
    exec(source, scope)
    # Read-only: plain attributes are faster to make, but could be set.
    for place, name in zip(places, names, strict=True):
        setattr(cls, name, property(operator.attrgetter(place)))
    cls._values = property(scope["_values"])
    cls._argument_names = names
    cls._render = staticmethod(scope["_render"])
    init = scope["__init__"]
    init.__qualname__ = f"{cls.__qualname__}.__init__"
    cls.__init__ = init


def _parameters(cls: type[Key], names: list[str], places: list[str]) -> str:
    """Return the parameters, with a default for optional ones that only optional ones follow."""
    needed = max(
        (index for index, name in enumerate(names) if name not in cls._template.optional), default=-1
    )
    return ", ".join(place if index <= needed else f"{place}=None" for index, place in enumerate(places))


# A variable of such a name would hide what the alphabets' inline checks call.
_INLINE_USES = frozenset({"type", "str", "int", "len"})


def _checked_text(
    cls: type[Key], alphabets: dict[str, Alphabet[Any]], variables: dict[str, str]
) -> tuple[str, str]:
    """Return source that checks the variables, and source of the expression for the name."""
    template = cls._template
    checks, shown = [], {}
    for index, (name, variable) in enumerate(variables.items()):
        condition = alphabets[name].inline(variable, f"_match{index}")
        optional = f"{variable} is None or " if name in template.optional else ""
        if condition is None:
            absent = f"None if {variable} is None else " if optional else ""
            rendered = f"_rendered(_cls, _alphabet{index}, {name!r}, {variable})"
            checks.append(f"    _text{index} = {absent}{rendered}\n")
            shown[name] = f"{{_text{index}}}"
        else:
            checks.append(
                f"    if not ({optional}{condition}): _refuse(_cls, {name!r}, _alphabet{index}, {variable})\n"
            )
            shown[name] = f"{{{variable}}}"
    literal = ""
    for group, together in groupby(template.marked_parts, key=lambda part: part.group):
        inside = list(together)
        text = "".join(
            shown[part.text] if part.is_variable else part.text.replace("{", "{{").replace("}", "}}")
            for part in inside
        )
        if not group:
            literal += text
            continue
        first, *others = (part.text for part in inside if part.is_variable)
        checks += [
            f"    if ({variables[first]} is None) is not ({variables[other]} is None): "
            f"raise _cls._template.incomplete({other!r}, {variables[other]})\n"
            for other in others
        ]
        checks.append(f"    _group{group} = '' if {variables[first]} is None else f{text!r}\n")
        literal += f"{{_group{group}}}"
    return "".join(checks), f"f{literal!r}.encode()" if template.is_text else f"_encoded(f{literal!r})"


def _own(kind: type[Key], name: bytes) -> bytes:
    """Return a name, if it is not one of a class to which this one yields."""
    owner = kind._owner_of(name)
    if owner is kind:
        return name
    key = owner.parse(name)
    raise UsageError(
        f"{name!r} is a name of {owner.__name__}, which has precedence over {kind.__name__}. "
        f"Use {owner.__name__ if key is None else repr(key)}, or other values."
    )


def _refuse(kind: type[Key], name: str, alphabet: Alphabet[Any], value: object) -> typing.NoReturn:
    raise VariableError(kind._template.source, name, alphabet.expected, value, alphabet.python_type)


def _rendered(kind: type[Key], alphabet: Alphabet[Any], name: str, value: object) -> str:
    try:
        return alphabet.render(value)
    except ValueError as error:
        raise VariableError(
            kind._template.source, name, alphabet.expected, value, alphabet.python_type
        ) from error


def _ttl(reply: int) -> timedelta | None:
    return None if reply < 0 else timedelta(milliseconds=reply)
