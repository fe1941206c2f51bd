"""Round trips as OpenTelemetry spans and metrics (`keywright[telemetry]`).

Templates and operation names are recorded, never key names or values.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from keywright.engine.telemetry import RoundTrip
from keywright.errors import dependencies_of

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import TracerProvider

__all__ = ["OpenTelemetryObserver"]

_SCOPE = "keywright"
_SYSTEM = {"db.system.name": "redis"}


class OpenTelemetryObserver:
    """An observer for `connect(observers=[…])`, through the global providers or those given.

    By template and operation: `keywright.operation.duration` (s), the time of each round trip it was part of,
    and `keywright.operations`, how often it was sent. Over all: `keywright.bytes.sent`,
    `keywright.bytes.received` and `keywright.errors`. Each round trip is one client span under the span
    that is current when it ends.
    """

    def __init__(self, *, meters: MeterProvider | None = None, tracers: TracerProvider | None = None) -> None:
        with dependencies_of("OpenTelemetryObserver", install="keywright[telemetry]"):
            from opentelemetry import metrics, trace
        meter = (meters or metrics.get_meter_provider()).get_meter(_SCOPE)
        self._tracer = (tracers or trace.get_tracer_provider()).get_tracer(_SCOPE)
        self._client = trace.SpanKind.CLIENT
        self._error = trace.StatusCode.ERROR
        self._duration = meter.create_histogram(
            "keywright.operation.duration", "s", "Time of the round trip an operation was part of."
        )
        self._operations = meter.create_counter("keywright.operations", "{operation}", "Commands sent.")
        self._sent = meter.create_counter("keywright.bytes.sent", "By", "Arguments of commands.")
        self._received = meter.create_counter("keywright.bytes.received", "By", "Replies.")
        self._errors = meter.create_counter("keywright.errors", "{error}", "Replies that were errors.")

    def __call__(self, trip: RoundTrip) -> None:
        for (template, operation), count in trip.operations.items():
            attributes = {**_SYSTEM, "keywright.template": template, "keywright.operation": operation}
            # Once a round trip: a batch of ten thousand must not take ten thousand measurements.
            self._duration.record(trip.seconds, attributes)
            self._operations.add(count, attributes)
        self._sent.add(trip.bytes_sent, _SYSTEM)
        self._received.add(trip.bytes_received, _SYSTEM)
        if trip.errors:
            self._errors.add(trip.errors, _SYSTEM)
        self._trace(trip)

    def _trace(self, trip: RoundTrip) -> None:
        end = time.time_ns()
        operations = sorted({operation for _, operation in trip.operations})
        span = self._tracer.start_span(
            f"redis {' '.join(operations[:3])}{' …' if len(operations) > 3 else ''}",
            kind=self._client,
            start_time=end - round(trip.seconds * 1e9),
            attributes={
                **_SYSTEM,
                "db.operation.batch.size": trip.operations.total(),
                "keywright.templates": sorted({template for template, _ in trip.operations if template}),
            },
        )
        if trip.errors:
            span.set_status(self._error, f"{trip.errors} of {trip.operations.total()} commands failed")
        span.end(end)
