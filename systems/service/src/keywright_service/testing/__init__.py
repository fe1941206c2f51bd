"""For the tests of services and their simulators: HTTP servers on loopback, faults, Discord's REST API."""
