"""What the automaton finds is what brute force over short words finds."""

from __future__ import annotations

import itertools
import re
import time
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keywright import Language, characters, literal
from keywright.errors import UsageError
from keywright.keyspace.languages.automaton import (
    accepts,
    alternation,
    ambiguity,
    bytes_used,
    concatenation,
    is_empty,
    one_of,
    shortest_common,
)
from keywright.keyspace.languages.language import difference, regex, words

LETTERS = b"ab:"
WORDS = [bytes(word) for size in range(5) for word in itertools.product(LETTERS, repeat=size)]
IDENTIFIER = one_of(b"abcdefghijklmnopqrstuvwxyz0123456789_-")

atoms = st.one_of(
    st.lists(st.sampled_from(LETTERS), max_size=2).map(bytes).map(literal),
    st.sets(st.sampled_from(LETTERS), min_size=1).map(bytes).map(one_of),
)
bounds = st.sampled_from([(0, 1), (0, None), (1, None), (0, 2), (1, 2), (2, 2), (2, None), (1, 3)])
languages: st.SearchStrategy[Language] = st.recursive(
    atoms,
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map(concatenation),
        st.lists(inner, min_size=1, max_size=3).map(alternation),
        st.tuples(inner, bounds).map(lambda pair: pair[0].repeat(*pair[1])),
    ),
    max_leaves=4,
)


def words_of(language: Language) -> set[bytes]:
    matches = re.compile(regex(language)).fullmatch
    return {word for word in WORDS if matches(word.decode())}


def splits(word: bytes, count: int) -> Iterator[tuple[bytes, ...]]:
    for cuts in itertools.combinations_with_replacement(range(len(word) + 1), count - 1):
        ends = (0, *cuts, len(word))
        yield tuple(word[start:end] for start, end in itertools.pairwise(ends))


@settings(max_examples=60, deadline=None)
@given(languages)
def test_a_language_accepts_what_its_regular_expression_matches(language: Language) -> None:
    assert {word for word in WORDS if accepts(language, word)} == words_of(language)


@settings(max_examples=80, deadline=None)
@given(languages, languages)
def test_the_shortest_common_word_is_a_shortest_word_of_both(a: Language, b: Language) -> None:
    found = shortest_common(a, b)
    both = words_of(a) & words_of(b)
    if found is None:
        assert not both
        return
    assert accepts(a, found)
    assert accepts(b, found)
    assert len(found) <= min(map(len, both), default=len(found))


@settings(max_examples=80, deadline=None)
@given(st.lists(languages, min_size=2, max_size=3))
def test_an_ambiguous_word_splits_in_two_ways_and_no_other_word_is_missed(segments: list[Language]) -> None:
    found = ambiguity(segments)
    if found is not None:
        word, first, second = found
        assert first != second
        for split in (first, second):
            assert b"".join(split) == word
            assert all(map(accepts, segments, split))
    shortest = len(found[0]) if found else 4
    parts = [words_of(segment) for segment in segments]
    for word in (word for word in WORDS if len(word) < shortest or found is None):
        valid = [s for s in splits(word, len(parts)) if all(p in w for p, w in zip(s, parts, strict=True))]
        assert len(valid) <= 1


@settings(max_examples=80, deadline=None)
@given(languages, languages)
def test_a_difference_has_the_words_of_one_language_that_are_not_of_the_other(
    base: Language, excluded: Language
) -> None:
    left = words_of(base) - words_of(excluded)
    found = difference(base, excluded)
    assert {word for word in WORDS if accepts(found, word)} == left
    assert not left or not is_empty(found)
    marked = concatenation([literal(b"a"), found, literal(b":")])
    assert {word for word in WORDS if accepts(marked, word)} == {
        b"a" + word + b":" for word in left if len(word) < 3
    }
    assert is_empty(difference(base, alternation([excluded, base])))
    assert is_empty(concatenation([difference(base, base), excluded]))


def test_a_difference_that_is_too_intricate_is_refused() -> None:
    letter = one_of(b"ab")
    far = letter.repeat(0) + literal(b"a") + letter.repeat(20, 20)
    with pytest.raises(ValueError, match="intricate"):
        is_empty(difference(letter.repeat(0), far))


@settings(max_examples=60, deadline=None)
@given(languages)
def test_the_words_of_a_language_belong_to_it(language: Language) -> None:
    assert all(accepts(language, word.encode()) for word in words(language))


def test_the_word_shown_is_readable() -> None:
    anything = one_of((1 << 256) - 1)
    assert shortest_common(anything.repeat(3, 3), anything.repeat(0)) == b"aaa"


def test_ambiguity_needs_another_split_and_not_just_another_path() -> None:
    same_twice = alternation([literal(b"a"), literal(b"a")])
    assert ambiguity([same_twice, literal(b":"), same_twice]) is None


def test_two_open_segments_side_by_side_are_ambiguous() -> None:
    found = ambiguity([IDENTIFIER.repeat(1), IDENTIFIER.repeat(1)])
    assert found is not None
    assert found[0] == b"aaa"
    assert set(found[1:]) == {(b"a", b"aa"), (b"aa", b"a")}


def test_counts_are_exact_up_to_a_spread_of_128() -> None:
    counted = IDENTIFIER.repeat(1, 128)
    assert shortest_common(counted, IDENTIFIER.repeat(129, 129)) is None
    assert shortest_common(IDENTIFIER.repeat(64, 64), IDENTIFIER.repeat(65)) is None


def test_a_wider_count_is_taken_as_unbounded() -> None:
    assert shortest_common(IDENTIFIER.repeat(1, 500), IDENTIFIER.repeat(600, 600)) == b"a" * 600


@pytest.mark.parametrize(
    "spans", [((0x00, 0x10), (0x7E, 0x81)), ((0x7F0, 0x1001),), ((0xD7F0, 0xD7FF), (0xE000, 0x10FFFF))]
)
def test_characters_are_their_utf8_forms(spans: tuple[tuple[int, int], ...]) -> None:
    language = characters("", *spans)
    edges = {point + step for span in spans for point in span for step in (-1, 0, 1)}
    edges |= {0x7F, 0x80, 0x7FF, 0x800, 0xFFF, 0x1000, 0xFFFF, 0x10000, 0x3FFFF, 0x40000, 0xFFFFF, 0x100000}
    for point in edges:
        if 0 <= point <= 0x10FFFF and not 0xD800 <= point <= 0xDFFF:
            inside = any(low <= point <= high for low, high in spans)
            assert accepts(language, chr(point).encode()) is inside
            assert (re.fullmatch(regex(language), chr(point)) is not None) is inside


def test_characters_refuse_surrogates() -> None:
    with pytest.raises(UsageError, match="surrogates"):
        characters("", (0xD000, 0xE000))


def test_the_bytes_a_language_uses_are_known() -> None:
    assert bytes_used(literal(b"a") + one_of(b"bc").repeat(0, 2)) == sum(1 << byte for byte in b"abc")


def test_long_counted_templates_are_proved_quickly() -> None:
    segments = [literal(b"a:"), IDENTIFIER.repeat(1, 128), literal(b":"), IDENTIFIER.repeat(64, 64)] * 2
    started = time.perf_counter()
    assert ambiguity([*segments[:4], literal(b":"), *segments[4:]]) is None
    # Generous against the 50 ms we promise: a loaded machine must not fail the build.
    assert time.perf_counter() - started < 0.5
