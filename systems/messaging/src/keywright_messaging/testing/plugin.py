"""Fixtures of a private RabbitMQ. Opt in with `pytest_plugins`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from keywright.testing import require
from keywright_messaging.testing.rabbitmq import RabbitServer, find_rabbitmq

__all__ = ["amqp_url", "keywright_rabbitmq"]


@pytest.fixture(scope="session")
def keywright_rabbitmq() -> Iterator[RabbitServer]:
    """Start one private RabbitMQ for the whole run, on a loopback port."""
    require(find_rabbitmq)
    with RabbitServer() as server:
        yield server


@pytest.fixture
def amqp_url(keywright_rabbitmq: RabbitServer) -> Iterator[str]:
    """Return the URL of an empty virtual host; start the server again if an earlier test stopped it."""
    keywright_rabbitmq.resume()
    keywright_rabbitmq.start()
    vhost = keywright_rabbitmq.make_vhost()
    yield keywright_rabbitmq.url_of(vhost)
    keywright_rabbitmq.resume()
    keywright_rabbitmq.start()
    keywright_rabbitmq.remove_vhost(vhost)
