"""The tests on other versions of Python and of the servers than those of this machine."""
