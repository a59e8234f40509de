"""The command `clew` without a superuser's rights to read what he may not: `python -m tests.acceptance.ordinary COMMAND …`.

A process of its own: rights belong to threads, and those that a library has begun before keep theirs.
"""

from __future__ import annotations

import sys

if __name__ == "__main__":
    from clew.cli.main import main
    from tests.acceptance.faults import ordinary_rights

    with ordinary_rights():
        main(sys.argv[1:])
