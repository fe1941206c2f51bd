"""The broker on RabbitMQ, with the exchanges and queues of the Spectacles document."""

from keywright_messaging.amqp.broker import AmqpBroker

__all__ = ["AmqpBroker"]
