"""The metrics of the bot, for Prometheus."""

from __future__ import annotations

from prometheus_client import Counter

from keywright_meetup.event_sync import Synced
from keywright_meetup.service.discord_sync import DiscordSynced
from keywright_service.metrics import Metrics

__all__ = ["BotMetrics"]


class BotMetrics(Metrics):
    """The metrics of one process."""

    def __init__(self) -> None:
        super().__init__()
        self._events = Counter(
            "meetup_events_synced",
            "Events that a sync added, changed or removed.",
            ["change"],
            registry=self.registry,
        )
        self._discord = Counter(
            "meetup_discord_changes",
            "Changes that a sync made on Discord.",
            ["change"],
            registry=self.registry,
        )
        self._failures = Counter(
            "meetup_sync_failures", "Events and series that a sync left.", registry=self.registry
        )

        self._interactions = Counter(
            "meetup_interactions",
            "Interactions on Discord: refused, replied or deferred; failed is counted besides.",
            ["outcome"],
            registry=self.registry,
        )

    def interaction(self, outcome: str) -> None:
        self._interactions.labels(outcome).inc()

    def synced(self, meetup: Synced, discord: DiscordSynced) -> None:
        for change, events in (
            ("added", meetup.added),
            ("changed", meetup.changed),
            ("removed", meetup.removed),
        ):
            self._events.labels(change).inc(len(events))
        for change, number in (
            ("made", discord.made),
            ("changed", discord.changed),
            ("member added", discord.added),
        ):
            self._discord.labels(change).inc(number)
        self._failures.inc(len(meetup.failures) + len(discord.failures))
