"""The wheels, installed without the checkout, bring the command with every system."""

from __future__ import annotations

import pytest

from end_to_end.installation import Installation

COMMANDS = ("broker", "discord", "gateway", "meetup", "openmod", "registry")


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_group_is_installed(installed: Installation, command: str) -> None:
    assert f"keywright {command}" in installed.run(command, "--help").stdout
