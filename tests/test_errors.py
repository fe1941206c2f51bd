"""The error tree: drawn as it is, each message ends with the remedy, foreign errors are mapped."""

from __future__ import annotations

import importlib
import inspect
import re

import pytest
import redis.exceptions

from engines import Word
from keywright import errors, preview
from keywright.engine.address import parse_address
from keywright.engine.translation import refusal, unreachable
from keywright.engine.wire_format import Parser
from keywright.errors import (
    KeywrightError,
    MissingDependencyError,
    ScriptError,
    ServerRefusedError,
    UsageError,
    dependencies_of,
)
from keywright.operations import Effect, Script

NAMES = [name for name in errors.__all__ if name.endswith("Error")]
CLASSES = [getattr(errors, name) for name in NAMES]

EXAMPLES: list[KeywrightError] = [
    errors.DeclarationError("Order", "has no key", "Give it one."),
    errors.VariableError("a:<b>", "b", "digits", "x"),
    errors.ValueRefusedError("a:<b>", "a number", "str"),
    errors.UnknownKeyError(b"a", "shop"),
    errors.UnknownKeyError(b"a", "shop", "a:<b>"),
    errors.CrossSlotError([(b"a", 1), (b"b", 2)]),
    errors.TakenError("home", "ann", "one", "two"),
    errors.UnprovedError(
        "shop:shop", ["overlapping-templates a:<b>: …", "missing-docstring a: …"], "Or not."
    ),
    errors.MissingDependencyError("the explorer", "jinja2", "keywright[explorer]"),
    errors.MessageError(b"a", "a", "a number", "text"),
    errors.DumpError("dump.rdb", 9, "its version 0 does not exist"),
    errors.WorkerError("was ended by signal 9"),
    errors.StoredDataError(b"a", "a", "a number", "text"),
    errors.WrongTypeError(b"a", "a", "a set", "a hash"),
    errors.SealError(b"a", "a", "a sealed value", "other bytes"),
    errors.IntentError(b"a", "a", b"c0ffee", "garbage"),
    errors.IntentError(b"a", "a", b"", "2 intents"),
    errors.ConnectionLostError("here", "it closed"),
    errors.OutcomeUnknownError("here", "INCRBY", b"a"),
    errors.UnfinishedCommitError("assign", errors.ConnectionLostError("here", "it closed")),
    errors.DeadlineError("here", 1.5),
    errors.ServerRefusedError("SET", b"a", "OOM command not allowed"),
    errors.ServerRefusedError("SET", b"a", "ERR something new"),
    errors.MalformedReplyError("GET", "'int' object has no attribute 'decode'"),
    errors.ScriptError("commit", "ERR"),
    errors.CapabilityError("functions", "Redis 6.2", "Redis 7.0"),
    errors.UnderReplicatedError(2, 1),
    errors.UnderReplicatedError(2, 1, applied=False),
    errors.ConflictError("assign", 24),
]

FOREIGN = [
    kind
    for _, kind in inspect.getmembers(redis.exceptions, inspect.isclass)
    if issubclass(kind, redis.exceptions.RedisError)
]


