"""The service over real HTTP, on real Redis and a real database."""

from __future__ import annotations

import asyncio
import base64
import socket
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import msgspec
import psycopg
import pytest

from keywright import Secret, connect
from keywright.errors import UsageError
from keywright.testing import Raw, RedisServer
from keywright_registry.cache import RepositoryCache
from keywright_registry.errors import MetadataError, MetadataUnreachableError
from keywright_registry.repository import Counts, Repository
from keywright_registry.schema import CachedRepository
from keywright_registry.service.configuration import load
from keywright_registry.service.process import RegistryService
from keywright_registry.testing.postgres import PostgresServer

from ..registry_databases import create, opened
from ..registry_service import EVENTS_V1, LAYER, configuration, envelope, event, post, serving

pytestmark = pytest.mark.anyio

TOKEN = "correct horse battery"


@pytest.fixture
async def client(redis_url: str) -> AsyncIterator[httpx.AsyncClient]:
    """A client of a service without a token."""
    async with serving(configuration(redis_url)) as opened_client:
        yield opened_client


@pytest.fixture
async def guarded(redis_url: str) -> AsyncIterator[httpx.AsyncClient]:
    """A client of a service with a token, which the client does not send yet."""
    async with serving(configuration(redis_url, token=TOKEN)) as opened_client:
        yield opened_client


async def test_notifications_are_counted_and_the_counts_are_served(client: httpx.AsyncClient) -> None:
    sent = [event("pull"), event("push", method="PUT"), event("pull", media_type=LAYER)]
    answer = await post(client, *sent)
    assert (answer.status_code, answer.json()) == (200, {"counted": 2, "repeated": 0, "ignored": 1})
    assert (await post(client, *sent)).json() == {"counted": 0, "repeated": 2, "ignored": 1}
    counts = await client.get("/counts/acme/web")
    assert counts.json() == {"path": "acme/web", "pulls": 1, "pushes": 1}


@pytest.mark.parametrize(
    "media_type", [EVENTS_V1, EVENTS_V1.replace("v1", "v2"), f"{EVENTS_V1}; charset=utf-8", EVENTS_V1.upper()]
)
async def test_both_versions_of_the_media_type_are_taken(client: httpx.AsyncClient, media_type: str) -> None:
    headers = {"Content-Type": media_type}
    answer = await client.post("/notifications", content=envelope(event()), headers=headers)
    assert answer.status_code == 200


@pytest.mark.parametrize("media_type", ["application/json", "text/plain", ""])
async def test_another_media_type_is_415(client: httpx.AsyncClient, media_type: str) -> None:
    headers = {"Content-Type": media_type}
    answer = await client.post("/notifications", content=envelope(event()), headers=headers)
    assert answer.status_code == 415
    assert EVENTS_V1 in answer.json()["error"]


async def test_a_malformed_envelope_is_400_with_the_reason_and_counts_nothing(
    client: httpx.AsyncClient,
) -> None:
    answer = await post(client, event(), event(path="Upper"))
    assert answer.status_code == 400
    assert "has 'U' in it" in answer.json()["error"]
    assert (await client.get("/counts/acme/web")).json()["pulls"] == 0


def basic(password: str, user: str = "registry") -> str:
    return f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"


@pytest.mark.parametrize(
    "authorization", [f"Bearer {TOKEN}", f"bearer {TOKEN}", basic(TOKEN), basic(TOKEN, "")]
)
async def test_the_token_is_taken_as_bearer_and_as_basic_password(
    guarded: httpx.AsyncClient, authorization: str
) -> None:
    guarded.headers["Authorization"] = authorization
    assert (await post(guarded, event())).status_code == 200
    assert (await guarded.get("/counts/acme/web")).json()["pulls"] == 1


@pytest.mark.parametrize(
    "authorization",
    [
        "",
        "Bearer",
        "Bearer wrong",
        f"Bearer {TOKEN}x",
        TOKEN,
        "Basic !!!",
        basic("wrong"),
        basic(""),
        "Digest x",
    ],
)
async def test_without_the_token_nothing_is_answered_or_counted(
    guarded: httpx.AsyncClient, authorization: str
) -> None:
    headers = {"Authorization": authorization, "Content-Type": EVENTS_V1}
    for answer in (
        await guarded.post("/notifications", content=envelope(event()), headers=headers),
        await guarded.get("/counts/acme/web", headers=headers),
        await guarded.get("/repositories/acme/web", headers=headers),
    ):
        assert answer.status_code == 401
        assert "Bearer" in answer.headers["WWW-Authenticate"]
    counts = await guarded.get("/counts/acme/web", headers={"Authorization": f"Bearer {TOKEN}"})
    assert counts.json()["pulls"] == 0
    assert (await guarded.get("/health")).status_code == 200, "health asks for nothing"


