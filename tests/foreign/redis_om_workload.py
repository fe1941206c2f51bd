"""redis-om at work: hash models with every type of member that a hash takes, and several primary keys.

JSON models need RedisJSON, and queries RediSearch; a hash model takes neither lists nor embedded models.
"""

from __future__ import annotations

import os
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any, Optional
from uuid import UUID, uuid4

from foreign.workload import URL, announce, turns

os.environ["REDIS_OM_URL"] = URL  # read when redis_om is imported

from redis_om import Field, HashModel, get_redis_connection

CUSTOMERS = 500
LONG = 3600


class Level(Enum):
    BASIC = "basic"
    GOLD = "gold"


class Customer(HashModel, index=True):  # type: ignore[call-arg,misc]  # without redis-om it is Any
    """With a ULID as its primary key, which redis-om makes."""

    name: str
    email: str
    joined: date
    seen: datetime
    age: int
    balance: Decimal
    rating: float
    active: bool
    level: Level
    referrer: Optional[str] = None  # noqa: UP045  # redis-om knows no other form
    left: Optional[datetime] = None  # noqa: UP045
    avatar: bytes = b""
    token: UUID


class Product(HashModel, index=True):  # type: ignore[call-arg,misc]  # without redis-om it is Any
    """With a primary key of the application."""

    sku: str = Field(primary_key=True)
    title: str
    price: float
    stock: int = 0

    class Meta:
        global_key_prefix = "shop"
        model_key_prefix = "product"


class Visit(HashModel, index=True):  # type: ignore[call-arg,misc]  # without redis-om it is Any
    """With a pattern around the primary key, and an expiry."""

    page: str
    length: timedelta

    class Meta:
        global_key_prefix = "shop"
        model_key_prefix = "visit"
        primary_key_pattern = "at:{pk}"


def produce(turn: int) -> list[Any]:
    """Save models of each kind, change some and delete others."""
    customer = Customer(
        name=f"Name {turn}",
        email=f"name{turn}@example.org",
        joined=date(2026, 1 + turn % 12, 1 + turn % 28),
        seen=datetime.now(UTC),
        age=turn % 90,
        balance=Decimal(turn) / 4,
        rating=turn / 8,
        active=turn % 2 == 0,
        level=Level.GOLD if turn % 5 == 0 else Level.BASIC,
        referrer=f"name{turn // 2}" if turn % 3 == 0 else None,
        left=datetime.now(UTC) if turn % 4 == 0 else None,
        avatar=bytes(range(turn % 50)),
        token=uuid4(),
    ).save()
    product = Product(sku=f"SKU-{turn % CUSTOMERS:04}", title=f"Thing {turn}", price=turn / 10).save()
    product.update(stock=turn)
    visits = [Visit(page=f"/page/{n}", length=timedelta(seconds=turn + n / 4)).save() for n in range(3)]
    visits[0].expire(1)
    visits[1].expire(LONG)
    if turn % 7 == 6:
        Product.delete(product.sku)
    return [customer]


def main() -> None:
    client = get_redis_connection()
    first = produce(0)[0]
    assert Customer.get(first.pk).joined == first.joined
    assert client.hget(first.key(), "active") == "1"
    for turn in turns():
        produce(turn + 1)
        if turn == 0:
            announce()
