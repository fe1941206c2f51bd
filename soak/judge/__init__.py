"""The judge. It imports nothing of Keywright: it reads logs, and Redis, PostgreSQL and RabbitMQ raw."""
