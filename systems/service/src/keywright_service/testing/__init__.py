"""Loopback HTTP servers and faults for the tests of services."""
