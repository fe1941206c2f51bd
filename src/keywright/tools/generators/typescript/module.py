"""The TypeScript module of a schema: keyspaces, types, keys and relations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

from keywright.tools.generators.typescript.alphabets import Alphabets
from keywright.tools.generators.typescript.codecs import Codecs
from keywright.tools.generators.typescript.fields import Shapes
from keywright.tools.generators.typescript.notation import (
    Unsupported,
    call,
    camel,
    comment,
    identifier,
    literal,
    regex,
    string,
)
from keywright.tools.generators.typescript.shapes import Definitions
from keywright.tools.schema.document import (
    ExpirySchema,
    KeySchema,
    KeyspaceSchema,
    PartSchema,
    RelationSchema,
    Schema,
    TemplateSchema,
)

__all__ = ["typescript"]

_RELATIONS = {
    "one-to-one": "oneToOne",
    "many-to-one": "manyToOne",
    "many-to-many": "manyToMany",
    "index": "index",
}


def typescript(schema: Schema) -> str:
    """Return the module of a schema. It is the same for the same schema."""
    return _Module(schema).text()


class _Module:
    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._alphabets = Alphabets()
        self._definitions = Definitions(schema.definitions)
        self._codecs = Codecs(self._alphabets, self._definitions)
        self._shapes = Shapes(self._codecs, self._definitions.taken)
        self._values: set[str] = set()
        self._usable: dict[tuple[str, str], str] = {}
        """The keys that can be read and written, by keyspace and name."""
        self._names: dict[tuple[str, str], str] = {}
        self._made: set[tuple[str, str]] = set()

    def text(self) -> str:
        spaces = [(space, self._named(camel(space.name))) for space in self._schema.keyspaces]
        for space, _ in spaces:
            for key in space.keys:
                self._names[space.name, key.name] = self._named(key.name)
        bodies = [
            line for space, name in spaces for line in (*self._keys(space, name), *self._relations(space))
        ]
        codecs = 'import { messagePack } from "keywright/messagepack";\n' if self._codecs.messagepack else ""
        declared = "".join(
            f"{comment(space.doc)}export const {name} = kw.keyspace({string(space.name)}{_bound(space)});\n\n"
            for space, name in spaces
        )
        names = "".join(f"  {name},\n" for place, name in self._names.items() if place in self._made)
        return "".join(
            [
                f"// Written by `keywright generate typescript {self._schema.model}`: do not edit.\n\n",
                f'import * as kw from "keywright";\n{codecs}\n',
                declared,
                *self._alphabets.lines,
                *self._definitions.lines(),
                *self._shapes.lines,
                *bodies,
                f"\n/** Every kind of key, by name. */\nexport const keys = {{\n{names}}} as const;\n",
            ]
        )

    def _named(self, name: str) -> str:
        found = identifier(name, self._values)
        self._values.add(found)
        return found

    def _keys(self, space: KeyspaceSchema, const: str) -> Iterator[str]:
        for key in space.keys:
            yield "\n" + self._key(space, key, const)

    def _key(self, space: KeyspaceSchema, key: KeySchema, const: str) -> str:
        name = self._names[space.name, key.name]
        try:
            template = self._template(key.template)
            options = self._options(space, key)
        except Unsupported as reason:
            return f"// {name} ({key.template.source}) is left out: {reason}.\n"
        try:
            made = self._kind(key, const, template, options)
            refused = ""
            self._usable[space.name, key.name] = name
        except Unsupported as reason:
            refused = f"Its values are not read or written from TypeScript: {reason}."
            made = call("kw.namesOnly", const, template, string(key.redis_type), string(str(reason)), options)
        self._made.add((space.name, key.name))
        expiry = "" if key.expiry is None else f"It expires: {key.expiry.words}."
        doc = comment(key.doc, f"Its names are `{space.lead}{key.template.source}`.", expiry, refused)
        return f"{doc}export const {name} = {made};\n"

    def _kind(self, key: KeySchema, space: str, template: str, options: str) -> str:
        _refuse_versions(key)

        def made(function: str, *content: str) -> str:
            return call(f"kw.{function}", space, template, *content, options)

        match key.kind:
            case "counter" | "lease" | "claim":
                return made(key.kind)
            case "bitmap":
                return made("bitmap", str(key.bits or 2**32))
            case "bit fields":
                return made("bitFields", self._shapes.bits(key.shapes[0]))
            case "record":
                return made("record", self._shapes.fields(key.shapes).code)
            case "stream":
                return made("stream", self._shapes.fields(key.shapes).code, literal(list(key.groups)))
        if key.value is None:
            raise Unsupported(f"the type {key.redis_type}")
        value = self._codecs.expression(key.value).code
        match key.kind:
            case "map" if key.field is not None:
                return made("map", self._codecs.expression(key.field).code, value)
            case "sorted set" if key.score is not None:
                return made("sortedSet", value, self._codecs.score(key.score).code)
            case "value" | "set" | "list" | "geo" | "hyperloglog":
                return made(key.kind, value)
            case "due queue":
                return made("dueQueue", value)
            case "json":
                return made("jsonDocument", value)
        raise Unsupported(f"keys of the kind {key.kind!r}")

    def _template(self, template: TemplateSchema) -> str:
        if template.encoding != "utf-8":
            raise Unsupported("its names are not UTF-8")
        parts = []
        for segment, together in groupby(template.parts, key=lambda part: part.segment):
            listed = [_part(part) for part in together]
            parts += [f"{{ segment: [{', '.join(listed)}] }}"] if segment else listed
        variables = []
        for variable in template.variables:
            constant = self._alphabets.constant(variable.alphabet).code
            variables.append(
                f"{variable.name}: {f'kw.optional({constant})' if variable.optional else constant}"
            )
        alphabets = f"{{ {', '.join(variables)} }}" if variables else "{}"
        name = f"[{', '.join(parts)}]"
        return call("kw.template", string(template.source), name, regex(template.pattern), alphabets)

    def _options(self, space: KeyspaceSchema, key: KeySchema) -> str:
        options = []
        if key.expiry is not None:
            options.append(f"expiry: {_expiry(key.expiry)}")
        if key.hides:
            options.append("hides: true")
        superiors = [
            each
            for each in space.keys
            if each.name in key.yields_to or (key.fallback and each is not key and not each.fallback)
        ]
        for each in superiors:
            if each.template.encoding != "utf-8":
                raise Unsupported(f"it leaves names to {each.name}, whose names are not UTF-8")
        if superiors:
            known = [self._names[space.name, each.name] for each in superiors]
            options.append(f"yieldsTo: () => [{', '.join(known)}]")
        return f"{{ {', '.join(options)} }}" if options else ""

    def _relations(self, space: KeyspaceSchema) -> Iterator[str]:
        for relation in space.relations:
            sides = [relation.forward, relation.inverse]
            indexes = [relation.index, relation.inverse_index]
            needed = [*sides, *(each for each in indexes if each is not None)]
            missing = [each for each in needed if (space.name, each) not in self._usable]
            if missing:
                listed = ", ".join(missing)
                yield f"\n// The relation {relation.name} is left out: {listed} cannot be written.\n"
                continue
            yield "\n" + self._relation(space, relation)

    def _relation(self, space: KeyspaceSchema, relation: RelationSchema) -> str:
        def key(name: str | None) -> str:
            return "null" if name is None else self._usable[space.name, name]

        ending = "Index" if relation.type == "index" else "Relation"
        name = self._named(camel(relation.forward) + ending)
        arguments = [string(relation.name), key(relation.forward), key(relation.inverse)]
        if relation.type in ("one-to-one", "many-to-one"):
            arguments.append(key(relation.index))
        if relation.type == "one-to-one":
            arguments.append(key(relation.inverse_index))
        while arguments[-1] == "null":
            arguments.pop()
        doc = comment(f"{relation.name}, {relation.type}. {relation.on_one_server}", "A cluster is refused.")
        return f"{doc}export const {name} = {call(f'kw.{_RELATIONS[relation.type]}', *arguments)};\n"


def _bound(space: KeyspaceSchema) -> str:
    given = {"prefix": space.prefix, "version": space.version}
    present = {name: value for name, value in given.items() if value}
    return f", {literal(present)}" if present else ""


def _part(part: PartSchema) -> str:
    if part.variable is not None:
        return f"{{ variable: {string(part.variable)} }}"
    if part.text is None:
        raise Unsupported("its names are not UTF-8")
    return string(part.text)


def _expiry(expiry: ExpirySchema) -> str:
    given: dict[str, object] = {}
    if expiry.optional:
        given["optional"] = True
    computed = expiry.computed_from_key or expiry.computed_from_value
    if computed is not None:
        given["computed"] = computed.name
    if expiry.ttl_ms is not None:
        given["ttlMs"] = expiry.ttl_ms
    if expiry.jitter:
        given["jitter"] = expiry.jitter
    if expiry.since != "last write":
        given["since"] = expiry.since
    if expiry.moment is not None:
        given["at"] = expiry.moment
    return literal(given)


def _refuse_versions(key: KeySchema) -> None:
    reasons: Iterable[tuple[object, str]] = (
        (key.moved_from, "keys may still have a former name, which Python moves when it reads them"),
        (key.upgrades, "older versions may still be stored, which Python upgrades when it reads them"),
        (key.field_expiry, "its entries have an expiry of their own"),
    )
    for present, reason in reasons:
        if present:
            raise Unsupported(reason)
