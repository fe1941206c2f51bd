"""`keywright check`: proofs without a server, and exit codes that scripts can trust."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from invoking import Invoke

PROGRAM = Path(sys.executable).parent / "keywright"

SOUND = """
from keywright import Id, Keyspace, Value
shop = Keyspace("shop", "What the shop sells.")
class Price(Value[int], key="price:<item>", space=shop):
    "What an item costs."
    item: Id
"""


def _installed(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [PROGRAM, *arguments], cwd=folder, capture_output=True, text=True, timeout=60, check=False
    )


def test_the_installed_program_proves_a_keyspace_of_the_current_folder(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(SOUND)
    done = _installed(tmp_path, "check", "shop:shop")
    assert (done.returncode, done.stderr) == (0, "")
    assert "shop: 1 key, 0 relations" in done.stdout
    assert "proved  names parse back" in done.stdout
    assert done.stdout.endswith("shop is proved.\n")


def test_the_installed_program_exits_with_1_for_findings_and_2_for_usage(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(SOUND.replace('"What an item costs."', ""))
    assert _installed(tmp_path, "check", "shop:shop").returncode == 1
    wrong = _installed(tmp_path, "check", "shop:orders")
    assert wrong.returncode == 2
    assert wrong.stderr.startswith("error: 'shop:orders' does not name a keyspace")
    assert "Traceback" not in wrong.stderr


def test_debug_shows_where_an_error_was_raised(tmp_path: Path) -> None:
    done = _installed(tmp_path, "--debug", "check", "nowhere:shop")
    assert done.returncode == 2
    assert "Traceback (most recent call last)" in done.stderr
    assert "keywright.errors.UsageError: there is no module 'nowhere'" in done.stderr


def test_overlapping_templates_are_printed_with_a_name_of_both(invoke: Invoke) -> None:
    done = invoke("check", "cli_spaces:overlapping")
    assert done.exit_code == 1
    assert "overlaps with 'event:<event>:series'" in done.stdout
    assert "is a Event and a EventSeries" in done.stdout


def test_an_ambiguous_template_is_printed_with_both_readings(invoke: Invoke) -> None:
    done = invoke("check", "cli_spaces:ambiguous")
    assert done.exit_code == 1
    assert "one name can be read in two ways [ambiguous-template]" in done.stdout
    assert "above=" in done.stdout
    assert " and above=" in done.stdout


def test_a_missing_docstring_is_a_finding(invoke: Invoke) -> None:
    done = invoke("check", "cli_spaces:undocumented")
    assert done.exit_code == 1
    assert "Mystery has no docstring [missing-docstring]" in done.stdout


def test_json_has_the_content_of_the_text(invoke: Invoke) -> None:
    done = invoke("check", "cli_spaces:overlapping", "--format", "json")
    data = json.loads(done.stdout)
    assert done.exit_code == 1
    assert data["proved"] is False
    assert data["keys"] == 2
    assert data["findings"][0]["code"] == "overlapping-templates"
    assert json.loads(invoke("check", "cli_spaces:kinds", "--format", "json").stdout)["proved"] is True


def test_a_refused_declaration_is_a_finding_too(
    invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "refused_shop.py").write_text(SOUND.replace("item: Id", "thing: Id"))
    monkeypatch.syspath_prepend(tmp_path)
    done = invoke("check", "refused_shop:shop")
    assert done.exit_code == 1
    assert "<item> has no type" in done.stdout
    assert "[refused-declaration]" in done.stdout


@pytest.mark.parametrize(
    "arguments",
    [("check",), ("check", "a", "b"), ("check", "a:b", "--format", "xml"), ("chekc",), ("--wat",)],
)
def test_a_wrong_invocation_exits_with_2(invoke: Invoke, arguments: tuple[str, ...]) -> None:
    assert invoke(*arguments).exit_code == 2


def test_the_version_is_printed(invoke: Invoke) -> None:
    done = invoke("--version")
    assert done.exit_code == 0
    assert done.stdout.startswith("keywright ")


@pytest.mark.parametrize("command", ["check", "discord", "get", "tour"])
def test_every_command_explains_itself(invoke: Invoke, command: str) -> None:
    assert f"  {command} " in invoke("--help").stdout
    help_text = invoke(command, "--help")
    assert help_text.exit_code == 0
    assert f"Usage: keywright {command}" in help_text.stdout
