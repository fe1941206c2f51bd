"""A keyspace with keys of every kind: each refers to plants, and some are sealed, expire or are related."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Annotated, Any, ClassVar, Literal

import msgspec

import keywright
from audited import Sample
from keywright import (
    BitFields,
    Bitmap,
    Bits,
    Claim,
    Codec,
    Counter,
    DueQueue,
    Fix,
    Geo,
    HyperLogLog,
    Id,
    Key,
    Keyring,
    Keyspace,
    Lease,
    List,
    Map,
    Record,
    Sealed,
    Secret,
    Set,
    SortedSet,
    Stream,
    Upgrade,
    Value,
    Violation,
    expires_in,
    index,
    invariant,
    many_to_many,
    many_to_one,
    one_to_one,
    refers,
)
from keywright.keyspace.codecs import Raw
from keywright.operations import exists
from keywright.tools.model import Model

garden = Keyspace("garden", "Plants, and keys of every kind that name them.", prefix="g", version="v1")
Pin = Annotated[Secret[str], Sealed]
DAY = expires_in(timedelta(days=1))


class Plant(Value[str], key="plant:<plant>", space=garden):
    """A plant, which others refer to."""

    plant: Id


class ValueOf(Value[Id], key="value:<bed>", space=garden):
    """The only plant of a bed."""

    bed: Id


class Bed(msgspec.Struct):
    plant: Id | None = None
    width: int | None = None
    length: int | None = None


class Dug(msgspec.Struct):
    event: Literal["dug"]
    depth: int


class Sown(msgspec.Struct):
    event: Literal["sown"]
    seeds: int | None = None
    plant: Id | None = None


class RecordOf(Record[Bed], key="record:<bed>", space=garden):
    """A bed."""

    bed: Id


class Needing(msgspec.Struct):
    width: int
    length: int
    depth: int


class Strict(Record[Needing], key="strict:<bed>", space=garden):
    """A bed that is measured in full."""

    bed: Id


class UnionOf(Record[Dug | Sown], key="union:<bed>", space=garden):
    """The last event of a bed."""

    bed: Id


class SetOf(Set[Id], key="set:<bed>", space=garden):
    """The plants of a bed."""

    bed: Id


class SortedSetOf(SortedSet[Id, int], key="sorted:<bed>", space=garden):
    """Plants by height."""

    bed: Id


class DueQueueOf(DueQueue[Id], key="due:<bed>", space=garden):
    """When to water."""

    bed: Id


class ListOf(List[Id], key="list:<bed>", space=garden):
    """The order to water in."""

    bed: Id


class Order(msgspec.Struct):
    plant: Id


class Orders(List[Order], key="orders:<bed>", space=garden):
    """Orders, which other programs write as JSON of their own layout."""

    bed: Id


class MapOf(Map[Id, Id], key="map:<bed>", space=garden):
    """Plants by row."""

    bed: Id


class Watered(msgspec.Struct):
    plant: Id
    litres: int


class StreamOf(Stream[Watered], key="stream:<bed>", space=garden):
    """What was watered."""

    bed: Id


class UnionStreamOf(Stream[Dug | Sown], key="events:<bed>", space=garden):
    """What was done."""

    bed: Id


class CounterOf(Counter, key="counter:<plant>", space=garden):
    """How often a plant was watered."""

    plant: Id


class LeaseOf(Lease, key="lease:<plant>", space=garden):
    """Who waters a plant."""

    plant: Id


class ClaimOf(Claim, key="claim:<plant>", space=garden):
    """Whether a plant was watered today."""

    plant: Id


class Opaque(Key, key="opaque:<plant>", space=garden):
    """A list whose items mean nothing to the tools."""

    plant: Id
    redis_type: ClassVar[str] = "list"
    kind: ClassVar[str] = "opaque"

    @classmethod
    def _declare(cls) -> Iterable[Codec[Any]]:
        return (Raw(),)


class OpaqueOf(keywright.Opaque, key="module:<bed>", space=garden, redis_type="list"):
    """A list that is declared opaque."""

    bed: Id


class BitmapOf(Bitmap, key="bitmap:<bed>", space=garden, bits=64):
    """Which rows are sown."""

    bed: Id


class Height(msgspec.Struct):
    height: Annotated[int, Bits(32)]


class BitFieldsOf(BitFields[Height], key="bits:<bed>", space=garden):
    """How high the plants are."""

    bed: Id


class HyperLogLogOf(HyperLogLog[Id], key="estimate:<bed>", space=garden):
    """How many visitors looked at a bed."""

    bed: Id


class GeoOf(Geo[Id], key="geo:<bed>", space=garden):
    """Where plants are."""

    bed: Id


class SealedValue(Value[Pin], key="sealed:value:<bed>", space=garden):
    """The pin of a gate."""

    bed: Id


class Gate(msgspec.Struct):
    name: str | None = None
    pin: Pin | None = None
    spare: Pin | None = None


class SealedRecord(Record[Gate], key="sealed:record:<bed>", space=garden):
    """A gate."""

    bed: Id


class SealedList(List[Pin], key="sealed:list:<bed>", space=garden):
    """Pins in use."""

    bed: Id


class SealedMap(Map[Id, Pin], key="sealed:map:<bed>", space=garden):
    """Pins by gate."""

    bed: Id


class Opened(msgspec.Struct):
    pin: Pin


class SealedStream(Stream[Opened], key="sealed:stream:<bed>", space=garden):
    """Pins that were used."""

    bed: Id


class Lasting(Value[Id], key="lasting:value:<bed>", space=garden, expiry=DAY):
    """A value for a day."""

    bed: Id


class LastingRecord(Record[Bed], key="lasting:record:<bed>", space=garden, expiry=DAY):
    """A bed for a day."""

    bed: Id


class LastingSet(Set[Id], key="lasting:set:<bed>", space=garden, expiry=DAY):
    """Plants for a day."""

    bed: Id


class LastingSorted(SortedSet[Id, int], key="lasting:sorted:<bed>", space=garden, expiry=DAY):
    """Heights for a day."""

    bed: Id


class LastingList(List[Id], key="lasting:list:<bed>", space=garden, expiry=DAY):
    """An order for a day."""

    bed: Id


class LastingMap(Map[Id, Id], key="lasting:map:<bed>", space=garden, expiry=DAY):
    """Rows for a day."""

    bed: Id


class LastingStream(Stream[Watered], key="lasting:stream:<bed>", space=garden, expiry=DAY):
    """Events for a day."""

    bed: Id


class LastingCounter(Counter, key="lasting:counter:<bed>", space=garden, expiry=DAY):
    """A count for a day."""

    bed: Id


class LastingClaim(Claim, key="lasting:claim:<bed>", space=garden, expiry=DAY):
    """Done, for a day."""

    bed: Id


class Older(
    Value[Id],
    key="older:value:<bed>",
    space=garden,
    upgrades=[
        Upgrade("v0", lambda stored: stored.startswith(b"old "), lambda stored, _: stored[4:].decode())
    ],
):
    """A plant that was stored otherwise."""

    bed: Id


class OlderRecord(
    Record[Bed],
    key="older:record:<bed>",
    space=garden,
    upgrades=[
        Upgrade("v0", lambda stored: b"wide" in stored, lambda stored, _: Bed(width=int(stored[b"wide"])))
    ],
):
    """A bed that was stored otherwise."""

    bed: Id


class PlotOf(Value[Id], key="gardener:<gardener>:plot", space=garden):
    """The plot of a gardener."""

    gardener: Id


class Gardeners(Set[Id], key="plot:<plot>:gardeners", space=garden):
    """The gardeners of a plot."""

    plot: Id


class Working(Set[Id], key="working", space=garden):
    """The gardeners with a plot."""


class Fertile(Value[str], key="plot:<plot>", space=garden):
    """A plot that bears something."""

    plot: Id


class BadgeOf(Value[Id], key="gardener:<gardener>:badge", space=garden):
    """The badge of a gardener."""

    gardener: Id


class WearerOf(Value[Id], key="badge:<badge>:wearer", space=garden):
    """The gardener of a badge."""

    badge: Id


class Likes(Set[Id], key="gardener:<gardener>:likes", space=garden):
    """The plants that a gardener likes."""

    gardener: Id


class LikedBy(Set[Id], key="liked:<plant>:by", space=garden):
    """The gardeners that like a plant."""

    plant: Id


class Tool(Record[Bed], key="tool:<tool>", space=garden):
    """A tool."""

    tool: Id


class Tools(Set[Id], key="tools", space=garden):
    """All tools."""


many_to_one(PlotOf, inverse=Gardeners, index=Working)
one_to_one(BadgeOf, inverse=WearerOf)
many_to_many(Likes, inverse=LikedBy)
index(Tool, by=Tools)
refers(Gardeners, Fertile, lambda key, _: [key.plot], name="on the plot")
refers(ValueOf, Plant, lambda _, plant: [plant], name="planted")
refers(RecordOf, Plant, lambda _, bed: [bed.plant] if bed.plant else [], name="in the bed")
refers(UnionOf, Plant, lambda _, event: _plants([event]), name="of the event")
refers(SetOf, Plant, lambda _, plants: list(plants), name="in the set")
refers(SortedSetOf, Plant, lambda _, pairs: [plant for plant, _ in pairs], name="ranked")
refers(DueQueueOf, Plant, lambda _, pairs: [plant for plant, _ in pairs], name="due")
refers(ListOf, Plant, lambda _, plants: list(plants), name="queued")
refers(Orders, Plant, lambda _, orders: [order.plant for order in orders], name="ordered")
refers(MapOf, Plant, lambda _, rows: list(rows.values()), name="in the row")
refers(StreamOf, Plant, lambda _, entries: [each.value.plant for each in entries], name="watered")
refers(UnionStreamOf, Plant, lambda _, entries: _plants(each.value for each in entries), name="of an event")
refers(CounterOf, Plant, lambda key, _: [key.plant], name="counted")
refers(LeaseOf, Plant, lambda key, _: [key.plant], name="leased")
refers(ClaimOf, Plant, lambda key, _: [key.plant], name="claimed")

allowed = invariant("allowed", "No bed has weeds.", [SetOf, SortedSetOf, DueQueueOf, ListOf, MapOf, StreamOf])


@allowed.check
def _no_weeds(key: Any, value: Any) -> list[Violation]:
    if isinstance(key, StreamOf):
        weeds = [each.id for each in value if each.value.plant == "weed"]
        return [Violation("a weed", Fix("pull it out", [key.remove(each)], [exists(key)])) for each in weeds]
    names = [each[0] if isinstance(key, SortedSet) else each for each in value]
    weeds = [each for each in names if each == "weed"]
    return [
        Violation("a weed", Fix("pull it out", [key.remove(each)], [exists(key)]), each) for each in weeds
    ]


def _plants(events: Iterable[Dug | Sown]) -> list[Id]:
    return [event.plant for event in events if isinstance(event, Sown) and event.plant is not None]


KEYRING = Keyring.generate("garden")
SAMPLE = Sample(Model("garden", (garden,)), (garden.bind(keyring=KEYRING),), lambda _: None, {})
