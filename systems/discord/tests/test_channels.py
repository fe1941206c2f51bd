"""The message channels of the gateway as AsyncAPI."""

from __future__ import annotations

from pathlib import Path

import msgspec

from invoking import invoke_keywright
from keywright_discord.channels import WORKER_OPCODES
from keywright_discord.gateway.packets import SENDABLE
from keywright_discord.interpreter import EVENTS

DOCUMENT = Path(__file__).parents[1] / "docs/spectacles.asyncapi.json"


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


def test_the_committed_document_of_the_channels_is_up_to_date() -> None:
    done = invoke_keywright("docs", "spectacles", "--format", "asyncapi", "--check", str(DOCUMENT))
    assert done.exit_code == 0, done.stderr
