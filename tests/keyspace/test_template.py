"""A template writes names, reads exactly those back, and knows which others could be mistaken for them."""

from __future__ import annotations

import fnmatch
import timeit
from collections.abc import Mapping

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from keywright import (
    Alphabet,
    Bytes,
    Choice,
    Except,
    Hex,
    Pattern,
    Plain,
    Prefixed,
    Rest,
    Segment,
    SnowflakeText,
)
from keywright.errors import DeclarationError, UsageError, VariableError
from keywright.keyspace.alphabets import Signed64, Snowflake, Text, Unsigned64
from keywright.keyspace.slots import hash_tag
from keywright.keyspace.template import Part, Template
from keywright.operations import slot_of

VALUES: dict[Alphabet[object], st.SearchStrategy[object]] = {
    Unsigned64(): st.integers(0, 2**64 - 1),
    Signed64(): st.integers(-(2**63), 2**63 - 1),
    Plain(): st.text("ab0-_", min_size=1, max_size=3),
    Plain(extra=":"): st.text("a:", min_size=1, max_size=3),
    Text(): st.text("a:{}% é\u3000日", min_size=1, max_size=3),
    Choice("a", "b:c"): st.sampled_from(["a", "b:c"]),
    Prefixed("t3_"): st.text("az09", min_size=1, max_size=3).map("t3_{}".format),
    Hex(2): st.text("0123456789abcdef", min_size=2, max_size=2),
    Segment(): st.text("a {}\x06é", min_size=1, max_size=3),
    Bytes(): st.lists(st.sampled_from(b"a\x00{\xc3\xbc\xff"), min_size=1, max_size=3).map(bytes),
    Except(Plain(), "a", "ab"): st.sampled_from(["b", "abc", "aa", "0"]),
    Pattern("[a-c]{1,2}|:0"): st.sampled_from(["a", "bc", ":0"]),
}


@st.composite
def templates(draw: st.DrawFn) -> Template:
    chosen = draw(st.lists(st.sampled_from(list(VALUES)), min_size=1, max_size=3))
    literals = st.sampled_from([":", "a", "a:", ":a:", "", r"\{", r"\xff"])
    pieces = []
    for number in range(len(chosen)):
        text = draw(literals)
        optional = text and draw(st.booleans())
        pieces.append(f"[{text}<v{number}>]" if optional else f"{text}<v{number}>")
    return Template("".join(pieces) + draw(literals), {f"v{n}": each for n, each in enumerate(chosen)})


def values_of(draw: st.DataObject, template: Template) -> tuple[object, ...]:
    return tuple(
        None if name in template.optional and draw.draw(st.booleans()) else draw.draw(VALUES[alphabet])
        for name, alphabet in template.alphabets.items()
    )


@settings(max_examples=80, deadline=None)
@given(templates(), st.data())
def test_a_name_with_one_reading_parses_back_to_its_values(template: Template, data: st.DataObject) -> None:
    assume(template.two_readings() is None)
    values = values_of(data, template)
    assert template.parse(template.render(values)) == values


@settings(max_examples=80, deadline=None)
@given(templates(), templates(), st.data())
def test_templates_called_disjoint_never_share_a_name(a: Template, b: Template, data: st.DataObject) -> None:
    name = a.render(values_of(data, a))
    collision = a.collision(b)
    if collision is None:
        assert b.parse(name) is None
    else:
        assert a.parse(collision) is not None
        assert b.parse(collision) is not None
        assert len(collision) <= len(name) or b.parse(name) is None


@settings(max_examples=60, deadline=None)
@given(templates())
def test_two_readings_are_two_sets_of_values_with_one_name(template: Template) -> None:
    found = template.two_readings()
    if found is None:
        return
    name, first, second = found
    assert first != second
    for reading in (first, second):
        values = [
            None if text is None else template.alphabets[variable].parse(text)
            for variable, text in reading.items()
        ]
        assert template.render(values) == name


