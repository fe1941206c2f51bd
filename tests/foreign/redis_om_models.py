"""The models of `redis_om_workload`, declared member by member, as an application declares its own."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal
from typing import Annotated, Literal
from uuid import UUID

import msgspec

from keywright import EpochFloat, Keyspace, Pattern, Record, Ulid, may_expire

Pk = Annotated[str, Ulid()]

shop = Keyspace("shop", "Customers, products and visits, as redis-om stores them.")


class CustomerDetails(msgspec.Struct):
    """A customer. Dates are stored as the second at which the day begins in UTC."""

    pk: Pk
    name: str
    email: str
    joined: Annotated[datetime, EpochFloat]
    seen: Annotated[datetime, EpochFloat]
    age: int
    balance: Decimal
    rating: float
    active: bool
    level: Literal["basic", "gold"]
    avatar: str
    """In Base64."""
    token: UUID
    referrer: str | None = None
    left: Annotated[datetime, EpochFloat] | None = None


class Customer(Record[CustomerDetails], key=":foreign.redis_om_workload.Customer:<pk>", space=shop):
    """A model that is named after its class."""

    pk: Pk


class ProductDetails(msgspec.Struct):
    """A product."""

    pk: Pk
    """redis-om makes one, although the model has a primary key of its own."""
    sku: str
    title: str
    price: float
    stock: int


class Product(Record[ProductDetails], key="shop:product:<sku>", space=shop):
    """A model with a primary key of its own."""

    sku: Annotated[str, Pattern("SKU-[0-9]{4}")]


class VisitDetails(msgspec.Struct):
    """A visit."""

    pk: Pk
    page: str
    length: timedelta


class Visit(Record[VisitDetails], key="shop:visit:at:<pk>", space=shop, expiry=may_expire()):
    """A model of which some expire."""

    pk: Pk
