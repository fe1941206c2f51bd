"""taskiq 0.13 with taskiq-redis 1.2: streams, of which a killed worker leaves entries pending."""

from __future__ import annotations

from typing import Any

import pytest

from foreign.audits import Fault
from foreign.conformance import Conformance
from foreign.programs import APART

PROJECT = APART["taskiq-streams"]

FAULTS = [
    Fault("a queue that is a list", "KW201", "wrong-type", lambda client: client.rpush("ghost", "x")),
    Fault("a key of no template", "KW101", "unknown", lambda client: client.set("schedule:x", "x")),
]


class TestTaskiqStreams(Conformance):
    """taskiq with streams."""

    @pytest.mark.usefixtures("reports")
    def test_a_killed_worker_leaves_its_entry_pending_in_the_declared_group(self, client: Any) -> None:
        assert client.xpending("lost", "taskiq")["pending"] == 1
