"""The programs of the catalogue: declared, proved, and known by name."""

from __future__ import annotations

from importlib.metadata import entry_points

import pytest

from keywright import check
from keywright.tools import Program

PROGRAMS: dict[str, Program] = {each.name: each.load() for each in entry_points(group="keywright.catalogue")}
each_program = pytest.mark.parametrize("name", PROGRAMS)


@each_program
def test_a_program_is_proved_and_has_the_name_of_its_entry_point(name: str) -> None:
    program = PROGRAMS[name]
    assert program.name == name
    unproved = [each for space in program.spaces for each in check(space) if each.severity == "error"]
    assert unproved == []
