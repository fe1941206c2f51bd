"""Every installed model: its document in every format, its committed document, and its access rules."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from invoking import invoke_keywright
from keywright.tools.plugins import model_names

ROOT = Path(__file__).parents[2]
COMMITTED = {
    "drc": "systems/discord/docs/drc.md",
    "meetup": "systems/meetup/docs/model.md",
    "openmod": "systems/openmod/docs/model.md",
    "registry": "systems/registry/docs/model.md",
    "spectacles": "systems/discord/docs/spectacles.md",
    "spectacles-streams": "systems/messaging/docs/streams.md",
}


def test_every_installed_model_has_a_committed_document() -> None:
    assert set(model_names()) == set(COMMITTED)


@pytest.mark.parametrize("form", ["markdown", "html", "json"])
@pytest.mark.parametrize("model", COMMITTED)
def test_every_model_has_a_document(model: str, form: str) -> None:
    done = invoke_keywright("docs", model, "--format", form)
    assert (done.exit_code, done.stderr) == (0, "")
    assert model in done.stdout


@pytest.mark.parametrize("model", COMMITTED)
def test_the_committed_document_is_up_to_date(model: str) -> None:
    done = invoke_keywright("docs", model, "--check", str(ROOT / COMMITTED[model]))
    assert done.exit_code == 0, done.stderr


@pytest.mark.parametrize("model", COMMITTED)
def test_every_model_is_proved(model: str) -> None:
    done = invoke_keywright("check", model)
    assert done.exit_code == 0, done.stdout


@pytest.mark.parametrize("role", ["reader", "writer", "auditor"])
@pytest.mark.parametrize("model", COMMITTED)
def test_every_model_has_rules_for_every_role(model: str, role: str) -> None:
    done = invoke_keywright("acl", model, "--role", role)
    assert (done.exit_code, done.stderr) == (0, "")
    begin = rf"ACL SETUSER {model}-{role} reset resetchannels on #PASSWORD-SHA256 (&\S+ )*\+ping"
    assert re.match(begin, done.stdout)
    assert done.stdout.count("\n") == 1
