"""RabbitMQ as a broker, laid out as the Spectacles document says."""

from keywright_messaging.amqp.broker import AmqpBroker

__all__ = ["AmqpBroker"]
