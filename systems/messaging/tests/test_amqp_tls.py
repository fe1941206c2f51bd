"""amqps://: the same broker behind a certificate."""

from __future__ import annotations

from pathlib import Path

import pytest

from certificates import write_certificate
from keywright.testing import LOOPBACK, free_port
from keywright_messaging import open_broker
from keywright_messaging.errors import BrokerUnreachableError
from keywright_messaging.testing.rabbitmq import RabbitServer

pytestmark = pytest.mark.anyio


async def test_a_broker_behind_tls_is_used_if_its_certificate_is_trusted(
    keywright_rabbitmq: RabbitServer, tmp_path: Path
) -> None:
    certificate, key = write_certificate(tmp_path)
    port = free_port()
    options = {
        "listeners.ssl.1": f"{LOOPBACK}:{port}",
        "ssl_options.cacertfile": str(certificate),
        "ssl_options.certfile": str(certificate),
        "ssl_options.keyfile": str(key),
    }
    url = f"amqps://guest:guest@{LOOPBACK}:{port}/"
    with RabbitServer(options=options):
        async with (
            await open_broker(f"{url}?cafile={certificate}") as broker,
            broker.consume("A") as consumer,
        ):
            await broker.publish_many("A", ["x" * 100_000] * 20)
            for _ in range(20):
                delivery = await anext(consumer)
                assert delivery.data == "x" * 100_000
                await delivery.acknowledge()
        with pytest.raises(BrokerUnreachableError, match="certificate verify failed"):
            await open_broker(url)
