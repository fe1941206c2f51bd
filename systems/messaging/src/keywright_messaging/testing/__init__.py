"""A private RabbitMQ for tests."""
