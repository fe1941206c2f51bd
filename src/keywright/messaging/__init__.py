"""Messages between processes: one contract, one module a broker."""

from keywright.messaging.contract import Broker, BrokerSettings, Consumer, DeadLetter, Delivery, queue_name
from keywright.messaging.encodings import Encoding, decode, encode
from keywright.messaging.opening import open_broker
from keywright.messaging.worker import Discard, Retry, Worker

__all__ = [
    "Broker",
    "BrokerSettings",
    "Consumer",
    "DeadLetter",
    "Delivery",
    "Discard",
    "Encoding",
    "Retry",
    "Worker",
    "decode",
    "encode",
    "open_broker",
    "queue_name",
]
