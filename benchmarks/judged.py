"""The judged public collections, and their indexes: built anew from the code as it is, with vectors that are kept."""

from __future__ import annotations

import gzip
import json
import shutil
import tempfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import clew
from benchmarks.datasets import cache, collection
from benchmarks.kept_vectors import kept_vectors
from clew.query.evaluation import BY_DOCUMENT, Judged, read_judged


@dataclass(frozen=True, kw_only=True)
class JudgedSet:
    """A judged collection: what of its folder is the root, and what is to be known beside its figures."""

    name: str
    title: str
    folder: str = ""  # of the data; `name` where empty
    root: str = "corpus.jsonl.gz"  # relative to its folder
    include: tuple[str, ...] = ()
    suffix: str = ""  # of the files of questions and judgements
    one_each: bool = (
        False  # one relevant document a question, several questions a document: intervals resample documents
    )
    note: str = ""

    @property
    def source(self) -> str:
        """The name of the archive."""
        return self.folder or self.name

    @property
    def cluster(self) -> str | None:
        """What the intervals resample."""
        return BY_DOCUMENT if self.one_each else None

    def judged(self) -> Judged:
        """Its questions."""
        place = collection(self.source)
        return read_judged(str(place / f"queries{self.suffix}.jsonl"), str(place / f"qrels{self.suffix}.tsv"))

    def documents(self) -> list[str]:
        """What judgements call its documents."""
        place = collection(self.source)
        if self.root == ".":
            return sorted(str(file.relative_to(place)) for file in (place / _PAGES[0].strip("/")).iterdir())
        with gzip.open(place / self.root, "rt", encoding="utf-8") as lines:
            return sorted(json.loads(line)["_id"] for line in lines)

    @contextmanager
    def indexed(
        self, embedder: str, kept: Path | None = None, *, only: Collection[str] | None = None
    ) -> Iterator[clew.Index]:
        """An index of it, or of `only` these documents of it: in `kept`, brought up to date where it is there already, or in a
        folder that goes when this ends."""
        selection = {"include": self.include} if self.include else None
        with kept_vectors(cache() / "vectors"), tempfile.TemporaryDirectory(prefix="clew-judged-") as folder:
            root = str(collection(self.source) / self.root if only is None else self._part(only, Path(folder) / "part"))
            place = str((kept or Path(folder)) / f"{self.source}-{embedder}")
            done = clew.index(root, index=place, embedder=embedder, selection=selection, settings=_PATIENT, wait=7200)
            if done.files.failed or not done.chunks.total:
                raise SystemExit(f"{self.name}: {done.files.failed} files failed; figures of the rest would mislead.")
            with clew.open(root, index=place) as index:
                yield index

    def _part(self, wanted: Collection[str], folder: Path) -> Path:
        """The root of a copy, in a new folder, that holds these documents alone."""
        place = collection(self.source)
        if self.root == ".":
            for name in sorted(wanted):
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(place / name, folder / name)
            return folder
        folder.mkdir()
        with gzip.open(place / self.root, "rb") as lines, gzip.open(folder / self.root, "wb") as chosen:
            chosen.writelines(line for line in lines if json.loads(line)["_id"] in wanted)
        return folder / self.root


_PAGES = ("/pages/",)
_PATIENT = {"extraction": {"seconds": 7200}}  # a file of 9 MB is a minute's work where 40 processes share two cores
SETS = {
    one.name: one
    for one in (
        JudgedSet(name="scifact", title="SciFact test"),
        JudgedSet(name="scifact-train", title="SciFact train", folder="scifact", suffix="-train", note="tuned"),
        JudgedSet(
            name="hotpotqa-train500-linked",
            title="HotpotQA train500",
            root=".",
            include=_PAGES,
            note="tuned; derived links",
        ),
        JudgedSet(
            name="musique-train100-linked",
            title="MuSiQue train100",
            root=".",
            include=_PAGES,
            note="tuned; derived links",
        ),
        JudgedSet(name="k8s-questions", title="Kubernetes", one_each=True, note="weak labels; original links"),
        JudgedSet(name="cacm", title="CACM", note="original citations"),
        JudgedSet(name="cranfield", title="Cranfield"),
        JudgedSet(name="xquad-en", title="XQuAD English", one_each=True),
        JudgedSet(name="xquad-ru", title="XQuAD Russian", one_each=True),
        JudgedSet(name="faquad-pt", title="FaQuAD Portuguese", one_each=True),
    )
}
