"""A service: its parts end in reverse order, an error of one ends them all, its endpoints say how it is."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager

import httpx
import pytest
from prometheus_client import Counter
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from keywright import Secret
from keywright.errors import EngineError, KeywrightError, UsageError
from keywright.tools.http import LOOPBACK, listening
from keywright_service.health import Health, TasksHealth, Trouble, health_route, ready_route
from keywright_service.http import json_response, refuse
from keywright_service.metrics import Metrics, metrics_route
from keywright_service.service import Service
from keywright_service.tasks import PeriodicTask

pytestmark = pytest.mark.anyio

TOKEN = "a-long-random-token"


class Sampler:
    """A task that notes its end."""

    name = "sampler"

    def __init__(self, ends: list[str], error: Exception | None = None) -> None:
        self._ends = ends
        self._error = error

    async def run(self, stopping: asyncio.Event) -> None:
        if self._error is not None:
            raise self._error
        await stopping.wait()
        self._ends.append("task")


class SampleService(Service):
    def __init__(self, app: Starlette, error: Exception | None = None) -> None:
        super().__init__()
        self.ends: list[str] = []
        self._app = app
        self._error = error

    async def start(self, opened: AsyncExitStack) -> None:
        opened.callback(self.ends.append, "database")
        await self.run_tasks(opened, [Sampler(self.ends, self._error)])
        opened.callback(self.ends.append, "server")
        bound = opened.enter_context(listening(LOOPBACK, 0, remedy=""))
        await self.serve(opened, self._app, bound)


@asynccontextmanager
async def started(*routes: Route) -> AsyncIterator[tuple[SampleService, httpx.AsyncClient]]:
    handlers: dict[type[Exception], Callable[[Request, Exception], Awaitable[Response]]] = {
        HTTPException: refuse,
        KeywrightError: refuse,
    }
    service = SampleService(Starlette(routes=list(routes), exception_handlers=handlers))
    running = asyncio.create_task(service.run())
    while service.address is None:  # noqa: ASYNC110  # another task of this loop
        await asyncio.sleep(0.001)
    try:
        async with httpx.AsyncClient(base_url="http://{}:{}".format(*service.address)) as client:
            yield service, client
    finally:
        service.stop()
        await running


async def test_its_parts_end_in_reverse_order(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "keywright.service")
    async with started() as (service, client):
        assert (await client.get("/")).status_code == 404
    assert service.ends == ["server", "task", "database"]
    assert caplog.messages == [f"listening on {str(client.base_url).rstrip('/')}", "stopped"]


async def test_the_error_of_a_task_ends_it_and_is_raised() -> None:
    service = SampleService(Starlette(), ZeroDivisionError())
    with pytest.raises(ZeroDivisionError):
        async with asyncio.timeout(10):
            await service.run()
    assert service.ends == ["server", "database"]


async def test_a_start_that_fails_closes_what_was_opened() -> None:
    class Failing(SampleService):
        async def start(self, opened: AsyncExitStack) -> None:
            await super().start(opened)
            raise UsageError("the database is too old. Migrate it.")

    service = Failing(Starlette())
    with pytest.raises(UsageError):
        await service.run()
    assert service.ends == ["server", "task", "database"]


async def test_health_is_200_or_503_and_says_why() -> None:
    async def work() -> None:
        raise EngineError("Redis is away")

    task = PeriodicTask("tidy", work, None)

    async def report() -> Health:
        return TasksHealth(task.health.ok, [task.health])

    async with started(health_route(report, token=Secret(TOKEN))) as (_, client):
        client.headers["Authorization"] = f"Bearer {TOKEN}"
        well = await client.get("/health")
        await task.attempt()
        ill = await client.get("/health")
    assert (well.status_code, well.json()["ok"], well.json()["tasks"][0]["trouble"]) == (200, True, None)
    assert (ill.status_code, ill.json()["ok"]) == (503, False)
    assert ill.json()["tasks"][0]["trouble"] == "Redis is away"


@pytest.mark.parametrize("token", [None, Secret(TOKEN)], ids=["no token", "a token"])
async def test_without_the_token_health_gives_names_only(token: Secret[str] | None) -> None:
    async def work() -> None:
        raise EngineError("10.0.0.7:6379 is away")

    failing, well = PeriodicTask("tidy", work, None), PeriodicTask("other", work, None)
    await failing.attempt()

    async def report() -> Health:
        return TasksHealth(ok=False, tasks=[failing.health, well.health])

    async def trouble() -> Health:
        return Trouble(ok=False, trouble="10.0.0.7:6379 is away")

    routes = health_route(report, token=token), health_route(trouble, "/other", token=token)
    async with started(*routes) as (_, client):
        shown = await client.get("/health")
        other = await client.get("/other")
        wrong = await client.get("/health", headers={"Authorization": "Bearer wrong"})
    assert (shown.status_code, shown.json()) == (503, {"ok": False, "failing": ["tidy"]})
    assert (other.status_code, other.json()) == (503, {"ok": False})
    assert wrong.status_code == (503 if token is None else 401)
    assert "10.0.0.7" not in shown.text + other.text + wrong.text


async def test_metrics_of_two_services_in_one_process_do_not_collide() -> None:
    class Visits(Metrics):
        def __init__(self) -> None:
            super().__init__()
            self.visits = Counter("visits", "Visits.", registry=self.registry)

    one, other = Visits(), Visits()
    one.visits.inc(3)
    async with started(metrics_route(one), metrics_route(other, "/others")) as (_, client):
        shown = await client.get("/metrics")
        others = await client.get("/others")
    assert shown.headers["Content-Type"].startswith("text/plain")
    assert "visits_total 3.0" in shown.text
    assert "visits_total 0.0" in others.text


async def test_metrics_show_the_process_and_the_runs_of_tasks() -> None:
    async def failing() -> None:
        raise EngineError("away")

    async def working() -> None:
        pass

    tasks = [PeriodicTask("one", failing, None), PeriodicTask("other", working, None)]
    metrics = Metrics()
    metrics.watch_tasks(lambda: tasks)
    for task in (*tasks, tasks[1]):
        await task.attempt()
    shown = metrics.exposition().decode()
    assert 'service_task_runs_total{outcome="failed",task="one"} 1.0' in shown
    assert 'service_task_runs_total{outcome="succeeded",task="other"} 2.0' in shown
    assert 'service_task_ok{task="one"} 0.0' in shown
    assert 'service_task_last_success_seconds{task="other"}' in shown
    assert 'service_task_last_success_seconds{task="one"}' not in shown
    assert "process_open_fds" in shown


async def test_metrics_with_a_token_require_it() -> None:
    async with started(metrics_route(Metrics(), token=Secret(TOKEN))) as (_, client):
        without = await client.get("/metrics")
        wrong = await client.get("/metrics", headers={"Authorization": "Bearer wrong"})
        right = await client.get("/metrics", headers={"Authorization": f"Bearer {TOKEN}"})
    assert [each.status_code for each in (without, wrong, right)] == [401, 401, 200]
    assert "process_" not in without.text + wrong.text


@pytest.mark.parametrize("path", ["/health", "/ready"])
async def test_a_report_that_hangs_is_a_503_within_a_second(path: str) -> None:
    never = asyncio.Event()

    async def hanging() -> Health:
        await never.wait()
        return Health(ok=True)

    async with started(health_route(hanging), ready_route(lambda: True, hanging)) as (_, client):
        answered = await client.get(path, timeout=30)
    assert (answered.status_code, answered.json()) == (503, {"ok": False})


async def test_it_is_ready_between_start_and_stop_while_its_server_answers() -> None:
    away = False

    async def check() -> None:
        if away:
            raise EngineError("10.0.0.7:6379 is away")

    is_started = False
    async with started(ready_route(lambda: is_started, check)) as (service, client):
        before = await client.get("/ready")
        assert service.started
        is_started = True
        ready = await client.get("/ready")
        away = True
        unready = await client.get("/ready")
    assert [each.status_code for each in (before, ready, unready)] == [503, 200, 503]
    assert unready.json() == {"ok": False}


async def test_a_health_report_that_fails_is_a_503_without_the_reason() -> None:
    async def report() -> Health:
        raise EngineError("10.0.0.7:6379 is away")

    async with started(health_route(report, token=Secret(TOKEN))) as (_, client):
        public = await client.get("/health")
        trusted = await client.get("/health", headers={"Authorization": f"Bearer {TOKEN}"})
    assert (public.status_code, public.json()) == (503, {"ok": False})
    assert trusted.json() == {"ok": False, "trouble": "10.0.0.7:6379 is away"}


@pytest.mark.parametrize(
    ("error", "status", "body"),
    [
        (UsageError("no such path. Give another."), 400, {"error": "no such path. Give another."}),
        (EngineError("10.0.0.7:6379 is away"), 503, {"error": "EngineError: try again later"}),
        (HTTPException(418, "a teapot", {"X-Tea": "green"}), 418, {"error": "a teapot"}),
    ],
)
async def test_errors_are_answered_in_json_without_the_names_of_servers(
    error: Exception, status: int, body: dict[str, str]
) -> None:
    async def fail(request: Request) -> Response:
        raise error

    async with started(Route("/", fail)) as (_, client):
        answer = await client.get("/")
    assert (answer.status_code, answer.json()) == (status, body)
    assert (answer.headers.get("Retry-After"), answer.headers.get("X-Tea")) == (
        "1" if status == 503 else None,
        "green" if status == 418 else None,
    )


async def test_json_has_the_fields_of_a_struct() -> None:
    assert json_response(Health(ok=True), 201).body == b'{"ok":true}'
