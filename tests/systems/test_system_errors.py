"""The errors of the systems: drawn as they are, and each message ends with the remedy."""

from __future__ import annotations

import re
import textwrap
from types import ModuleType

import pytest

from keywright.errors import KeywrightError
from keywright_meetup import errors as meetup
from keywright_messaging import errors as messaging
from keywright_openmod import errors as openmod
from keywright_registry import errors as registry
from keywright_service import errors as service

MODULES = [meetup, messaging, openmod, registry, service]
EXAMPLES: list[KeywrightError] = [
    meetup.RefusedChangeError("channel 7", "is not known", "Attach it first."),
    registry.RepositoryPathError("a/B", "has an upper-case letter", "Write it in lower case."),
    registry.MetadataError("here/registry", "deadlock detected", "Call again."),
    registry.MetadataUnreachableError("here/registry", "connection refused"),
    service.PlatformTroubleError("Reddit", "account t2_ann", "HTTP 503"),
    service.PlatformRefusedError("Reddit", "submit to r/log", "not approved", "Approve the app there."),
    service.HttpRefusedError("Discord", "GET /x", 403, "Missing Permissions", "Give the bot more of them."),
    openmod.MalformedEventError("ModAction", "moderator is missing"),
    messaging.UnwritableError("etf", "it holds a set"),
    messaging.BrokerUnreachableError("amqp://here", "connection refused"),
    messaging.QueueMismatchError("queue", "gateway:READY", "it is not durable"),
    messaging.UnroutableError("gateway", "READY"),
    messaging.CallTimeoutError("STATS", 5),
    messaging.UndecodableError("JSON", "half an object"),
]


def _drawn(module: ModuleType) -> list[tuple[int, str]]:
    """Return depth and name of every class in the docstring's tree."""
    drawing = textwrap.dedent((module.__doc__ or "").partition("\n")[2])
    tree = re.findall(r"^([│ ├└─]*)(\w+Error)\b", drawing, re.MULTILINE)
    return [(len(branches) // 4, name) for branches, name in tree]


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_the_tree_of_a_system_is_drawn_as_it_is(module: ModuleType) -> None:
    path: list[str] = []
    for depth, name in _drawn(module):
        path[depth:] = [name]
        if name in module.__all__:
            assert [base.__name__ for base in getattr(module, name).__bases__] == [path[depth - 1]]
    assert set(module.__all__) <= {name for _, name in _drawn(module)}


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_every_error_of_a_system_that_composes_its_message_has_an_example_here(module: ModuleType) -> None:
    composing = {kind for name in module.__all__ if "__init__" in vars(kind := getattr(module, name))}
    assert composing <= {type(example) for example in EXAMPLES}


@pytest.mark.parametrize("error", EXAMPLES, ids=lambda error: type(error).__name__)
def test_a_message_of_a_system_ends_with_a_sentence_that_is_the_remedy(error: KeywrightError) -> None:
    assert re.search(r"[.:;] [A-Za-z][^.]*(\.\.\.[^.]*)?\.$", str(error)), str(error)
