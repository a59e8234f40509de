"""The command `clew`, made to write to storage after two thousand passages instead of sixteen thousand.

So a file of a few tens of megabytes is long: what memory it takes then shows what one of gigabytes would take.
"""

from __future__ import annotations

import clew.indexer.batch as batch
from clew.cli.main import main

if __name__ == "__main__":
    batch.SPILL_CHUNKS = 2_000
    main()
