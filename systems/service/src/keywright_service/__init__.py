"""The service kit: what every long-running process of a system needs."""