@settings(max_examples=60, deadline=None)
@given(templates(), st.data())
def test_a_glob_matches_every_name_it_stands_for(template: Template, data: st.DataObject) -> None:
    values = dict(zip(template.variables, values_of(data, template), strict=True))
    name = template.render(tuple(values.values())).decode("utf-8", "surrogateescape")
    bound = {variable: values[variable] for variable in values if data.draw(st.booleans())}
    for glob in (template.glob(), template.glob(bound)):
        # None of these values holds a character that glob escapes, so Python's matcher agrees with Redis.
        assert fnmatch.fnmatchcase(name, glob.decode("utf-8", "surrogateescape"))


def test_a_template_knows_its_parts() -> None:
    template = Template(
        "registry:db:{repository:<namespace>:<digest>}:lsn", {"namespace": Plain(), "digest": Hex(64)}
    )
    assert template.parts == ("registry:db:{repository:", "namespace", ":", "digest", "}:lsn")
    assert template.marked_parts[:2] == (Part("registry:db:{repository:", False), Part("namespace", True))
    assert template.variables == template.tag_variables == ("namespace", "digest")
    assert template.tag == ("repository:", "namespace", ":", "digest")
    assert template.literal_prefix == b"registry:db:{repository:"
    assert len(template.segments) == 5
    assert template.two_readings() is None


def test_the_tag_is_what_redis_hashes() -> None:
    template = Template("registry:db:{repository:<namespace>}:lsn", {"namespace": Plain()})
    assert hash_tag(template.render(["gitlab-org"])) == b"repository:gitlab-org"


def test_a_template_without_variables_is_one_name() -> None:
    template = Template("drc:v1:guilds", {})
    assert template.render([]) == template.glob() == template.literal_prefix == b"drc:v1:guilds"
    assert template.parse(b"drc:v1:guilds") == ()
    assert template.parse(b"drc:v1:guild") is None
    assert template.tag is None


@pytest.mark.parametrize(
    ("source", "alphabets", "reason"),
    [
        ("", {}, "empty"),
        ("a:<x>", {}, "no type"),
        ("a", {"x": Plain()}, "not in the template"),
        ("<x>:<x>", {"x": Plain()}, "twice"),
        ("a:<x", {"x": Plain()}, "stray"),
        ("a>b", {}, "stray"),
        ("a:<1x>", {}, "stray"),
        ("a:{b", {}, "one"),
        ("a:}b{", {}, "one"),
        ("a:{{b}}", {}, "one"),
        ("{a}:{b}", {}, "one"),
        ("a:{}", {}, "hash tag may be empty"),
        ("a:{<x>}", {"x": Text(allow_empty=True)}, "hash tag may be empty"),
        ("<x>:b", {"x": Rest()}, "not last"),
        ("{a:<x>}", {"x": Rest()}, "not last"),
        ("a b", {}, "' ' in a key name"),
        ("a\x00b", {}, "in a key name"),
        ("a\u2028b", {}, "in a key name"),
    ],
)
def test_a_template_that_means_nothing_sound_is_refused(
    source: str, alphabets: Mapping[str, Alphabet[object]], reason: str
) -> None:
    with pytest.raises(DeclarationError, match=reason) as refused:
        Template(source, alphabets)
    assert refused.value.subject == (source or "''")


@pytest.mark.parametrize("source", ["<x>:{a}", "{a:<x>}", "{<x>}", r"\{:{a}", r"{a\}}"])
def test_a_brace_that_could_move_the_hash_tag_is_refused(source: str) -> None:
    with pytest.raises(DeclarationError, match="may hold a brace, and move the hash tag"):
        Template(source, {"x": Segment()} if "<x>" in source else {})


def test_braces_after_the_hash_tag_are_data() -> None:
    template = Template(r"{<x>}:\{<y>\}", {"x": Plain(), "y": Segment()})
    name = template.render(["a", "{b}"])
    assert name == b"{a}:{{b}}"
    assert template.parse(name) == ("a", "{b}")
    assert hash_tag(name) == b"a"
    assert template.slot_known


