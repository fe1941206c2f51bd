"""The tests of every project: its declaration is proved, audits are right, repairs touch nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from foreign.audits import Fault, Report, audited, check_repair
from foreign.projects import Project
from keywright import check
from keywright.testing import RedisServer
from keywright.tools.plugins import load_model

__all__ = ["Conformance"]


class Conformance:
    """The tests of one project; a file has its PROJECT and its FAULTS."""

    def test_the_declaration_is_proved(self, project: Project) -> None:
        assert [finding for space in load_model(project.model).spaces for finding in check(space)] == []

    def test_the_project_has_used_every_template(
        self, project: Project, reports: list[Report], server: RedisServer
    ) -> None:
        rows = [row for report in (*reports, audited(project.model, server)) for row in report["templates"]]
        used = {row["template"] for row in rows if row["keys"]}
        assert {row["template"] for row in rows} - used <= project.momentary

    def test_five_audits_during_load_find_nothing(self, reports: list[Report]) -> None:
        assert [finding for report in reports for finding in report["findings"]] == []

    @pytest.mark.usefixtures("reports")
    def test_a_repair_removes_the_fault_and_nothing_else(
        self, fault: Fault, project: Project, server: RedisServer, client: Any, tmp_path: Path
    ) -> None:
        check_repair(fault, project.model, server, client, tmp_path)
