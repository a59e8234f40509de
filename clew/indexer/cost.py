"""What work will cost, estimated from the benchmarks on two cores: see docs/benchmarks.md."""

from __future__ import annotations

from dataclasses import dataclass

CHARS_PER_CHUNK = 1_000
READING_BYTES_PER_SECOND = 1_500_000
CHUNKS_PER_SECOND = {"none": 1e9, "minilm": 22.0, "wordllama": 4_200.0, "e5": 22.0, "given": 1e9, "hashing": 50_000.0}


@dataclass(frozen=True, kw_only=True, slots=True)
class Cost:
    """What reading and embedding some files takes."""

    files: int
    bytes: int
    chunks: int
    seconds: float

    def sentence(self) -> str:
        """For people."""
        size = f"{self.bytes / 1e9:.1f} GB" if self.bytes >= 1e9 else f"{self.bytes / 1e6:.1f} MB"
        return (
            f"{self.files:,} files ({size}) are read and about {self.chunks:,} passages embedded anew, which takes some "
            f"{_duration(self.seconds)} here; --dry-run tells more"
        )


def cost_of(files: int, size: int, embedder: str, chunks: int | None = None) -> Cost:
    """The cost of `files` with `size` bytes together, of `chunks` passages where that is known."""
    passages = size // CHARS_PER_CHUNK + files if chunks is None else chunks
    rate = CHUNKS_PER_SECOND.get(embedder.partition(":")[0], CHUNKS_PER_SECOND["minilm"])
    seconds = round(size / READING_BYTES_PER_SECOND + passages / rate, 1)
    return Cost(files=files, bytes=size, chunks=passages, seconds=seconds)


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / 60)} min" if seconds < 7200 else f"{round(seconds / 3600)} h"