async def test_a_token_may_have_any_characters(redis_url: str) -> None:
    settings = configuration(redis_url, token="streng-geheim-ü-密")
    async with serving(settings) as client:
        for header in ("Bearer streng-geheim-ü-密".encode(), basic("streng-geheim-ü-密").encode()):
            answer = await client.get("/counts/a", headers=[(b"Authorization", header)])
            assert answer.status_code == 200


@pytest.mark.parametrize("path", ["", "%00", "%ff", "a" * 3000, "..%2f..%2fetc", "{x}"])
async def test_odd_paths_are_not_a_server_error(client: httpx.AsyncClient, path: str) -> None:
    assert (await client.get(f"/repositories/{path}")).status_code in (400, 404)
    assert (await client.get(f"/counts/{path}")).status_code in (200, 400)


async def test_a_body_above_the_bound_is_413_even_when_its_length_is_not_declared(redis_url: str) -> None:
    fits = envelope(event())
    settings = configuration(redis_url, http_largest_body=str(len(fits)))
    sent = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal sent
        while True:
            sent += 1000
            yield b" " * 1000

    async with serving(settings) as client:
        headers = {"Content-Type": EVENTS_V1}
        answer = await client.post("/notifications", content=fits + b" ", headers=headers)
        assert answer.status_code == 413
        assert (await client.post("/notifications", content=fits, headers=headers)).status_code == 200
        try:
            answer = await client.post("/notifications", content=endless(), headers=headers)
        except (httpx.WriteError, httpx.ReadError):
            pass  # it closed the connection while we were still sending
        else:
            assert answer.status_code == 413
        assert sent < 50_000_000
        assert 'refused_total{status="413"} 2.0' in (await client.get("/metrics")).text


async def test_a_client_that_disconnects_during_its_body_does_no_harm(client: httpx.AsyncClient) -> None:
    host, port = client.base_url.host, client.base_url.port or 0
    with socket.create_connection((host, port)) as leaving:
        head = (
            f"POST /notifications HTTP/1.1\r\nHost: {host}\r\nContent-Type: {EVENTS_V1}\r\nContent-Length: 99"
        )
        leaving.sendall(head.encode() + b"\r\n\r\n{")
    assert (await post(client, event())).status_code == 200


async def test_other_paths_and_methods_are_refused(client: httpx.AsyncClient) -> None:
    assert (await client.get("/nothing")).status_code == 404
    assert (await client.get("/notifications")).status_code == 405
    assert (await client.post("/health")).status_code == 405


async def test_a_repository_is_read_through_and_cached(redis_url: str, postgres_url: str) -> None:
    settings = configuration(redis_url, database_url=postgres_url, cache_repositories="true")
    async with serving(settings) as client:
        assert (await client.get("/repositories/acme/web")).status_code == 404
        async with opened(postgres_url) as metadata:
            await create(metadata, "acme/web")
            stored = await metadata.find("acme/web")
        answer = await client.get("/repositories/acme/web")
        assert answer.status_code == 200
        assert msgspec.json.decode(answer.content, type=Repository) == stored
        metrics = (await client.get("/metrics")).text
        assert 'registry_cache_events_total{event="queried"} 2.0' in metrics
        assert 'registry_cache_events_total{event="unreachable"} 0.0' in metrics
    with connect(redis_url) as db:
        cached = db.run(RepositoryCache().get("acme/web"))
    assert cached
    assert cached.path == "acme/web"


async def test_without_a_database_cached_repositories_are_served(
    redis_url: str, client: httpx.AsyncClient
) -> None:
    repository = Repository(
        id=2**63 - 1, namespace_id=1, name="café", path="café", created_at=datetime.now(UTC)
    )
    with connect(redis_url) as db:
        db.run(RepositoryCache().set(repository))
    answer = await client.get("/repositories/café")
    assert msgspec.json.decode(answer.content, type=Repository) == repository
    assert (await client.get("/repositories/other")).status_code == 404


async def test_an_undecodable_repository_is_503(redis_url: str, raw: Raw, client: httpx.AsyncClient) -> None:
    raw("SET", b"registry:" + bytes(CachedRepository.of("acme")), b"\xc1")
    assert (await client.get("/repositories/acme")).status_code == 503


async def test_while_redis_is_away_notifications_are_503_and_count_when_they_come_again(
    keywright_server: RedisServer, client: httpx.AsyncClient
) -> None:
    sent = event()
    keywright_server.stop()
    try:
        answer = await post(client, sent)
        assert answer.status_code == 503
        assert answer.headers["Retry-After"]
        assert (await client.get("/health")).status_code == 503
    finally:
        keywright_server.start()
    assert (await post(client, sent)).json()["counted"] == 1
    assert (await client.get("/health")).json() == {"ok": True}


