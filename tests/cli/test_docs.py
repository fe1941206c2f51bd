"""`keywright docs`: every model, every format, and documents that are kept fresh."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from invoking import invoke_keywright
from keywright.tools.plugins import model_names
from keywright_discord.channels import WORKER_OPCODES
from keywright_discord.gateway.packets import SENDABLE
from keywright_discord.interpreter import EVENTS

COMMITTED = Path(__file__).parents[2] / "docs" / "models"
SHOP = """
from keywright import Id, Keyspace, Value
shop = Keyspace("shop", "What the shop sells.")
stock = Keyspace("stock", "What the shop has.")
class Price(Value[int], key="price:<item>", space=shop):
    "What an item costs."
    item: Id
class Left(Value[int], key="left:<item>", space=stock):
    "How many are left."
    item: Id
"""


@pytest.mark.parametrize("form", ["markdown", "html", "json"])
@pytest.mark.parametrize("model", model_names())
def test_every_built_in_model_has_a_document(model: str, form: str) -> None:
    done = invoke_keywright("docs", model, "--format", form)
    assert (done.exit_code, done.stderr) == (0, "")
    assert model in done.stdout


def test_a_users_own_keyspaces_become_one_document(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "docs_shop.py").write_text(SHOP)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    text = invoke_keywright("docs", "docs_shop:shop,stock").stdout
    assert "What an item costs." in text
    assert "How many are left." in text


def test_a_document_is_written_and_checked(tmp_path: Path) -> None:
    path = tmp_path / "new" / "meetup.md"
    assert invoke_keywright("docs", "meetup", "--check", str(path)).exit_code == 1
    assert invoke_keywright("docs", "meetup", "-o", str(path)).exit_code == 0
    current = invoke_keywright("docs", "meetup", "--check", str(path))
    assert (current.exit_code, "up to date" in current.stdout) == (0, True)
    path.write_text(path.read_text().replace("Meetup", "Treffen", 1))
    stale = invoke_keywright("docs", "meetup", "--check", str(path))
    assert stale.exit_code == 1
    assert f"keywright docs meetup --format markdown -o {path}" in stale.stderr


@pytest.mark.skipif(not COMMITTED.is_dir(), reason="docs/models is not committed yet")
@pytest.mark.parametrize("model", model_names())
def test_the_committed_document_is_up_to_date(model: str) -> None:
    done = invoke_keywright("docs", model, "--check", str(COMMITTED / f"{model}.md"))
    assert done.exit_code == 0, done.stderr


def test_what_cannot_be_documented_is_a_usage_error(tmp_path: Path) -> None:
    for arguments in (
        ("docs", "nonsense"),
        ("docs", "keywright_meetup.schema:nothing"),
        ("docs", "meetup", "--format", "asyncapi"),
        ("docs", "meetup", "-o", "a", "--check", "b"),
        ("docs", "meetup", "-o", str(tmp_path)),
    ):
        assert invoke_keywright(*arguments).exit_code == 2, arguments


def test_spectacles_channels_are_asyncapi() -> None:
    done = invoke_keywright("docs", "spectacles", "--format", "asyncapi")
    document = msgspec.json.decode(done.stdout)
    assert document["asyncapi"] == "3.0.0"
    assert {each["address"] for each in document["channels"].values()} == {"{event}", "SEND", "{shard}"}
    actions = {name: each["action"] for name, each in document["operations"].items()}
    assert actions == {"sendEvent": "send", "receiveSendRequest": "receive", "receiveShardPacket": "receive"}
    assert set(document["channels"]["events"]["parameters"]["event"]["enum"]) == set(EVENTS)
    exchange = document["channels"]["send"]["bindings"]["amqp"]["exchange"]
    assert (exchange["name"], exchange["durable"]) == ("gateway", True)


def test_the_packets_of_workers_are_those_that_the_gateway_sends() -> None:
    assert {int(op) for op in SENDABLE} == set(WORKER_OPCODES)
