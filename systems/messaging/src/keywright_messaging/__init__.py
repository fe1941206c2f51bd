"""Messages between processes: one contract, one package for each broker."""

from keywright_messaging.contract import Broker, BrokerSettings, Consumer, DeadLetter, Delivery, queue_name
from keywright_messaging.encodings import Encoding, decode, encode
from keywright_messaging.urls import open_broker
from keywright_messaging.worker import Discard, Retry, Worker

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
