"""Round trips as OpenTelemetry spans and metrics: by template and operation, without names or values."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from keywright import Counter, Id, Keyspace, OpenTelemetryObserver, Set, aconnect, connect, gather
from keywright.errors import WrongTypeError

space = Keyspace("observed", "What is watched.")


class Visits(Counter, key="visits:<page>", space=space):
    """How often a page was seen."""

    page: Id


class Visitors(Set[Id], key="visitors:<page>", space=space):
    """Who saw it."""

    page: Id


other = Keyspace("other", "Another program that uses the same names.")


class _Disguised(Counter, key="visitors:<page>", space=other):
    """A counter where the other program keeps a set."""

    page: Id


class Telemetry:
    """In-memory ends of both signals."""

    def __init__(self) -> None:
        self._reader = InMemoryMetricReader()
        self._exporter = InMemorySpanExporter()
        self.tracers = TracerProvider()
        self.tracers.add_span_processor(SimpleSpanProcessor(self._exporter))
        self.observer = OpenTelemetryObserver(
            meters=MeterProvider([self._reader]),
            tracers=self.tracers,
        )

    def spans(self) -> list[ReadableSpan]:
        return list(self._exporter.get_finished_spans())

    def points(self, name: str) -> list[Any]:
        data = self._reader.get_metrics_data()
        assert data is not None
        return [
            point
            for resource in data.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
            if metric.name == name
            for point in metric.data.data_points
        ]


def _by_operation(points: list[Any], value: str) -> dict[tuple[str, str], Any]:
    return {
        (point.attributes["keywright.template"], point.attributes["keywright.operation"]): getattr(
            point, value
        )
        for point in points
        if point.attributes["keywright.template"]
    }


@pytest.fixture
def telemetry() -> Telemetry:
    return Telemetry()


def test_durations_and_counts_are_kept_by_template_and_operation(
    redis_url: str, telemetry: Telemetry
) -> None:
    with connect(redis_url, observers=[telemetry.observer]) as db:
        db.run(gather(Visits("a").add(), Visits("b").add(), Visitors("a").add("me")))
        db.run(Visits("a").add())
    assert _by_operation(telemetry.points("keywright.operation.duration"), "count") == {
        ("visits:<page>", "add"): 2,
        ("visitors:<page>", "add"): 1,
    }
    assert _by_operation(telemetry.points("keywright.operations"), "value") == {
        ("visits:<page>", "add"): 3,
        ("visitors:<page>", "add"): 1,
    }
    for direction in ("sent", "received"):
        (point,) = telemetry.points(f"keywright.bytes.{direction}")
        assert point.value > 0


def test_each_round_trip_is_a_client_span_of_its_own_length(redis_url: str, telemetry: Telemetry) -> None:
    with connect(redis_url, observers=[telemetry.observer]) as db:
        db.run(gather(Visits("secret-page").get(), Visitors("secret-page").members()))
    span = telemetry.spans()[-1]
    assert span.name == "redis get members"
    assert span.kind is SpanKind.CLIENT
    assert span.attributes is not None
    assert span.attributes["db.operation.batch.size"] == 2
    assert span.attributes["keywright.templates"] == ("visitors:<page>", "visits:<page>")
    assert span.start_time is not None
    assert span.end_time is not None
    assert span.end_time > span.start_time
    assert "secret-page" not in span.to_json()


def test_a_span_belongs_to_the_one_around_it(redis_url: str, telemetry: Telemetry) -> None:
    tracer = telemetry.tracers.get_tracer("test")
    with connect(redis_url, observers=[telemetry.observer]) as db, tracer.start_as_current_span("request"):
        db.run(Visits("a").get())
    inner, outer = telemetry.spans()[-2:]
    assert inner.parent is not None
    assert outer.context is not None
    assert inner.parent.span_id == outer.context.span_id


def test_error_replies_are_counted_and_mark_the_span(redis_url: str, telemetry: Telemetry) -> None:
    with connect(redis_url, observers=[telemetry.observer]) as db:
        db.run(Visits("a").add())
        assert telemetry.points("keywright.errors") == []
        db.run(Visitors("a").add("me"))
        with pytest.raises(WrongTypeError):
            db.run(_Disguised("a").add())
    (point,) = telemetry.points("keywright.errors")
    assert point.value == 1
    assert telemetry.spans()[-1].status.status_code is StatusCode.ERROR


async def _one_visit(url: str, telemetry: Telemetry) -> None:
    async with aconnect(url, observers=[telemetry.observer]) as db:
        await db.run(Visits("a").add())


@pytest.mark.anyio
async def test_the_asyncio_engine_reports_the_same(redis_url: str, telemetry: Telemetry) -> None:
    await _one_visit(redis_url, telemetry)
    counts = _by_operation(telemetry.points("keywright.operations"), "value")
    assert counts == {("visits:<page>", "add"): 1}


def test_without_the_package_the_error_has_the_install_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'keywright\[telemetry\]'"):
        OpenTelemetryObserver()
