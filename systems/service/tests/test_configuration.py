"""What every configuration of a service keeps to itself."""

from __future__ import annotations

import pytest

from keywright_discord.gateway.configuration import AmqpPart, BrokerPart
from keywright_discord.gateway.configuration import RedisPart as GatewayRedis
from keywright_meetup.service.configuration import RedisPart as MeetupRedis
from keywright_openmod.service.configuration import RedisPart as OpenModRedis


@pytest.mark.parametrize("part", [AmqpPart, BrokerPart, GatewayRedis, MeetupRedis, OpenModRedis])
@pytest.mark.parametrize("password", ["hunter2", "a@b", "sl/ash"])
def test_a_password_in_an_address_is_not_shown(part: type, password: str) -> None:
    shown = repr(part(url=f"redis://bot:{password}@127.0.0.1:6379/0"))
    assert password not in shown
    assert "127.0.0.1:6379/0" in shown
