"""How far the token estimate is from a WordPiece tokenizer, by collection.

    python benchmarks/token_estimate.py TOKENIZER.json FILE_OR_FOLDER …

Prints, for each place, estimated over counted tokens: of everything, and the mean and deviation over its paragraphs
of more than 60 tokens.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from pathlib import Path

from clew.indexer.token_estimate import estimate_tokens

_FILES = 150


def main() -> None:
    """Measure each place."""
    from tokenizers import Tokenizer

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tokenizer", type=Path)
    parser.add_argument("places", type=Path, nargs="+")
    options = parser.parse_args()
    tokenizer = Tokenizer.from_file(str(options.tokenizer))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    for place in options.places:
        files = sorted(path for path in place.rglob("*.md")) if place.is_dir() else [place]
        random.Random(1).shuffle(files)
        texts = [path.read_text("utf-8", "replace") for path in files[:_FILES]]
        paragraphs = [part for text in texts for part in text.split("\n\n") if part.strip()]
        counted = [len(made.ids) for made in tokenizer.encode_batch(paragraphs, add_special_tokens=False)]
        started = time.process_time()
        estimated = estimate_tokens(paragraphs)
        seconds = time.process_time() - started
        ratios = [ours / theirs for ours, theirs in zip(estimated, counted, strict=True) if theirs > 60] or [0.0]
        print(
            f"{place}: {sum(estimated) / sum(counted):.3f} overall, paragraphs {statistics.mean(ratios):.3f} "
            f"± {statistics.pstdev(ratios):.3f}, {sum(map(len, paragraphs)) / seconds / 1e6:.0f} MB/s"
        )


if __name__ == "__main__":
    main()
