"""`python -m limi` is the command `limi`."""

from limi.cli import main

main()
