"""An explorer on a test's server, in a thread of its own, and short ways to look at its pages."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx

from audit_samples import SAMPLES
from audited import Sample
from keywright import Binding, Keyspace, Retry, Settings, aconnect
from keywright.explorer import ExplorerSettings, create_app
from keywright.explorer.explorer import Explorer
from keywright.testing.conditions import wait_until
from keywright.tools import Model
from keywright.tools.http import LOOPBACK, UvicornServer, listening

AXE = (Path(__file__).parent / "web" / "assets" / "axe.min.js").read_text("utf-8")
QUICK = Settings(timeout_seconds=2.0, connect_seconds=1.0, retry=Retry(attempts=2))


class Explored:
    """A running explorer: its address, and its state."""

    def __init__(self, explorer: Explorer, port: int) -> None:
        self.explorer = explorer
        self.port = port
        self.base = f"http://127.0.0.1:{port}"

    def get(self, path: str, **headers: str) -> httpx.Response:
        return httpx.get(self.base + path, headers=headers, timeout=20)

    def post(self, path: str, data: dict[str, str], **headers: str) -> httpx.Response:
        return httpx.post(self.base + path, data=data, headers=headers, timeout=20)

    def surveyed(self) -> Explored:
        """Wait until the first survey is done."""
        wait_until(lambda: self.explorer.surveyor.complete, "a survey")
        return self

    def surveyed_again(self) -> None:
        """Wait until a survey is done that began after this call."""
        before = self.explorer.surveyor.complete
        self.explorer.db._loop.call_soon_threadsafe(self.explorer.surveyor.hurry)
        wait_until(lambda: self.explorer.surveyor.complete is not before, "another survey")


def key_path(name: str | bytes, entry: str | None = None) -> str:
    more = "" if entry is None else f"&entry={quote(entry)}"
    return f"/key?name={quote(name)}{more}"


@contextmanager
def exploring(
    url: str,
    spaces: Sequence[Keyspace | Model],
    bindings: Sequence[Binding] = (),
    *,
    settings: Settings = QUICK,
    beside: Sequence[tuple[str, Sequence[Binding]]] = (),
    declaration: str | None = None,
    **options: Any,
) -> Iterator[Explored]:
    """Run an explorer of a server; `beside` are URLs and bindings.

    Other keywords are those of ExplorerSettings.
    """
    ready: list[Any] = []

    async def run() -> None:
        with listening(LOOPBACK, 0, remedy="") as bound:
            async with AsyncExitStack() as opened:
                db, *others = [
                    await opened.enter_async_context(aconnect(each, *its_bindings, settings=settings))
                    for each, its_bindings in ((url, bindings), *beside)
                ]
                chosen = ExplorerSettings(**{"rest_seconds": 3600.0, **options})
                app = create_app(db, spaces, chosen, declaration=declaration, beside=others)
                server = UvicornServer(app, lifespan=True, proxy_headers=False, grace_seconds=2)
                ready.append((app.state.explorer, server, bound.getsockname()[1]))
                await server.serve([bound])

    def guarded() -> None:
        try:
            asyncio.run(run())
        except BaseException as error:
            ready.append(error)
            raise

    thread = threading.Thread(target=guarded, daemon=True)
    thread.start()
    found = wait_until(lambda: ready and ready[0], "the explorer")
    assert not isinstance(found, BaseException), found
    explorer, server, port = found
    wait_until(lambda: server.started or not thread.is_alive(), "the explorer to listen")
    try:
        yield Explored(explorer, port)
    finally:
        server.stop()
        thread.join(20)


@contextmanager
def exploring_sample(url: str, name: str, **options: Any) -> Iterator[Explored]:
    """Run an explorer of a healthy database of one model, surveyed."""
    sample = filled(url, name)
    with exploring(url, sample.model.spaces, sample.bindings, **options) as explored:
        yield explored.surveyed()


def filled(url: str, name: str) -> Sample:
    sample = SAMPLES[name]()
    with sample.open(url) as db:
        sample.fill(db)
    return sample


async def serious_findings(page: Any) -> list[str]:
    """Return the findings of axe-core on a page that are serious or worse."""
    await page.evaluate(AXE)
    found = await page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{each['id']} ({each['impact']}): {each['nodes'][0]['html'][:200]}"
        for each in found["violations"]
        if each["impact"] in ("serious", "critical")
    ]


async def watched(page: Any, work: Callable[[Any], Any]) -> list[str]:
    """Return the errors of a page during some work on it, and its requests to other hosts."""
    said: list[str] = []
    page.on("pageerror", lambda error: said.append(f"error: {error}"))
    page.on("console", lambda message: said.append(message.text) if message.type == "error" else None)
    page.on(
        "request",
        lambda asked: said.append(f"asked {asked.url}") if "://127.0.0.1:" not in asked.url else None,
    )
    await work(page)
    return [each for each in said if "404 (Not Found)" not in each]
