"""Pages of the explorer on a million keys: how long each takes, from request to last byte.

The server is filled by a script on the server itself. Nothing is asserted; figures are printed.

    python -m benchmarks.explorer            # a million keys, and collections of a million entries
    python -m benchmarks.explorer 100000     # fewer
"""

from __future__ import annotations

import asyncio
import statistics
import sys
from time import perf_counter, process_time
from typing import Any, Literal

import httpx
import msgspec
import redis

from keywright import Id, Keyspace, List, Map, Record, Set, SortedSet, Stream, Value, aconnect, refers
from keywright.explorer import ExplorerSettings, create_app
from keywright.testing import RedisServer
from keywright.tools.pace import FULL_SPEED

ROUNDS = 30
BESIDE_SECONDS = 20
space = Keyspace("bench-explorer", "A shop with many orders.", prefix="shop")


class OrderDetails(msgspec.Struct):
    customer: Id
    status: Literal["new", "paid", "sent"]
    total: int


class Order(Record[OrderDetails], key="order:<order>", space=space):
    """A record: three of ten keys."""

    order: Id


class Customer(Value[dict[str, Any]], key="customer:<customer>", space=space):
    """JSON: five of ten keys."""

    customer: Id


class Tag(Set[Id], key="tag:<tag>", space=space):
    """A small set: two of ten keys."""

    tag: Id


class Rare(Value[str], key="rare:<rare>", space=space):
    """Ten keys among all others."""

    rare: Id


class Wide(Map[str, int], key="wide", space=space):
    """A map of as many fields."""


class Best(SortedSet[str, int], key="best", space=space):
    """A sorted set of as many members."""


class Queue(List[str], key="queue", space=space):
    """A list of as many items."""


class Event(msgspec.Struct):
    data: str


class Log(Stream[Event], key="log", space=space):
    """A stream of as many entries."""


refers(Order, Customer, lambda _, order: [order.customer], name="customer")

FILL = """
local first, last, all = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local states = {'new', 'paid', 'sent'}
for n = first, last - 1 do
  local sort = n % 10
  if sort < 3 then
    local customer = 'c' .. (n * 7 % all)
    redis.call('HSET', 'shop:order:o' .. n, 'customer', customer, 'status', states[n % 3 + 1], 'total', n)
  elseif sort < 8 then
    local json = '{"name":"Customer ' .. n .. '","age":' .. n % 90 .. ',"city":"Berlin"}'
    redis.call('SET', 'shop:customer:c' .. n, json)
  else
    redis.call('SADD', 'shop:tag:t' .. n, 'a' .. n, 'b')
  end
  redis.call('HSET', 'shop:wide', 'field:' .. n, n)
  redis.call('ZADD', 'shop:best', n, 'member:' .. n)
  redis.call('RPUSH', 'shop:queue', 'item ' .. n)
  redis.call('XADD', 'shop:log', (1700000000000 + n) .. '-0', 'data', '{"n":' .. n .. '}')
end
"""

TEMPLATES = "/template/bench-explorer"
PAGES = {
    "start": "/",
    "map": "/map",
    "schema": "/schema",
    "audit, none yet": "/audit",
    "operations": "/operations",
    "changes": "/changes",
    "records, sample": f"{TEMPLATES}/Order",
    "records, sorted and filtered": f"{TEMPLATES}/Order?sort=total&desc=1&col=status&op=eq&to=paid",
    "records, walked": f"{TEMPLATES}/Order?cursor=0-0",
    "records, walked with a filter": f"{TEMPLATES}/Order?cursor=0-0&col=total&op=gt&to=500000",
    "JSON, sample": f"{TEMPLATES}/Customer",
    "sets, sample": f"{TEMPLATES}/Tag",
    "rare keys, by pattern": f"{TEMPLATES}/Rare?match=rare:",
    "search by pattern": "/search?q=order:o77777*",
    "search by id": "/search?q=o777770",
    "record": "/key?name=shop:order:o777770",
    "edit of a record": "/key/edit?name=shop:order:o777770",
    "backlinks": "/key/backlinks?name=shop:customer:c7",
    "map of a million": "/key?name=shop:wide",
    "map, by pattern": "/key?name=shop:wide&match=field:77777",
    "sorted set of a million": "/key?name=shop:best",
    "sorted set, by score": "/key?name=shop:best&min=5000&max=9000",
    "list of a million, middle": "/key?name=shop:queue&at=500000",
    "stream of a million": "/key?name=shop:log",
    "stream, from a time": "/key?name=shop:log&min=2023-11-14T22:15:00Z&order=oldest",
    "missing key": "/key?name=shop:order:o77777x",
}


def fill(client: redis.Redis, keys: int) -> None:
    script = client.register_script(FILL)
    for first in range(0, keys, 10_000):
        script(args=[first, min(keys, first + 10_000), keys])
    for number in range(10):
        client.set(f"shop:rare:r{number}", "x")


async def measure(url: str) -> None:
    async with aconnect(url) as db:
        app = create_app(db, [space], ExplorerSettings(rest_seconds=3600, write=True, survey_pace=FULL_SPEED))
        explorer = app.state.explorer
        began = perf_counter()
        found = await explorer.surveyor.once()
        print(f"survey of {found.seen:,} keys: {perf_counter() - began:.1f} s", flush=True)
        transport = httpx.ASGITransport(app=app, client=("127.0.0.1", 1))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8600") as client:
            whole = [took for title in PAGES for took in await measured(client, title)]
            print(f"{summary(whole)}", flush=True)
            explorer.auditing.start()
            beside, until = [], perf_counter() + BESIDE_SECONDS
            while explorer.auditing.running and perf_counter() < until:
                beside += [(await timed(client, path))[0] for path in PAGES.values()]
            await explorer.auditing.stop()  # it leaves pages the time that they ask for, here all of it
            print(f"during an audit of all keys: {summary(beside)}", flush=True)


async def measured(client: httpx.AsyncClient, title: str) -> list[float]:
    """Print and return the times of one page."""
    times = [await timed(client, PAGES[title]) for _ in range(ROUNDS)]
    taken, own = [each[0] for each in times], statistics.median(each[1] for each in times)
    middle, worst = statistics.median(taken), max(taken)
    page = times[-1][2]
    words = f"{middle:7.1f} ms ({own:5.1f} ms of CPU), at most {worst:7.1f} ms"
    print(f"{title:32} {page.status_code} {words}, {len(page.content) // 1024:5} KiB", flush=True)
    return taken


async def timed(client: httpx.AsyncClient, path: str) -> tuple[float, float, httpx.Response]:
    """Return the milliseconds that a page took, those of them that this process worked, and the page."""
    began, work = perf_counter(), process_time()
    page = await client.get(path)
    return (perf_counter() - began) * 1000, (process_time() - work) * 1000, page


def summary(taken: list[float]) -> str:
    taken = sorted(taken)
    late = sum(each > 100 for each in taken)
    return (
        f"{len(taken)} requests, median {statistics.median(taken):.1f} ms, "
        f"99 of 100 within {taken[len(taken) * 99 // 100]:.1f} ms, at most {taken[-1]:.1f} ms, "
        f"{late} of more than 100 ms"
    )


def main() -> None:
    keys = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    with RedisServer(options={"appendonly": "no"}) as server:
        began = perf_counter()
        with redis.Redis.from_url(server.url) as client:
            fill(client, keys)
        print(f"filled with {keys:,} keys in {perf_counter() - began:.1f} s", flush=True)
        asyncio.run(measure(server.url))


if __name__ == "__main__":
    main()
