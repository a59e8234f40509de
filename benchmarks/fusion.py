"""How long fusing 4 × 1000 candidates takes: `python benchmarks/fusion.py`. Target: p50 ≤ 0.25 ms."""

from __future__ import annotations

import json
import time

import numpy as np

from clew.query.candidates import Candidates
from clew.query.fusion import PathResult, fuse, union
from clew_client.types import PATHS


def main() -> None:
    """Print one JSON object of p50 milliseconds by combination and normalisation."""
    rng = np.random.default_rng(7)
    universe, k = 1_000_000, 1000
    tie = rng.permutation(universe)
    pool = rng.choice(universe, 3 * k, replace=False)  # so that the lists overlap as real ones do
    lists = {
        name: PathResult(
            candidates=Candidates.best(rng.choice(pool, k, replace=False), rng.gamma(2.0, size=k), k, tie),
        )
        for name in PATHS
    }
    everyone = union(lists)
    exact = {
        name: PathResult(candidates=result.candidates, exact=rng.gamma(1.0, size=len(everyone)) * 0.1)
        for name, result in lists.items()
    }
    report: dict[str, float] = {}
    for combine in ("sum", "max", "mean", "rrf"):
        for normalize in ("minmax", "minmax-observed", "l2", "zscore", "none"):
            report[f"{combine} {normalize}"] = _p50(
                lambda c=combine, n=normalize: fuse(lists, tie, combine=c, normalize=n)
            )
            if combine == "rrf":
                break
    report["sum minmax, scored exactly on every path"] = _p50(lambda: fuse(exact, tie))
    print(json.dumps({"p50_ms": report, "union": len(everyone)}, indent=2))


def _p50(call: object, repeats: int = 400) -> float:
    assert callable(call)
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return round(float(np.median(times)) * 1000, 4)


if __name__ == "__main__":
    main()
