"""The scenarios by name."""

from __future__ import annotations

from soak.scenario import Scenario
from soak.scenarios.discord import DiscordScenario
from soak.scenarios.failover import ClusterScenario, SentinelScenario
from soak.scenarios.library import (
    ClockScenario,
    DiskScenario,
    EvictionScenario,
    SingleScenario,
)
from soak.scenarios.meetup import MeetupScenario
from soak.scenarios.messaging import RabbitScenario, StreamsScenario
from soak.scenarios.openmod import OpenModScenario
from soak.scenarios.registry import RegistryScenario

__all__ = ["SCENARIOS"]

SCENARIOS: dict[str, type[Scenario]] = {
    "single": SingleScenario,
    "clock": ClockScenario,
    "disk": DiskScenario,
    "eviction": EvictionScenario,
    "sentinel": SentinelScenario,
    "cluster": ClusterScenario,
    "rabbitmq": RabbitScenario,
    "streams": StreamsScenario,
    "discord": DiscordScenario,
    "openmod": OpenModScenario,
    "registry": RegistryScenario,
    "meetup": MeetupScenario,
}
