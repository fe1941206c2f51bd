"""The cells of the matrix: one Python, the servers that it wants, and the tests that run on them."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["CELLS", "SELECTIONS", "Cell"]

SELECTIONS = {
    "servers": (
        "tests/engine",
        "--ignore=tests/engine/test_cluster_faults.py",
        "tests/kinds",
        "tests/relations/test_composed_commits.py",
        "tests/tools/test_audit.py",
        "systems/messaging/tests/test_redis_streams.py",
        "systems/registry/tests/test_registry_on_cluster.py",
    ),
    "rabbitmq": ("systems/messaging/tests", "-k", "amqp or rabbit"),
    "postgresql": ("systems/registry/tests", "-k", "postgres"),
    "smoke": (
        "tests/engine/test_probing.py",
        "tests/kinds/test_record.py",
        "tests/relations/test_commit_telemetry.py",
    ),
}
"""The arguments of pytest. Each takes at most four minutes on two cores that nobody else uses."""


@dataclass(frozen=True)
class Cell:
    """One line of the table. `wanted` are product and version; programs are found by them."""

    python: str
    selection: str
    wanted: str = ""

    @property
    def name(self) -> str:
        return self.wanted or f"Python {self.python}"


CELLS = (
    *(Cell(python, "servers") for python in ("3.11", "3.12", "3.13", "3.14")),
    *(
        Cell("3.11", "servers", wanted)
        for wanted in ("Redis 6.2", "Redis 7.0", "Redis 7.2", "Redis 8.0", "Valkey 8.1", "Valkey 9.1")
    ),
    *(Cell("3.11", "rabbitmq", wanted) for wanted in ("RabbitMQ 3.10", "RabbitMQ 4.0", "RabbitMQ 4.3")),
    *(Cell("3.11", "postgresql", wanted) for wanted in ("PostgreSQL 15", "PostgreSQL 17", "PostgreSQL 18")),
)
