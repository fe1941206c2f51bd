"""`python -m keywright`: the same as the command `keywright`."""

from keywright.ui.cli import main

main()