def test_braces_as_data_leave_the_slot_unknown() -> None:
    template = Template("bull:<queue>:wait", {"queue": Segment()})
    assert template.parse(b"bull:{video}:wait") == ("{video}",)
    assert not template.slot_known
    assert not template.same_slot_as(template, {"queue": "queue"})
    fixed = Template(r"a\{b", {})
    assert not fixed.slot_known
    assert not fixed.slot_fixed


@pytest.mark.parametrize(
    ("source", "name"),
    [
        (r"celery\x06\x163", b"celery\x06\x163"),
        (r"a\ b", b"a b"),
        (r"\<\>\[\]\{\}\\", b"<>[]{}\\"),
        (r"\xff\xfe", b"\xff\xfe"),
        (r"\xc3\xbc", "ü".encode()),
    ],
)
def test_an_escape_stands_for_any_character_of_a_name(source: str, name: bytes) -> None:
    template = Template(source, {})
    assert template.render([]) == name
    assert template.parse(name) == ()
    assert template.literal_prefix == name
    assert template.collision(template) == name


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("a\\", "stray"),
        (r"a\n", "stray"),
        ("a[b", "without"),
        ("a]b", "pairs"),
        ("a[[:<x>]]", "pairs"),
        ("a[<x>]", "text that shows"),
        ("a[:]", "needs a variable"),
        ("a[:{<x>}]", "brace in an optional segment"),
        ("a{b[:<x>}]", "brace in an optional segment"),
    ],
)
def test_a_mark_that_means_nothing_is_refused(source: str, reason: str) -> None:
    with pytest.raises(DeclarationError, match=reason):
        Template(source, {"x": Plain()} if "<x>" in source else {})


def test_an_optional_segment_is_there_or_not() -> None:
    template = Template(
        "session:<user>[:<device>:<app>][@<region>]",
        dict.fromkeys(("user", "device", "app", "region"), Plain()),
    )
    assert template.two_readings() is None
    for values, name in [
        (("ann", None, None, None), b"session:ann"),
        (("ann", "phone", "mail", None), b"session:ann:phone:mail"),
        (("ann", None, None, "eu"), b"session:ann@eu"),
        (("ann", "phone", "mail", "eu"), b"session:ann:phone:mail@eu"),
    ]:
        assert template.render(values) == name
        assert template.parse(name) == values
    assert template.parse(b"session:ann:phone") is None
    with pytest.raises(VariableError, match="together with the other variables"):
        template.render(("ann", "phone", None, None))
    with pytest.raises(VariableError):
        template.render((None, None, None, None))
    assert template.glob() == b"session:*"
    assert template.glob({"device": "phone"}) == b"session:*:phone:*"
    assert template.glob({"device": None, "region": "eu"}) == b"session:*@eu"
    assert len(template.forms) == 4


def test_optional_segments_that_look_alike_have_two_readings() -> None:
    template = Template("a[:<x>][:<y>]", {"x": Plain(), "y": Plain()})
    found = template.two_readings()
    assert found is not None
    name, one, other = found
    assert template.render(tuple(one.values())) == template.render(tuple(other.values())) == name
    assert {one["x"], other["x"]} >= {None}


def test_a_value_outside_its_alphabet_names_template_and_variable() -> None:
    template = Template("meetup_event:<event>", {"event": Plain()})
    with pytest.raises(VariableError) as refused:
        template.render(["a:b"])
    assert (refused.value.template, refused.value.variable) == ("meetup_event:<event>", "event")
    assert refused.value.found == "a:b"
    with pytest.raises(VariableError):
        template.glob({"event": "a:b"})


def test_values_must_be_those_of_the_template() -> None:
    template = Template("meetup_event:<event>", {"event": Plain()})
    with pytest.raises(UsageError, match="has 1 variables, not 2"):
        template.render(["a", "b"])
    with pytest.raises(UsageError, match=r"no variable <user>\. It has <event>"):
        template.glob({"user": "a"})


