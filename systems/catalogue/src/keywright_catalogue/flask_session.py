"""Flask-Session 0.8 with Redis.

A session is a dictionary as MessagePack, or as JSON with `SESSION_SERIALIZATION_FORMAT = "json"`; it expires
after PERMANENT_SESSION_LIFETIME, 31 days by default, counted from the last request that changed it. A longer
lifetime is bound: `bind(expiry={Session: …})`. A SESSION_KEY_PREFIX that ends with `session:` is bound:
`bind(prefix="shop")` or `--prefix shop` for `shop:session:`. Not declared: pickles of versions before 0.7.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Any

from keywright import FirstOf, Json, Keyspace, MessagePack, Pattern, Value, expires_in
from keywright.tools import Program

flask_session = Keyspace("flask-session", "Sessions of Flask-Session 0.8.")

SessionId = Annotated[str, Pattern("[A-Za-z0-9_-]{22,}")]
"""As `secrets.token_urlsafe` makes them: 43 characters, or as SESSION_ID_LENGTH says."""
_SAMPLES: tuple[dict[str, Any], ...] = ({"_permanent": True, "user": {"name": "Ann"}},)


class Session(
    Value[
        Annotated[
            Any,
            FirstOf(MessagePack(dict[str, Any], samples=_SAMPLES), Json(dict[str, Any], samples=_SAMPLES)),
        ]
    ],
    key="session:<session>",
    space=flask_session,
    expiry=expires_in(timedelta(days=31)),
):
    """The session of a visitor."""

    session: SessionId


program = Program(
    "flask-session",
    "Flask-Session",
    "0.8",
    (flask_session,),
    distinctive=(Session,),
    value_mark=b"_permanent",  # other programs name their sessions alike
)
