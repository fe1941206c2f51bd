"""Schema files: their format, what they say about values and names, and the way back."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]  # it ships no types
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import every_kind
from declaring import key_classes
from keywright import Key, Keyspace
from keywright.errors import UsageError
from keywright.keyspace.codecs import Json
from keywright.tools import Model, load_model
from keywright.tools.lock import parsed_lock
from keywright.tools.plugins import model_names, program_names
from keywright.tools.schema import keyspaces_from_schema, parsed_schema, schema_of, schema_text
from keywright.tools.schema.json_schema import PUBLISHED, format_schema

INVENTED = Model("shop", (every_kind.shop, every_kind.archive))
NAMES = [*model_names(), *program_names()]
FORMAT = jsonschema.Draft202012Validator(json.loads(PUBLISHED.read_text("utf-8")))


MODELS = [
    pytest.param(lambda: INVENTED, id="every kind"),
    *(pytest.param(lambda name=name: load_model(name), id=name) for name in NAMES),
]


@cache
def whole() -> str:
    return schema_text(schema_of(INVENTED))


def restored(model: Model) -> Model:
    schema = parsed_schema(schema_text(schema_of(model)).encode(), model.name)
    return Model(model.name, keyspaces_from_schema(schema))


def some_keys(kind: type[Key]) -> Iterator[Key]:
    """Yield a few keys of a class: each variable takes its samples in turn."""
    alphabets = kind.declaration.template.alphabets
    samples = {name: alphabet.samples for name, alphabet in alphabets.items()}
    for turn in range(max(map(len, samples.values()), default=1)):
        values = {name: each[turn % len(each)] for name, each in samples.items()}
        name = kind.declaration.template.render(
            [values[variable] for variable in kind.declaration.template.variables]
        )
        key = kind.parse(name)
        if key is not None:
            yield key


def test_the_published_json_schema_is_that_of_the_structs() -> None:
    assert PUBLISHED.read_text("utf-8") == format_schema(), "python -m keywright.tools.schema.json_schema"


@pytest.mark.parametrize("model", MODELS)
def test_a_schema_file_is_valid_and_comes_back_as_an_equal_keyspace(model: Any) -> None:
    declared = model()
    text = schema_text(schema_of(declared))
    found = json.loads(text)
    FORMAT.validate(found)
    jsonschema.Draft202012Validator.check_schema({"$defs": found["$defs"]})
    assert text == schema_text(schema_of(declared))
    again = restored(declared)
    assert schema_text(schema_of(again)) == text
    for before, after in zip(declared.spaces, again.spaces, strict=True):
        for one, other in zip(before, after, strict=True):
            for key in some_keys(one):
                assert bytes(other.parse(bytes(key)) or b"") == bytes(key), key
            for codec, twin in zip(one.declaration.codecs, other.declaration.codecs, strict=True):
                for sample in () if codec.sealed else codec.samples:
                    data = codec.encode(sample)
                    written = twin.encode(twin.decode(data))
                    # A dataclass is written in the order in which its attributes were set.
                    assert written == data or codec.decode(written) == sample, (one, sample)


@pytest.mark.parametrize("model", MODELS)
def test_patterns_match_the_names_and_divide_them_as_the_template_does(model: Any) -> None:
    declared = model()
    for space, described in zip(declared.spaces, schema_of(declared).keyspaces, strict=True):
        for kind, key in zip(space, described.keys, strict=True):
            template = key.template
            encoding = "latin-1" if template.encoding == "bytes" else "utf-8"
            variables = {each.name: each.alphabet for each in template.variables}
            for made in some_keys(kind):
                found = re.fullmatch(template.pattern, bytes(made).decode(encoding))
                assert found is not None, made
                texts = dict(zip(kind.declaration.template.variables, found.groups(), strict=True))
                if template.several_divisions:
                    continue
                for name, text in texts.items():
                    assert text is None or re.fullmatch(variables[name].pattern, text), (made, name)
                name = "".join(
                    part.text or texts[part.variable or ""] or ""
                    for part in template.parts
                    if not part.segment
                )
                if not any(part.segment or part.base64 for part in template.parts):
                    assert name.encode(encoding) == bytes(made)


@pytest.mark.parametrize("model", MODELS)
def test_stored_json_is_valid_by_the_json_schema_of_its_codec(model: Any) -> None:
    declared = model()
    schema = schema_of(declared)
    for space, described in zip(declared.spaces, schema.keyspaces, strict=True):
        for kind, key in zip(space, described.keys, strict=True):
            codec = kind.declaration.storage.item
            if isinstance(codec, Json) and key.value is not None:
                assert key.value.codec == "json"
                validator = jsonschema.Draft202012Validator({**key.value.schema, "$defs": schema.definitions})
                for sample in codec.samples:
                    validator.validate(json.loads(codec.encode(sample)))


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_any_keyspace_comes_back_from_its_schema(data: st.DataObject) -> None:
    space = Keyspace("drawn", "Drawn at random.", prefix=data.draw(st.sampled_from([None, "p", "{t}"])))
    kind, values = data.draw(key_classes(space))
    model = Model("drawn", (space,))
    text = schema_text(schema_of(model))
    FORMAT.validate(json.loads(text))
    again = restored(model)
    assert schema_text(schema_of(again)) == text
    key = kind(**{name: data.draw(strategy) for name, strategy in values.items()})
    twin = next(iter(again.spaces[0])).parse(bytes(key))
    assert twin is not None
    assert bytes(twin) == bytes(key)


def test_what_is_code_comes_back_as_a_stand_in_that_says_so() -> None:
    (shop, _) = restored(INVENTED).spaces
    kinds = {kind.__name__: kind for kind in shop}
    weights: Any = kinds["Weights"]
    assert weights.declaration.decode(b"\x07\x00\x00\x00") == b"\x07\x00\x00\x00"
    expiry = kinds["Tiered"].declaration.expiry
    assert expiry is not None
    with pytest.raises(UsageError, match="of_tier is a function of the program"):
        expiry.of_key(None)
    events: Any = kinds["Events"]
    assert bytes(events.of("a path")) == bytes(every_kind.Events.of("a path"))


def test_a_codec_of_the_program_may_name_one_that_other_languages_know() -> None:
    drc = schema_of(load_model("drc"))
    kinds = {key.value.inner.codec for key in drc.keyspaces[0].keys if key.value and key.value.inner}
    assert kinds == {"json"}


def test_the_example_of_the_specification_is_a_schema_file() -> None:
    page = (Path(__file__).parents[2] / "docs/schema.md").read_text("utf-8")
    example = page.split("```json\n")[1].split("```")[0]
    FORMAT.validate(json.loads(example))
    (shop,) = keyspaces_from_schema(parsed_schema(example.encode(), "the page"))
    again = json.loads(schema_text(schema_of(Model("shop", (shop,)))))
    stock = json.loads(example)["keyspaces"][0]["keys"][0]
    made = again["keyspaces"][0]["keys"][0]
    assert {name: made[name] for name in stock} == stock


def edited(path: str, value: Any) -> bytes:
    """Return the invented schema with one member replaced."""
    found = json.loads(whole())
    *way, last = path.split("/")
    place = found
    for step in way:
        place = place[int(step) if step.isdigit() else step]
    place[last] = value
    return json.dumps(found).encode()


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("format", 3, "has the format 3"),
        ("format", "2", "is not a lock file"),
        ("keyspaces", None, "is not a schema file"),
        ("keyspaces/0/keys/0/kind", 7, "is not a schema file"),
        ("keyspaces/0/keys/0/template/source", "article:{<sku>", "cannot be declared"),
        ("keyspaces/0/keys/0/value", None, "without a codec"),
        ("keyspaces/0/keys/0/value/schema", {"$ref": "#/$defs/Nowhere"}, "does not define"),
        ("keyspaces/0/keys/0/value/schema", {"enum": 3}, "is not understood"),
        ("keyspaces/0/keys/0/template/variables/0/alphabet/parameters", {"size": 1}, "invalid parameters"),
        ("keyspaces/0/keys/1/part_of", "Nobody", "names 'Nobody'"),
        ("keyspaces/0/relations/0/type", "some-to-some", "relation of type 'some-to-some'"),
    ],
)
def test_a_malformed_schema_file_is_refused_with_its_reason(path: str, value: Any, message: str) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        parsed_lock(edited(path, value), "the file")


def test_a_schema_nested_too_deeply_is_refused() -> None:
    deep: Any = {}
    for _ in range(150):
        deep = {"type": "array", "items": deep}
    with pytest.raises(UsageError, match="nested deeper"):
        parsed_lock(edited("keyspaces/0/keys/0/value/schema", deep), "the file")


def test_members_that_are_not_known_are_ignored() -> None:
    later = edited("keyspaces/0/keys/0/later", {"more": 1})
    assert parsed_schema(later, "the file") == schema_of(INVENTED)


DAMAGE: tuple[Any, ...] = (
    None,
    True,
    -1,
    2**70,
    "",
    "<a>",
    "\x00",
    "custom",
    [],
    {},
    {"x": 1},
    {"$ref": "#/$defs/Kit"},
    {"enum": []},
    {"properties": {}},
    "(((",
)


def test_a_damaged_schema_file_is_refused_or_read_and_nothing_else() -> None:
    noise = random.Random(22)
    outcomes = set()
    for _ in range(30):
        damaged = json.loads(whole())
        node: Any = damaged
        while True:
            place = noise.choice(list(node) if isinstance(node, dict) else range(len(node)))
            if isinstance(node[place], dict | list) and node[place] and noise.random() < 0.9:
                node = node[place]
                continue
            node[place] = noise.choice(DAMAGE)
            break
        try:
            parsed_lock(json.dumps(damaged).encode(), "the file")
            outcomes.add("read")
        except UsageError:
            outcomes.add("refused")
    assert outcomes == {"read", "refused"}