@pytest.mark.parametrize(
    "name", [b"user:\xff", b"user:01", b"user:18446744073709551616", b"user:1\n", b"user:"]
)
def test_a_name_that_was_not_rendered_does_not_parse(name: bytes) -> None:
    assert Template("user:<user>", {"user": Snowflake()}).parse(name) is None


def test_an_event_id_with_a_colon_would_collide_and_the_colliding_name_is_shown() -> None:
    def pair(event: Alphabet[object]) -> tuple[Template, Template]:
        return (
            Template("meetup_event:<event>", {"event": event}),
            Template("meetup_event:<event>:event_series", {"event": event}),
        )

    event, series = pair(Plain())
    assert event.collision(series) is None
    event, series = pair(Plain(extra=":"))
    assert event.collision(series) == b"meetup_event:a:event_series"


def test_two_variables_side_by_side_are_separated_by_their_alphabets() -> None:
    assert Template("<a><b>", {"a": Unsigned64(), "b": Prefixed("t3_")}).two_readings() is None
    found = Template("<a>-<b>", {"a": Plain(), "b": Plain()}).two_readings()
    assert found is not None
    assert len(found[0]) == len(b"a--a")


def test_glob_escapes_what_redis_would_interpret() -> None:
    template = Template(r"a*\[b\]?:<x>:<y><z>", {"x": Text(), "y": Hex(2), "z": Hex(2)})
    assert template.glob() == rb"a\*\[b\]\?:*:*"
    assert template.glob({"x": "*\\"}) == rb"a\*\[b\]\?:\*\\:*"


@pytest.mark.parametrize(
    ("source", "fixed"), [("a", True), ("{a}:<x>", True), ("a:<x>", False), ("{a:<x>}:b", False)]
)
def test_a_slot_is_fixed_when_nothing_hashed_varies(source: str, fixed: bool) -> None:
    template = Template(source, {"x": Plain()} if "<x>" in source else {})
    assert template.slot_fixed is fixed
    slots = {slot_of(template.render([value] * len(template.variables))) for value in ("a", "b", "c")}
    assert (len(slots) == 1) is fixed


def test_templates_share_a_slot_when_what_is_hashed_agrees() -> None:
    user = Template("{user:<user>}:posts", {"user": Snowflake()})
    post = Template("{user:<author>}:post:<post>", {"author": SnowflakeText(), "post": Plain()})
    assert user.same_slot_as(post, {"user": "author"})
    assert not user.same_slot_as(post, {})
    assert not user.same_slot_as(post, {"user": "post"})
    assert Template("user:<id>", {"id": Snowflake()}).same_slot_as(user, {"id": "user"})
    assert not Template("{users:<user>}", {"user": Snowflake()}).same_slot_as(user, {"user": "user"})
    assert Template("{all}:a", {}).same_slot_as(Template("{all}:<x>", {"x": Plain()}), {})


def test_alphabets_that_write_a_value_differently_prove_no_common_slot() -> None:
    escaped = Template("{<name>}:a", {"name": Text()})
    verbatim = Template("{<name>}:b", {"name": Plain(extra="%")})
    assert slot_of(escaped.render(["%"])) != slot_of(verbatim.render(["%"]))
    assert not escaped.same_slot_as(verbatim, {"name": "name"})
    assert escaped.same_slot_as(Template("{<other>}:b", {"other": Text()}), {"name": "other"})


def test_proofs_of_a_typical_template_are_quick() -> None:
    alphabets = {"a": Text(), "b": Snowflake(), "c": Plain(max_length=128), "d": Rest()}
    template = Template("registry:{<a>:<b>}:<c>:<d>", alphabets)
    other = Template("registry:{<a>:<c>}:<b>:<d>", alphabets)
    seconds = min(
        timeit.repeat(lambda: (template.two_readings(), template.collision(other)), number=1, repeat=2)
    )
    # Generous against the 50 ms we promise: a loaded machine must not fail the build.
    assert seconds < 0.5