async def test_an_unreachable_database_makes_it_unhealthy_but_counting_goes_on(
    redis_url: str, postgres_url: str, keywright_postgres: PostgresServer
) -> None:
    settings = configuration(redis_url, database_url=postgres_url)
    async with serving(settings) as client:
        keywright_postgres.kill()
        try:
            assert (await post(client, event())).status_code == 200
            assert (await client.get("/health")).status_code == 503
        finally:
            keywright_postgres.start()
        assert (await client.get("/health")).status_code == 200
    async with opened(postgres_url) as metadata:
        assert await metadata.counts("acme/web") == Counts("acme/web", 1, 0)


async def test_metrics_count_events_by_outcome(client: httpx.AsyncClient) -> None:
    sent = event("push")
    await post(client, sent)
    await post(client, sent, event("pull", media_type=LAYER))
    await client.post("/notifications", content=b"{}", headers={"Content-Type": EVENTS_V1})
    text = (await client.get("/metrics")).text
    assert 'keywright_registry_events_total{action="push",outcome="counted"} 1.0' in text
    assert 'keywright_registry_events_total{action="push",outcome="repeated"} 1.0' in text
    assert 'keywright_registry_events_total{action="pull",outcome="ignored"} 1.0' in text
    assert 'keywright_registry_notifications_refused_total{status="400"} 1.0' in text


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "registry.example"])
def test_it_does_not_listen_beyond_loopback_without_a_token(host: str) -> None:
    with pytest.raises(UsageError, match="KEYWRIGHT_REGISTRY_TOKEN"):
        configuration(http_address=f"{host}:0")
    assert configuration(http_address=f"{host}:0", token=TOKEN).address == (host, 0)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.9", "::1", "localhost"])
def test_loopback_needs_no_token(host: str) -> None:
    assert configuration(http_address=f"{host}:0").token is None


def test_settings_do_not_show_passwords() -> None:
    settings = configuration(
        "redis://:hunter2-b@host",
        token="hunter2-a-long-one",
        database_url="postgresql://me:hunter2-c@host/db",
    )
    assert "hunter2" not in f"{settings} {settings!r}"


@pytest.mark.parametrize("token", ["a", "correct horse", "a" * 16])
def test_a_token_that_could_be_guessed_is_refused(token: str) -> None:
    with pytest.raises(UsageError, match="Use a long random one"):
        configuration(token=token)


@pytest.mark.parametrize("path", ["/counts/acme/web", "/health", "/metrics"])
async def test_without_a_token_a_request_to_another_host_is_refused(
    client: httpx.AsyncClient, path: str
) -> None:
    """A page of evil.example whose name leads to this machine (DNS rebinding) reads nothing."""
    ours = client.base_url.netloc.decode()
    for host, status in (("evil.example", 421), ("localhost", 200), (ours, 200)):
        assert (await client.get(path, headers={"Host": host})).status_code == status


async def test_without_a_token_a_push_through_another_host_is_not_counted(client: httpx.AsyncClient) -> None:
    headers = {"Content-Type": EVENTS_V1, "Host": "evil.example"}
    answer = await client.post("/notifications", content=envelope(event("push")), headers=headers)
    assert answer.status_code == 421
    assert (await client.get("/counts/acme/web")).json()["pushes"] == 0


async def test_with_a_token_the_service_may_have_any_name(guarded: httpx.AsyncClient) -> None:
    headers = {"Authorization": f"Bearer {TOKEN}", "Host": "counts.example"}
    assert (await guarded.get("/counts/acme/web", headers=headers)).status_code == 200


async def test_while_many_guesses_wait_others_are_not_looked_at(guarded: httpx.AsyncClient) -> None:
    async def guess(number: int) -> httpx.Response:
        return await guarded.get("/counts/acme/web", headers={"Authorization": f"Bearer {number}"})

    answers = await asyncio.gather(*map(guess, range(60)))
    found = [answer.status_code for answer in answers]
    assert set(found) == {401, 429}
    assert {answer.headers.get("Retry-After") for answer in answers} == {None, "5"}
    right = await guarded.get("/counts/acme/web", headers={"Authorization": f"Bearer {TOKEN}"})
    assert right.status_code == 200


async def test_a_long_cookie_is_refused(client: httpx.AsyncClient) -> None:
    assert (await client.get("/health", headers={"Cookie": "\\" * 40_000})).status_code == 431


