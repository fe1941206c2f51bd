"""`keywright gateway`: its errors when it cannot run. Running is tested with the gateway itself."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from keywright.errors import KeywrightError
from keywright_discord.commands.gateway import gateway


def invoked(*arguments: str) -> Result:
    return CliRunner().invoke(gateway, arguments)


def test_a_missing_token_is_an_error_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DISCORD_TOKEN", raising=False)
    error = invoked("run").exception
    assert isinstance(error, KeywrightError)
    assert error.exit_code == 2
    assert "DISCORD_TOKEN" in str(error)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    error = invoked("run", "--config", str(tmp_path / "none.toml")).exception
    assert isinstance(error, KeywrightError)
    assert "none.toml" in str(error)


def test_help_names_both_commands() -> None:
    shown = invoked("--help").output
    assert "run" in shown
    assert "simulate" in shown