def _drawn() -> list[tuple[int, str]]:
    """Return depth and name of every class in the docstring's tree."""
    tree = re.findall(r"^    ([│ ├└─]*)(\w+Error)\b", errors.__doc__ or "", re.MULTILINE)
    return [(len(branches) // 4, name) for branches, name in tree]


def test_every_error_is_in_the_drawn_tree_and_the_other_way_round() -> None:
    assert sorted(name for _, name in _drawn()) == sorted(NAMES)


def test_the_tree_is_drawn_as_it_is() -> None:
    path: list[str] = []
    for depth, name in _drawn():
        path[depth:] = [name]
        if depth:
            # Further bases are built-in ones, which the tree names in words.
            assert getattr(errors, name).__bases__[0] == getattr(errors, path[depth - 1])


def test_every_class_of_the_module_is_public() -> None:
    own = [
        name
        for name, kind in inspect.getmembers(errors, inspect.isclass)
        if kind.__module__ == errors.__name__
    ]
    assert sorted(own) == sorted(NAMES)


def test_every_error_that_composes_its_message_has_an_example_here() -> None:
    composing = {kind for kind in CLASSES if "__init__" in kind.__dict__}
    assert composing <= {type(example) for example in EXAMPLES}


@pytest.mark.parametrize("error", EXAMPLES, ids=lambda error: type(error).__name__)
def test_a_message_ends_with_a_sentence_that_is_the_remedy(error: KeywrightError) -> None:
    # A command to copy stands at the end without a full stop.
    assert re.search(r"[.:;] [A-Za-z][^.]*(\.\.\.[^.]*)?(\.|: pip install \S+)$", str(error)), str(error)


@pytest.mark.parametrize("kind", FOREIGN, ids=lambda kind: kind.__name__)
def test_whatever_redis_raises_on_connecting_becomes_an_error_of_ours(kind: type[Exception]) -> None:
    arguments = {"MovedError": "1 h:1", "AskError": "1 h:1"}.get(kind.__name__, "what it says")
    translated = unreachable(kind(arguments), parse_address("redis://here:6379"))
    assert isinstance(translated, KeywrightError)
    assert str(translated).endswith(".")


def test_a_refused_password_and_a_refused_setting_are_distinct_errors() -> None:
    here = parse_address("redis://:guess@here")
    refused = unreachable(redis.exceptions.AuthenticationError("invalid username-password pair"), here)
    assert isinstance(refused, ServerRefusedError)
    assert "Check user and password" in str(refused)
    assert isinstance(unreachable(redis.exceptions.DataError("no"), here), UsageError)


@pytest.mark.parametrize("wording", ["Authentication required.", "operation not permitted"])
def test_a_missing_password_is_recognised_without_the_code_and_the_wording_of_the_reply(wording: str) -> None:
    refused = unreachable(redis.exceptions.AuthenticationError(wording), parse_address("redis://here"))
    remedy = f"AUTH was refused: NOAUTH {wording.rstrip('.')}. Give the password in the URL."
    assert str(refused) == remedy


(SCRIPTED,) = preview(
    Script("keywright.keyspace", "decide", Effect.ONCE).call([Word("a")], ("i", "P", "C"), bytes)
)
IN_6_2 = "ERR Error running script (call to f_caee): @user_script:1: @user_script: 1: "
ON_7 = " script: caee, on @user_script:1."


@pytest.mark.parametrize(
    ("reply", "problem", "remedy"),
    [
        (f"{IN_6_2}-OOM command not allowed when used memory > 'maxmemory'.", "OOM command", "free memory"),
        (f"OOM command not allowed when used memory > 'maxmemory'.{ON_7}", "OOM command", "free memory"),
        (f"{IN_6_2}-MISCONF Errors writing to the AOF file: No space", "MISCONF Errors", "free disk space"),
        ("MISCONF Errors writing to the AOF file: No space", "MISCONF Errors", "free disk space"),
        (f"{IN_6_2}The user executing the script can't run this command", "NOPERM The user", "Grant this"),
        (f"ERR The user executing the script can't run this command{ON_7}", "NOPERM The user", "Grant this"),
        ("ERR ACL failure in script: User bob has no permissions", "NOPERM ACL failure", "Grant this user"),
        ("EXECABORT Transaction discarded because of: OOM command", "OOM command", "free memory"),
    ],
)
def test_an_error_inside_a_script_is_known_by_its_code_on_every_server(
    reply: str, problem: str, remedy: str
) -> None:
    parser = Parser()
    parser.feed(f"-{reply}\r\n".encode())
    error = refusal(parser.gets(), SCRIPTED, "here")
    assert isinstance(error, ServerRefusedError)
    assert problem in str(error)
    assert remedy in str(error)


@pytest.mark.parametrize(
    "reply",
    [
        f"{IN_6_2}user_script:1: Script attempted to access nonexistent global variable 'foo'",
        f"ERR user_script:1: Script attempted to access nonexistent global variable 'foo'{ON_7}",
    ],
)
def test_a_mistake_of_a_script_is_an_error_of_the_script(reply: str) -> None:
    parser = Parser()
    parser.feed(f"-{reply}\r\n".encode())
    assert isinstance(refusal(parser.gets(), SCRIPTED, "here"), ScriptError)


def test_a_missing_module_of_a_third_party_names_the_feature_and_the_install_command() -> None:
    with pytest.raises(MissingDependencyError) as caught, dependencies_of("a feature", install="shop[extra]"):
        importlib.import_module("nowhere_at_all.deeper")
    assert str(caught.value) == (
        "a feature needs nowhere_at_all, which is not installed. Install it with: pip install 'shop[extra]'"
    )
    assert (caught.value.name, caught.value.exit_code) == ("nowhere_at_all", 2)
    assert isinstance(caught.value, ModuleNotFoundError)


def test_a_requirement_without_brackets_needs_no_quotes() -> None:
    assert str(MissingDependencyError("a", "b", "shop")).endswith(": pip install shop")


def test_the_innermost_feature_is_named() -> None:
    with (
        pytest.raises(MissingDependencyError, match="inner"),
        dependencies_of("outer", install="a"),
        dependencies_of("inner", install="b"),
    ):
        importlib.import_module("nowhere_at_all")


def test_a_missing_module_of_ours_is_a_defect_and_not_a_missing_dependency() -> None:
    with pytest.raises(ModuleNotFoundError) as caught, dependencies_of("a feature", install="shop"):
        importlib.import_module("keywright.nowhere_at_all")
    assert not isinstance(caught.value, KeywrightError)
