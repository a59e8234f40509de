"""Writes the handbook's binary documents: `python -m tests.examples [FOLDER]`, from the root of the repository.

Standard library only, fixed dates, archives stored without compression: the same bytes on every machine, so a test
compares what lies in the repository with what is written here.
"""

import sys
from pathlib import Path

from tests.examples.documents import DOCUMENTS


def write(folder: Path) -> None:
    """Every document, below `folder`."""
    for name, build in DOCUMENTS.items():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(build())


if __name__ == "__main__":
    write(Path(sys.argv[1] if len(sys.argv) > 1 else "clew/examples/handbook"))
