"""Messages between processes: one contract, one module a broker."""

from keywright.messaging.contract import Broker, BrokerSettings, Consumer, DeadLetter, Delivery, queue_name
from keywright.messaging.encodings import Encoding, decode, encode
from keywright.messaging.opening import open_broker

__all__ = [
    "Broker",
    "BrokerSettings",
    "Consumer",
    "DeadLetter",
    "Delivery",
    "Encoding",
    "decode",
    "encode",
    "open_broker",
    "queue_name",
]
