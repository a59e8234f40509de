"""`python -m clew` is the command `clew`."""

from clew.cli.main import main

if __name__ == "__main__":
    main()
