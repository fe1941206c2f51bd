"""The tests of every project: its declaration is proved, audits are right, repairs touch nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from foreign.audits import Fault, Report, audited, check_repair
from foreign.projects import Project
from inferred_modules import inferred_server
from keywright import check
from keywright.testing import RedisServer, wait_until
from keywright.tools.infer import inferred_model
from keywright.tools.plugins import load_catalogue, load_model

__all__ = ["Conformance"]


LEAST_SHARE = 0.95
"""The share of a project's keys that are recognised at least."""
SOON_MS = 5000


def soon_gone(client: Any) -> list[int]:
    """Return the times to live of the keys that expire soon."""
    pipe = client.pipeline(transaction=False)
    for name in client.scan_iter():
        pipe.pttl(name)
    return [left for left in pipe.execute() if 0 <= left < SOON_MS]


class Conformance:
    """The tests of one project; a file has its PROJECT and its FAULTS."""

    def test_the_declaration_is_proved(self, project: Project) -> None:
        found = check(*load_model(project.model).spaces)
        assert [finding for finding in found if finding.severity == "error"] == []

    def test_the_project_has_used_every_template(
        self, project: Project, reports: list[Report], server: RedisServer
    ) -> None:
        rows = [row for report in (*reports, audited(project.model, server)) for row in report["templates"]]
        used = {row["template"] for row in rows if row["keys"]}
        assert {row["template"] for row in rows} - used <= project.momentary

    def test_audits_during_load_find_nothing(self, reports: list[Report]) -> None:
        assert [finding for report in reports for finding in report["findings"]] == []

    @pytest.mark.usefixtures("reports")
    def test_its_data_is_recognised_as_this_project_only(
        self, project: Project, server: RedisServer, client: Any
    ) -> None:
        # Of a key that expires before it is read, nothing but the name is known.
        wait_until(lambda: not soon_gone(client), "keys of a moment have expired")
        found = inferred_server(server.url, load_catalogue())
        assert [each.program.name for each in found.programs] == [project.name]
        assert found.programs[0].keys >= LEAST_SHARE * found.names, found.text
        model = inferred_model(found)
        assert [str(each) for each in check(*model.spaces) if each.severity == "error"] == []

    @pytest.mark.usefixtures("reports")
    def test_a_repair_removes_the_fault_and_nothing_else(
        self, fault: Fault, project: Project, server: RedisServer, client: Any, tmp_path: Path
    ) -> None:
        check_repair(fault, project.model, server, client, tmp_path)
