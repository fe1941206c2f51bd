"""The broker on RabbitMQ, with the exchanges and queues of the Spectacles document."""

from keywright.errors import dependencies_of

with dependencies_of("an AMQP broker", install="keywright-messaging[amqp]"):
    from keywright_messaging.amqp.broker import AmqpBroker

__all__ = ["AmqpBroker"]
