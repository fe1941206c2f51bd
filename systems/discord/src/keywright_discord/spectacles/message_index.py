"""The draft of a Spectacles cache: it tracks the sets that it was given, and the index of messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from keywright import Call, Key, Set
from keywright_discord.draft import Draft, Place
from keywright_discord.spectacles import schema

if TYPE_CHECKING:
    from keywright import Context


class IndexedDraft(Draft):
    """The changes of events to a Spectacles cache, before they are written."""

    def __init__(
        self, known: dict[Place, bytes | None], sets: dict[Set[Any], set[str]], context: Context
    ) -> None:
        super().__init__(known, {}, context.now_ms())
        self._sets = sets
        expiry = context.expiry_of(schema.Message)
        self._message_ttl_ms = None if expiry is None else expiry.longest_ms
        self._messages: dict[str, dict[str, bool]] = {}

    def members(self, key: Set[Any]) -> set[str]:
        """Return a set as it is in the draft; it must have been read before."""
        return self._sets[key]

    def add(self, key: Set[Any], *members: str) -> None:
        super().add(key, *members)
        if key in self._sets:
            self._sets[key].update(members)

    def remove(self, key: Set[Any], member: str) -> None:
        super().remove(key, member)
        if key in self._sets:
            self._sets[key].discard(member)

    def erase(self, key: Key) -> None:
        super().erase(key)
        if isinstance(key, Set) and key in self._sets:
            self._sets[key].clear()

    def index_message(self, channel: str, message: str) -> None:
        self._messages.setdefault(channel, {})[message] = True

    def unindex_message(self, channel: str, message: str) -> None:
        self._messages.setdefault(channel, {})[message] = False

    def calls(self) -> list[Call[Any]]:
        calls = super().calls()
        for channel, messages in self._messages.items():
            calls += self._index_calls(schema.MessageIndex(channel), messages)
        return calls

    def _index_calls(self, index: schema.MessageIndex, messages: dict[str, bool]) -> list[Call[Any]]:
        written = {message: self.now_ms for message, present in messages.items() if present}
        gone = [message for message, present in messages.items() if not present]
        calls: list[Call[Any]] = []
        if written:
            calls.append(index.add_many(written))
        if gone:
            calls.append(index.remove(*gone))
        if written and self._message_ttl_ms is not None:
            # Every message renews the index of a busy channel, so expired messages must be removed.
            calls.append(index.remove_by_score(high=self.now_ms - self._message_ttl_ms))
        return calls