async def test_a_taken_address_is_a_usage_error(redis_url: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        service = RegistryService(
            configuration(redis_url, http_address=f"127.0.0.1:{taken.getsockname()[1]}")
        )
        with pytest.raises(UsageError, match="cannot be listened on"):
            await service.run()


async def test_an_unreachable_database_ends_the_start(redis_url: str, tmp_path: Path) -> None:
    service = RegistryService(configuration(redis_url, database_url=f"sqlite:///{tmp_path}/none/x.db"))
    with pytest.raises(MetadataUnreachableError):
        await service.run()


async def test_repositories_are_listed_in_pages(redis_url: str, database_url: str) -> None:
    async with serving(configuration(redis_url, database_url=database_url)) as client:
        async with opened(database_url) as metadata:
            for path in ("zoo", "acme/web", "acme/a_1"):
                await create(metadata, path)
        paths, after = [], ""
        while after is not None:
            page = (await client.get("/repositories", params={"n": 2, "after": after})).json()
            paths += [each["path"] for each in page["repositories"]]
            after = page["next"]
        assert paths == ["acme", "acme/a_1", "acme/web", "zoo"]
        for wrong in ("0", "-1", "1001", "x", "٣", "9" * 5000):
            assert (await client.get("/repositories", params={"n": wrong})).status_code == 400
        assert (await client.get("/repositories", params={"after": "a\x00"})).json()["repositories"] == []


async def test_without_a_database_repositories_cannot_be_listed(client: httpx.AsyncClient) -> None:
    answer = await client.get("/repositories")
    assert (answer.status_code, "none is configured" in answer.json()["error"]) == (404, True)


async def test_refusals_are_logged_with_the_reason_and_not_without_bound(
    guarded: httpx.AsyncClient, caplog: pytest.LogCaptureFixture
) -> None:
    await post(guarded, event())
    headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": EVENTS_V1}
    for _ in range(50):
        await guarded.post("/notifications", content=b"{", headers=headers)
    logged = [each for each in caplog.messages if each.startswith("refused")]
    assert len(logged) < 5
    assert logged[0].startswith("refused a notification of 127.0.0.1 with 401: ")
    assert TOKEN not in caplog.text


async def test_it_is_ready_while_redis_answers_whatever_the_database_does(
    redis_url: str, postgres_url: str, keywright_postgres: PostgresServer, keywright_server: RedisServer
) -> None:
    async with serving(configuration(redis_url, database_url=postgres_url)) as client:
        assert (await client.get("/ready")).status_code == 200
        keywright_postgres.kill()
        try:
            assert (await client.get("/health")).status_code == 503
            assert (await client.get("/ready")).status_code == 200
        finally:
            keywright_postgres.start()
        keywright_server.stop()
        try:
            assert (await client.get("/ready")).status_code == 503
        finally:
            keywright_server.start()


async def test_the_database_of_a_gitlab_registry_is_refused_and_not_changed(
    redis_url: str, postgres_url: str
) -> None:
    tables = (
        "CREATE TABLE schema_migrations (id text PRIMARY KEY, applied_at timestamptz)",
        "CREATE TABLE repositories (id bigint, top_level_namespace_id bigint, path text)",
        "INSERT INTO schema_migrations VALUES ('20210503145024_create_top_level_namespaces_table', now())",
    )
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        for statement in tables:
            connection.execute(statement.encode())
    service = RegistryService(configuration(redis_url, database_url=postgres_url))
    with pytest.raises(MetadataError, match="give the registry a database of its own"):
        await service.run()
    with psycopg.connect(postgres_url) as connection:
        found = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
    assert sorted(found) == [("repositories",), ("schema_migrations",)]


def test_a_file_the_environment_and_flags_configure_it(tmp_path: Path) -> None:
    file = tmp_path / "registry.toml"
    database = "[database]\nurl = 'sqlite:///a.db'\n"
    file.write_text(f"token = '{TOKEN}'\n{database}[http]\naddress = ':1'\n[flush]\nevery = '2m'\n")
    environment = {"KEYWRIGHT_REGISTRY_DATABASE": "sqlite:///b.db", "KEYWRIGHT_REGISTRY_ADDRESS": ":2"}
    found = load(file, environment, {"http.address": ":3"})
    assert (found.address, found.database.url) == (("127.0.0.1", 3), "sqlite:///b.db")
    assert (found.flush_every, found.token) == (timedelta(minutes=2), Secret(TOKEN))


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        ({"KEYWRIGHT_REGISTRY_TOKN": "x"}, "The nearest is KEYWRIGHT_REGISTRY_TOKEN"),
        ({"KEYWRIGHT_REGISTRY_FLUSH_EVERY": "often"}, "is not a duration"),
        ({"KEYWRIGHT_REGISTRY_LARGEST_BODY": "0"}, "http.largest_body: is not positive"),
        ({"KEYWRIGHT_REGISTRY_CACHE": "perhaps"}, "it must be true or false"),
    ],
)
def test_a_wrong_setting_is_refused(environment: dict[str, str], said: str) -> None:
    with pytest.raises(UsageError) as refused:
        load(None, environment)
    assert said in str(refused.value)
