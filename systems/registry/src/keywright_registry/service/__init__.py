"""The registry's companion: counts pulls and pushes from its notifications, and serves repositories."""
