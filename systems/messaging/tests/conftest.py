"""The brokers that the conformance suite runs against."""

from __future__ import annotations

import pytest

from .broker_bench import Bench


@pytest.fixture(
    params=[
        "memory",
        "redis",
        pytest.param("cluster", marks=pytest.mark.cluster),
        "rabbitmq",
        "rabbitmq-quorum",
    ]
)
def bench(request: pytest.FixtureRequest) -> Bench:
    if request.param == "memory":
        return Bench("memory", f"memory://{request.node.name}".translate({ord("["): "-", ord("]"): None}))
    if request.param == "rabbitmq-quorum":
        return Bench("rabbitmq", request.getfixturevalue("amqp_url"), {"quorum": True})
    fixture = {"redis": "redis_url", "cluster": "cluster_url", "rabbitmq": "amqp_url"}[request.param]
    return Bench(request.param, request.getfixturevalue(fixture))
