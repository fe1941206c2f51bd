"""Every Lua script documents itself and reaches no key that it was not given."""

from __future__ import annotations

from pathlib import Path

import pytest

from lua_keys import problems

ROOT = Path(__file__).parent.parent
SCRIPTS = sorted([*ROOT.glob("src/**/*.lua"), *ROOT.glob("systems/*/src/**/*.lua")])
HEADER = "-- KEYS[1]  a key\n-- ARGV[1]  a value\n-- Output  nothing\n"
MANY = "-- KEYS  any number\n-- ARGV[1]  a value\n-- Output  nothing\n"


def test_there_are_scripts_to_look_at() -> None:
    assert {"commit", "claim_due", "take_counts"} <= {script.stem for script in SCRIPTS}


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_a_script_reaches_only_its_keys_and_documents_its_arguments(script: Path) -> None:
    assert problems(script.read_text()) == []


@pytest.mark.parametrize(
    "body",
    [
        "return redis.call('GET', KEYS[1])",
        "local key = KEYS[1] return redis.call('GET', key)",
        "local a, key = ARGV[1], KEYS[1] return redis.pcall('SET', key, a)",
        "local function read(key) return redis.call('GET', key) end return read(KEYS[1])",
        "local function key() return 1, KEYS[1] end local _, k = key() return redis.call('GET', k)",
        "local f = {a = function(k) return redis.call('GET', k) end} return f[ARGV[1]](KEYS[1])",
        "local now = redis.call('TIME') return now[1]",
        "local function f(k, n) if n == 0 then redis.call('GET', k) end f(k, n - 1) end f(KEYS[1], 3)",
    ],
)
def test_a_key_is_followed_from_where_it_was_given(body: str) -> None:
    assert problems(HEADER + body) == []


@pytest.mark.parametrize(
    "body",
    [
        "for i = 1, #KEYS do redis.call('DEL', KEYS[i]) end",
        "for _, key in ipairs(KEYS) do redis.call('DEL', key) end",
        "return redis.call('SMOVE', KEYS[1], KEYS[2], ARGV[1])",
        "return redis.call('MGET', unpack(KEYS))",
    ],
)
def test_any_number_of_keys_may_be_documented(body: str) -> None:
    assert problems(MANY + body) == []


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("return redis.call('GET', 'counter')", "does not come from KEYS"),
        ("return redis.call('GET', KEYS[1] .. ':count')", "does not come from KEYS"),
        ("return redis.call('GET', ARGV[1])", "does not come from KEYS"),
        ("return redis.pcall('GET', ARGV[1])", "does not come from KEYS"),
        ("local key = 'x' return redis.call('GET', key)", "does not come from KEYS"),
        ("local key = KEYS[1] key = key .. ':x' return redis.call('GET', key)", "does not come from KEYS"),
        ("key = ARGV[1] return redis.call('GET', key)", "does not come from KEYS"),
        ("local key = KEYS[1] do local key = 'x' redis.call('GET', key) end", "does not come from KEYS"),
        (
            "local function f(k) return redis.call('GET', k) end f(KEYS[1]) return f(ARGV[1])",
            "does not come from KEYS",
        ),
        (
            "local function f(k) return redis.call('GET', k) end return pcall(f, 'x')",
            "does not come from KEYS",
        ),
        (
            "local function f() return KEYS[1] .. 'x' end return redis.call('GET', f())",
            "does not come from KEYS",
        ),
        (
            "local t = {a = function(k) return redis.call('GET', k) end} return t.a('x')",
            "does not come from KEYS",
        ),
        ("local id = redis.call('SPOP', KEYS[1]) return redis.call('GET', id)", "does not come from KEYS"),
        ("for _, key in ipairs(ARGV) do redis.call('DEL', key) end", "does not come from KEYS"),
        ("return redis.call('SMOVE', KEYS[1], ARGV[1], ARGV[2])", "does not come from KEYS"),
        ("return redis.call('DEL', KEYS[1], 'other')", "does not come from KEYS"),
        ("return redis.call(ARGV[1], ARGV[2])", "does not come from KEYS"),
        ("if true then while true do return redis.call('GET', 'x') end end", "does not come from KEYS"),
        ("return redis.call('KEYS', '*')", "where this check does not look"),
        ("return redis.call('DBSIZE')", "given no key"),
        ("local call = redis.call return call('GET', 'x')", "used as a value"),
        ("return redis['call']('GET', 'x')", "indexed by an expression"),
        ("local r = redis return r.call('GET', 'x')", "redis is used as a value"),
        ("local KEYS = {'x'} return redis.call('GET', KEYS[1])", "KEYS is declared again"),
        ("KEYS = {'x'} return redis.call('GET', KEYS[1])", "KEYS is written to"),
        ("KEYS[1] = 'x' return redis.call('GET', KEYS[1])", "KEYS is written to"),
        ("table.insert(KEYS, 'x')", "KEYS is used as a value"),
        ("return _G['redis'].call('GET', 'x')", "_G hides"),
        ("return redis.call('DEL', unpack(ARGV))", "does not come from KEYS"),
        ("return redis.call('GET', KEYS[2])", "KEYS[2] is not in the header"),
        ("return redis.call('GET', KEYS[tonumber(ARGV[1])])", "the header lists single keys"),
    ],
)
def test_an_unsound_script_is_refused(body: str, reason: str) -> None:
    assert any(reason in problem for problem in problems(HEADER + body))


@pytest.mark.parametrize("word", ["KEYS", "ARGV", "Output"])
def test_a_header_that_leaves_something_out_is_refused(word: str) -> None:
    lines = [line for line in MANY.splitlines() if not line.startswith(f"-- {word}")]
    assert problems("\n".join([*lines, "return 1"])) == [f"the header does not say {word}"]
