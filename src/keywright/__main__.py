"""`python -m keywright`: the same as the command `keywright`."""

from keywright.cli import main

main()
