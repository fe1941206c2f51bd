"""redis-om 1.2: hash models.

A name is `global_key_prefix`, `model_key_prefix` and the primary key, a ULID by default. The
`model_key_prefix` is the dotted name of the class. Its Meta may have another one, so `CustomModel` is the
fallback. All values are text: numbers, times as seconds with a fraction, `1` and `0`, Base64 of bytes.
Members of None are not stored. To check members, declare each of your models as a Record.

Not declared: JSON models, which need the module RedisJSON. `IndexDigest` was not tested, because indexes need
the module RediSearch. A model with `expire` on a field needs Redis 7.4, which declares it as any other
member.
"""

from __future__ import annotations

from typing import Annotated

from keywright import Hex, Keyspace, Map, Pattern, Segment, Ulid, Value, may_expire
from keywright.tools import Program

Application = Annotated[str, Pattern("[^:]*")]
"""The `global_key_prefix`, empty by default."""
ClassName = Annotated[str, Pattern(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)+")]
"""Module and class, as in `shop.models.Customer`."""
PrimaryKey = Annotated[str, Segment("")]

redis_om = Keyspace("redis-om", "Hash models of redis-om 1.2.")


class IndexDigest(Value[Annotated[str, Hex(40)]], key="<application>:<model>:index:hash", space=redis_om):
    """The SHA-1 of the definition of an index, by which the migrator finds changes."""

    application: Application
    model: Annotated[str, Segment()]


class Model(Map[str, str], key="<application>:<model>:<pk>", space=redis_om, expiry=may_expire()):
    """A model with the usual name and primary key, and its members as text. Expires after `expire()`."""

    application: Application
    model: ClassName
    pk: Annotated[str, Ulid()]


class CustomModel(
    Map[str, str], key="<application>:<model>:<pk>", space=redis_om, expiry=may_expire(), fallback=True
):
    """A model with a `model_key_prefix` or a primary key of its own."""

    application: Application
    model: Annotated[str, Segment()]
    pk: PrimaryKey


program = Program("redis-om", "redis-om", "1.2", (redis_om,), distinctive=(Model,), shared=("application",))
