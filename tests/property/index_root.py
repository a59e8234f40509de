"""A small root on the local disk that changes at random, and tells as events what happened to it."""

from __future__ import annotations

import os
import random
import shutil
from dataclasses import dataclass, field
from pathlib import Path

from clew.connectors.events.hints import Hint
from tests.property.index_pages import (
    BROKEN,
    GOALS,
    HEADINGS,
    MOVABLE,
    PAGES,
    PATHS,
    RECORDS,
    page,
    records,
)


@dataclass(kw_only=True)
class ChangingRoot:
    """Files below `folder`. Every change is one number; the same number does the same to the same files."""

    folder: Path
    now: int  # nanoseconds since 1970: of the files' times, which all differ
    ticks: int = 0
    versions: set[bytes] = field(default_factory=set)  # all that was ever written
    events: list[Hint] = field(default_factory=list)  # what happened and was not told yet

    # --- what is there -------------------------------------------------------------------------

    def paths(self) -> list[str]:
        """All files, sorted."""
        base = str(self.folder)
        found: list[str] = []
        for parent, folders, names in os.walk(base):
            if parent == base and ".clew" in folders:
                folders.remove(".clew")
            prefix = parent[len(base) + 1 :]
            found += [f"{prefix}/{name}" if prefix else name for name in names]
        return sorted(found)

    def read(self, path: str) -> bytes:
        """The bytes of a file."""
        with open(self.folder / path, "rb") as stream:
            return stream.read()

    def files(self) -> dict[str, bytes]:
        """All files with their bytes."""
        return {path: self.read(path) for path in self.paths()}

    def _evidence(self) -> dict[str, tuple[int, int, int]]:
        found = {}
        for path in self.paths():
            status = os.stat(self.folder / path)
            found[path] = (status.st_ino, status.st_size, status.st_mtime_ns)
        return found

    # --- changes -------------------------------------------------------------------------------

    def change(self, number: int) -> None:
        """Do something, and remember the events of it: of single files, or of folders where one moved or went."""
        chance = random.Random(number)
        before = self._evidence()
        folders = chance.choice(_CHANGES)(self, chance)
        after = self._evidence()
        changed = sorted(path for path in {*before, *after} if before.get(path) != after.get(path))
        if folders and chance.random() < 0.5:
            self.events += [Hint(path=folder, is_folder=True) for folder in folders]
        else:
            self.events += [Hint(path=path) for path in changed]

    def put(self, path: str, data: bytes, *, older: bool = False) -> None:
        """Write a file; nothing happens where a folder is in the way."""
        target = self.folder / path
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
        except (FileExistsError, NotADirectoryError, IsADirectoryError):
            return
        self.versions.add(data)
        self.stamp(path, older=older)

    def stamp(self, path: str, *, older: bool = False) -> None:
        """Give a file a time that no other has."""
        self.ticks += 1
        when = self.now + (-1 if older else 1) * self.ticks * 1_000_001
        os.utime(self.folder / path, ns=(when, when))

    def _some(self, chance: random.Random) -> str | None:
        there = self.paths()
        return chance.choice(there) if there else None

    def _move(self, source: Path, target: Path) -> None:
        if source.is_file() and not self._may_take(source, target.name):
            return
        if source.exists() and not target.exists() and not target.is_relative_to(source):
            try:
                target.parent.mkdir(parents=True, exist_ok=True)
            except (FileExistsError, NotADirectoryError):
                return
            source.rename(target)

    def _may_take(self, path: Path, name: str) -> bool:
        """Whether a file may take a name: a page is no record file. Of a broken file an older version is kept, which a
        fresh build would take for what the new name says."""
        suffix = Path(name).suffix
        if path.read_bytes() == BROKEN:
            return path.suffix == suffix
        return (path.suffix == ".jsonl") == (suffix == ".jsonl")

    def _write_page(self, chance: random.Random) -> None:
        self.put(chance.choice(PAGES), page(chance.getrandbits(16)), older=chance.random() < 0.3)

    def _write_records(self, chance: random.Random) -> None:
        self.put(chance.choice(RECORDS), records(chance.getrandbits(16)))

    def _touch(self, chance: random.Random) -> None:
        path = self._some(chance)
        if path:
            self.stamp(path)

    def _rename(self, chance: random.Random) -> None:
        path = self._some(chance)
        if path:
            self._move(self.folder / path, self.folder / chance.choice(GOALS))

    def _rename_folder(self, chance: random.Random) -> tuple[str, ...]:
        source, goal = chance.choice(MOVABLE), chance.choice(("old", "new", "ops", "ref/ops"))
        self._move(self.folder / source, self.folder / goal)
        return source, goal

    def _delete(self, chance: random.Random) -> None:
        path = self._some(chance)
        if path:
            (self.folder / path).unlink()

    def _delete_folder(self, chance: random.Random) -> tuple[str, ...]:
        folder = chance.choice(MOVABLE)
        shutil.rmtree(self.folder / folder, ignore_errors=True)
        return (folder,)

    def _swap(self, chance: random.Random) -> None:
        """Two files change places; where their sizes and times are equal, only their inodes tell."""
        first, second = self._some(chance), self._some(chance)
        if first is None or second is None or first == second:
            return
        if not self._may_take(self.folder / first, second) or not self._may_take(self.folder / second, first):
            return
        if chance.random() < 0.5:
            status = (self.folder / first).stat()
            os.utime(self.folder / second, ns=(status.st_mtime_ns, status.st_mtime_ns))
        spare = self.folder.with_name("spare")
        (self.folder / first).rename(spare)
        (self.folder / second).rename(self.folder / first)
        spare.rename(self.folder / second)

    def _copy(self, chance: random.Random) -> None:
        path, goal = self._some(chance), chance.choice(PATHS)
        if path and path.rsplit(".", 1)[-1] == goal.rsplit(".", 1)[-1]:
            self.put(goal, self.read(path))

    def _damage(self, chance: random.Random) -> None:
        path = self._some(chance)
        if path and path.endswith(".md"):
            self.put(path, BROKEN)

    def _empty(self, chance: random.Random) -> None:
        path = self._some(chance)
        if path:
            self.put(path, b"")

    def _rename_heading(self, chance: random.Random) -> None:
        path = self._some(chance)
        if path and path.endswith(".md"):
            old, new = (f"## {heading}\n".encode() for heading in chance.choices(HEADINGS, k=2))
            self.put(path, self.read(path).replace(old, new))


#: What may happen, the likeliest more than once.
_CHANGES = (
    *(ChangingRoot._write_page,) * 4, *(ChangingRoot._write_records,) * 2, *(ChangingRoot._rename,) * 3, *(ChangingRoot._delete,) * 2,
    ChangingRoot._rename_folder, ChangingRoot._delete_folder, ChangingRoot._swap, ChangingRoot._copy, ChangingRoot._damage,
    ChangingRoot._empty, ChangingRoot._touch, ChangingRoot._rename_heading,
)  # fmt: skip
