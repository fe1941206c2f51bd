"""The refusal of a client by the simulator: it closes the connection with a code."""

from __future__ import annotations

from keywright_discord.gateway.close_codes import CloseCode

__all__ = ["HangUp"]


class HangUp(Exception):  # noqa: N818  # not an error of the simulator, but its answer to one
    """The client broke a rule, and its connection is closed with this code."""

    def __init__(self, code: CloseCode) -> None:
        self.code = code
        super().__init__(code.reason)
