"""Workers on the broker in memory: outcomes of handlers, concurrency, stopping."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from keywright.errors import UsageError
from keywright_messaging import Broker, BrokerSettings, Delivery, Discard, Retry, Worker, decode, open_broker
from keywright_messaging.errors import UndecodableError

from .broker_bench import dead_letters_of, has_nothing, receive, until

pytestmark = pytest.mark.anyio


EVENT = "MESSAGE_CREATE"
QUICK = BrokerSettings(retry_after=timedelta(milliseconds=5), max_attempts=3)


class Message(msgspec.Struct):
    id: str
    content: str = ""


@dataclass
class Question:
    guild: str


class Answer(msgspec.Struct):
    members: int


@asynccontextmanager
async def served(worker: Worker, settings: BrokerSettings = QUICK) -> AsyncIterator[Broker]:
    """Open a broker in memory whose messages the worker handles until the block ends."""
    chosen = msgspec.structs.replace(settings, group=worker.group)
    async with await open_broker("memory://", chosen) as broker:
        await broker.declare(*worker.handlers, subgroup=worker.subgroup)
        serving = asyncio.create_task(worker.serve(broker))
        try:
            yield broker
            worker.stop()
            await serving
        finally:
            serving.cancel()


async def test_a_message_is_handled_as_its_annotated_type_and_acknowledged() -> None:
    worker, seen = Worker(subgroup="greeter"), list[Message]()

    @worker.on(EVENT)
    async def greet(message: Message) -> None:
        seen.append(message)

    async with served(worker) as broker:
        await broker.publish(EVENT, {"id": "1", "content": "hello", "unknown": True})
        await until(lambda: seen)
        worker.stop()
    assert seen == [Message("1", "hello")]


async def test_a_handled_message_is_not_redelivered() -> None:
    worker, seen = Worker(), list[int]()

    @worker.on(EVENT)
    async def collect(number: int) -> None:
        seen.append(number)

    async with await open_broker("memory://", BrokerSettings()) as broker:
        await broker.declare(EVENT)
        await broker.publish_many(EVENT, range(500))
        serving = asyncio.create_task(worker.serve(broker))
        await until(lambda: len(seen) == 500)
        worker.stop()
        await serving
        assert await has_nothing(broker, EVENT)
    assert sorted(seen) == list(range(500))


@pytest.mark.parametrize("kind", ["dict", "any", "unannotated"])
async def test_a_payload_can_be_plain_data(kind: str) -> None:
    worker, seen = Worker(), list[Any]()

    async def as_dict(data: dict[str, int]) -> None:
        seen.append(data)

    async def as_any(data: Any) -> None:
        seen.append(data)

    async def unannotated(data):  # type: ignore[no-untyped-def]  # what the test is about
        seen.append(data)

    worker.on(EVENT)({"dict": as_dict, "any": as_any, "unannotated": unannotated}[kind])
    async with served(worker) as broker:
        await broker.publish(EVENT, {"a": 1})
        await until(lambda: seen)
    assert seen == [{"a": 1}]


async def test_the_result_of_a_handler_replies_to_a_call() -> None:
    worker = Worker()

    @worker.on("STATS")
    async def stats(question: Question) -> Answer:
        return Answer(len(question.guild))

    async with served(worker) as broker:
        assert await broker.call("STATS", Question("1234"), reply=Answer) == Answer(4)
        answers = await asyncio.gather(*(broker.call("STATS", {"guild": "x" * n}) for n in range(20)))
        assert answers == [{"members": n} for n in range(20)]


async def test_an_annotated_handler_may_answer_null() -> None:
    worker = Worker()

    @worker.on("FIND")
    async def find(question: Question) -> Answer | None:
        return None

    async with served(worker) as broker:
        assert await broker.call("FIND", Question("1")) is None


async def test_a_handler_can_have_the_delivery_and_the_broker() -> None:
    worker, seen = Worker(), list[tuple[str, int, bool]]()

    @worker.on(EVENT)
    async def forward(message: Message, broker: Broker, delivery: Delivery) -> None:
        seen.append((delivery.event, delivery.attempt, delivery.wants_reply))
        await broker.publish("NEXT", message)

    async with served(worker) as broker, broker.consume("NEXT") as consumer:
        await broker.publish(EVENT, Message("1"))
        assert await receive(consumer, 1) == [{"id": "1", "content": ""}]
    assert seen == [(EVENT, 1, False)]


async def test_a_handler_may_reply_early_but_not_settle() -> None:
    worker = Worker()

    @worker.on(EVENT)
    async def early(data: Any, delivery: Delivery) -> None:
        await delivery.reply("early")
        await delivery.acknowledge()

    async with served(worker) as broker:
        assert await broker.call(EVENT, 1) == "early"
        (letter,) = await dead_letters_of(broker, EVENT, 1)
        assert "the worker settles" in letter.reason
        assert letter.attempts == 3


async def test_a_failing_handler_is_tried_again_until_it_is_a_dead_letter_with_the_reason() -> None:
    worker, attempts = Worker(), list[int]()

    @worker.on(EVENT)
    async def fail(message: Message, delivery: Delivery) -> None:
        attempts.append(delivery.attempt)
        raise ValueError("no such channel" + "!" * 1_000)

    async with served(worker) as broker:
        await broker.publish(EVENT, Message("1"))
        (letter,) = await dead_letters_of(broker, EVENT, 1)
    assert attempts == [1, 2, 3]
    assert letter.reason.startswith("ValueError: no such channel!!!")
    assert len(letter.reason) == 500
    assert (letter.attempts, decode(letter.body, Message)) == (3, Message("1"))


async def test_a_handler_that_recovers_leaves_no_dead_letter() -> None:
    worker, seen = Worker(), list[int]()

    @worker.on(EVENT)
    async def recover(data: Any, delivery: Delivery) -> None:
        seen.append(delivery.attempt)
        if delivery.attempt == 1:
            raise Retry("the first time it is too early")

    async with served(worker) as broker:
        await broker.publish(EVENT, 1)
        await until(lambda: seen == [1, 2])
        worker.stop()
        assert await broker.dead_letters(EVENT) == []


@pytest.mark.parametrize(
    ("outcome", "attempts", "reason"),
    [
        (Discard("of no use"), 1, "Discard: of no use"),
        (Retry("busy"), 3, "Retry: busy"),
        (KeyError(), 3, "KeyError"),
    ],
    ids=["discard", "retry", "error"],
)
async def test_a_handler_chooses_between_a_retry_and_the_dead_letters(
    outcome: Exception, attempts: int, reason: str
) -> None:
    worker = Worker(subgroup="sub")

    @worker.on(EVENT)
    async def choose(data: Any) -> None:
        raise outcome

    async with served(worker) as broker:
        await broker.publish(EVENT, 1)
        (letter,) = await dead_letters_of(broker, EVENT, 1, subgroup="sub")
    assert (letter.attempts, letter.reason) == (attempts, reason)


async def test_a_handler_that_met_a_cancelled_task_has_failed_and_its_lane_goes_on() -> None:
    worker, seen = Worker(), list[int]()

    @worker.on(EVENT, concurrency=1)
    async def meet(number: int) -> None:
        seen.append(number)
        if number == 0:
            cancelled = asyncio.get_running_loop().create_future()
            cancelled.cancel()
            await cancelled

    async with served(worker) as broker:
        await broker.publish_many(EVENT, range(3))
        (letter,) = await dead_letters_of(broker, EVENT, 1)
    assert (letter.reason, letter.attempts, decode(letter.body)) == ("CancelledError", 3, 0)
    assert sorted(seen) == [0, 0, 0, 1, 2]


@pytest.mark.parametrize("body", [b'{"content": "without an id"}', b"{nonsense", b""])
async def test_an_undecodable_payload_is_a_dead_letter_at_once(body: bytes) -> None:
    worker = Worker()

    @worker.on(EVENT)
    async def never(message: Message) -> None:
        raise AssertionError("the handler must not see it")

    async with served(worker) as broker:
        await broker.publish(EVENT, msgspec.Raw(body))
        (letter,) = await dead_letters_of(broker, EVENT, 1)
    assert (letter.attempts, letter.body) == (1, body)
    assert letter.reason.startswith("UndecodableError: ")


async def test_an_answer_that_cannot_be_written_is_a_dead_letter_at_once() -> None:
    worker = Worker()

    @worker.on(EVENT)
    async def unwritable(data: Any) -> object:
        return object()

    async with served(worker) as broker:
        calling = asyncio.create_task(broker.call(EVENT, 1, within=timedelta(milliseconds=200)))
        (letter,) = await dead_letters_of(broker, EVENT, 1)
        assert letter.attempts == 1
        await asyncio.gather(calling, return_exceptions=True)


async def test_with_a_concurrency_of_one_messages_are_handled_in_order() -> None:
    worker, seen = Worker(), list[int]()

    @worker.on(EVENT, concurrency=1)
    async def collect(number: int) -> None:
        await asyncio.sleep(0.002 if number % 3 == 0 else 0)
        seen.append(number)

    async with served(worker) as broker:
        await broker.publish_many(EVENT, range(100))
        await until(lambda: len(seen) == 100)
    assert seen == list(range(100))


class Crowd:
    """Counts the calls inside, and blocks them until the door opens."""

    def __init__(self) -> None:
        self.inside = self.most = self.through = 0
        self.door = asyncio.Event()

    async def enter(self) -> None:
        self.inside += 1
        self.most = max(self.most, self.inside)
        await self.door.wait()
        self.inside -= 1
        self.through += 1


async def test_a_handler_runs_at_most_its_concurrency_and_does_not_block_others() -> None:
    worker, crowd, other = Worker(), Crowd(), list[int]()

    @worker.on("SLOW", concurrency=4)
    async def slow(number: int) -> None:
        await crowd.enter()

    @worker.on("QUICK", concurrency=2)
    async def quick(number: int) -> None:
        other.append(number)

    async with served(worker) as broker:
        await broker.publish_many("SLOW", range(20))
        await until(lambda: crowd.inside == 4)
        await broker.publish_many("QUICK", range(20))
        await until(lambda: len(other) == 20)
        assert crowd.inside == 4
        crowd.door.set()
        await until(lambda: crowd.through == 20)
    assert crowd.most == 4


async def test_at_most_the_workers_concurrency_run_over_all_handlers() -> None:
    worker, crowd = Worker(concurrency=5), Crowd()
    for event in ("A", "B", "C"):

        @worker.on(event, concurrency=10)
        async def crowded(number: int) -> None:
            await crowd.enter()

    async with served(worker) as broker:
        for event in ("A", "B", "C"):
            await broker.publish_many(event, range(10))
        await until(lambda: crowd.inside == 5)
        crowd.door.set()
        await until(lambda: crowd.through == 30)
    assert crowd.most == 5


async def test_a_stop_lets_running_handlers_end_and_returns_the_rest() -> None:
    worker, crowd = Worker(), Crowd()

    @worker.on(EVENT, concurrency=3, prefetch=8)
    async def hold(number: int) -> None:
        await crowd.enter()

    async with await open_broker("memory://", BrokerSettings()) as broker:
        await broker.declare(EVENT)
        await broker.publish_many(EVENT, range(10))
        serving = asyncio.create_task(worker.serve(broker))
        await until(lambda: crowd.inside == 3)
        worker.stop()
        await asyncio.sleep(0)
        crowd.door.set()
        await serving
        assert crowd.through == 3
        async with broker.consume(EVENT) as consumer:
            assert await receive(consumer, 7) == list(range(3, 10))
        assert await has_nothing(broker, EVENT)


async def test_a_stop_does_not_start_waiting_handlers() -> None:
    worker, crowd = Worker(concurrency=2), Crowd()
    for event in ("A", "B"):

        @worker.on(event, concurrency=5)
        async def crowded(number: int) -> None:
            await crowd.enter()

    async with await open_broker("memory://", BrokerSettings()) as broker:
        await broker.declare("A", "B")
        await broker.publish_many("A", range(5))
        await broker.publish_many("B", range(5))
        serving = asyncio.create_task(worker.serve(broker))
        await until(lambda: crowd.inside == 2)
        worker.stop()
        crowd.door.set()
        await serving
        assert crowd.through == 2
        async with broker.consume("A", "B") as consumer:
            assert len(await receive(consumer, 8)) == 8


async def test_a_handler_that_outlasts_the_grace_is_cancelled_and_its_message_comes_back() -> None:
    worker, cancelled = Worker(grace=timedelta(milliseconds=10)), list[bool]()
    begun = asyncio.Event()

    @worker.on(EVENT)
    async def stuck(number: int) -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(True)
            raise

    async with await open_broker("memory://", BrokerSettings()) as broker:
        await broker.declare(EVENT)
        await broker.publish(EVENT, 1)
        serving = asyncio.create_task(worker.serve(broker))
        await begun.wait()
        worker.stop()
        await serving
        assert cancelled == [True]
        async with broker.consume(EVENT) as consumer:
            assert await receive(consumer, 1) == [1]


async def test_serving_ends_when_the_broker_is_closed() -> None:
    worker = Worker()

    @worker.on(EVENT)
    async def nothing(data: Any) -> None: ...

    broker = await open_broker("memory://", BrokerSettings())
    serving = asyncio.create_task(worker.serve(broker))
    await asyncio.sleep(0.01)
    await broker.close()
    await serving


async def test_a_worker_serves_one_broker_at_a_time_and_can_serve_again() -> None:
    worker, seen = Worker(), list[int]()

    @worker.on(EVENT)
    async def collect(number: int) -> None:
        seen.append(number)

    for number in (1, 2):
        async with served(worker) as broker:
            await asyncio.sleep(0)
            with pytest.raises(UsageError, match="serving already"):
                await worker.serve(broker)
            await broker.publish(EVENT, number)
            await until(lambda number=number: number in seen)  # type: ignore[misc]  # binds the loop's value
    assert seen == [1, 2]
    worker.stop()


async def test_a_worker_refuses_the_broker_of_another_group_and_needs_handlers() -> None:
    async with await open_broker("memory://", BrokerSettings(group="gateway")) as broker:
        with pytest.raises(UsageError, match="no handlers"):
            await Worker().serve(broker)
        worker = Worker(group="cache")
        worker.on(EVENT)(accepted)
        with pytest.raises(UsageError, match="'cache', but the broker was opened for 'gateway'"):
            await worker.serve(broker)


async def test_a_handler_is_tested_without_a_broker() -> None:
    worker = Worker()

    @worker.on("STATS")
    async def stats(question: Question, delivery: Delivery) -> Answer:
        if question.guild == "0":
            raise Discard("no guild")
        return Answer(delivery.attempt)

    assert await worker.handle("STATS", {"guild": "1"}) == Answer(1)
    assert await worker.handle("STATS", Question("1")) == Answer(1)
    with pytest.raises(Discard):
        await worker.handle("STATS", {"guild": "0"})
    with pytest.raises(UndecodableError):
        await worker.handle("STATS", {"guild": 5})
    with pytest.raises(UsageError, match="no handler for 'OTHER'"):
        await worker.handle("OTHER", {})


async def test_a_handler_that_wants_a_broker_is_tested_with_one() -> None:
    worker = Worker()

    @worker.on(EVENT)
    async def forward(data: Any, broker: Broker) -> None: ...

    with pytest.raises(UsageError, match="memory://"):
        await worker.handle(EVENT, 1)


async def accepted(data: Any) -> None: ...
