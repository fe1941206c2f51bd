"""The draft of a Spectacles cache: it tracks the index of messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from keywright import Call, Key
from keywright_discord.draft import Draft, Place
from keywright_discord.spectacles import schema

if TYPE_CHECKING:
    from keywright import Context


class IndexedDraft(Draft):
    """The changes of events to a Spectacles cache, before they are written."""

    def __init__(self, known: dict[Place, bytes | None], sets: dict[Key, set[str]], context: Context) -> None:
        super().__init__(known, sets, context.now_ms())
        expiry = context.expiry_of(schema.Message)
        self._message_ttl_ms = None if expiry is None else expiry.longest_ms
        self._messages: dict[str, dict[str, bool]] = {}

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
