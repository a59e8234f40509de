"""How many of another program's resolved links we find, what is missed, and what we find beyond.

    python benchmarks/links_coverage.py DATA [SET …] [--beyond 100] [--json FILE]

DATA holds a folder for each set: `files/` is the root, `links.tsv` (source, target, how written) the links that
another program resolved. Rows written as `glossary` are counted aside: that shortcode is one site's own.
"""

from __future__ import annotations

import argparse
import io
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from clew.indexer.extract.document import Document, Source
from clew.indexer.extract.registry import extract
from clew.indexer.links.path_index import PathIndex
from clew.indexer.links.paths import declared_urls
from clew.indexer.links.resolution import resolve
from clew.indexer.links.site import learn_site

SETS = "docs-kubernetes docs-cpp docs-mdn docs-rust-book docs-owasp-cheatsheets docs-react-pt docs-react-ru"
Pair = tuple[str, str]


def documents(root: Path) -> Iterator[tuple[str, Document]]:
    """Every document below a folder, in path order."""
    for file in sorted(path for path in root.rglob("*") if path.is_file()):
        data = file.read_bytes()
        if not data:
            continue
        path = file.relative_to(root).as_posix()
        for document in extract(Source(path=path, size=len(data), stream=io.BytesIO(data))).documents:
            yield path, document


def measure(folder: Path, beyond: int) -> dict[str, object]:
    """One set: coverage, what is missed, a sample of what is found beyond."""
    started = time.process_time()
    found = list(documents(folder / "files"))
    extracted = time.process_time()
    paths = PathIndex([path for path, _ in found], [declared_urls(document) for _, document in found])
    links = [(path, link, document.base_href) for path, document in found for link in document.links]
    indexed = time.process_time()
    site = learn_site(((path, link.href) for path, link, _ in links), paths)
    learnt = time.process_time()
    resolved: dict[Pair, tuple[str, str]] = {}
    states: Counter[str] = Counter()
    dangling: Counter[str] = Counter()
    for path, link, base in links:
        result = resolve(link.href, kind=link.kind, source=path, paths=paths, site=site, base_href=base)
        states[result.state] += 1
        if result.target is not None and result.target != path:
            resolved.setdefault((path, result.target), (link.href, link.kind))
        elif result.state == "dangling":
            dangling[link.href] += 1
    done = time.process_time()
    rows = [line.split("\t") for line in (folder / "links.tsv").read_text("utf-8").splitlines()[1:]]
    wanted = {(source, target) for source, target, how in rows if how != "glossary"}
    aside = {(source, target) for source, target, how in rows if how == "glossary"} - wanted
    missed = sorted(wanted - resolved.keys())
    extra = sorted(resolved.keys() - wanted - aside)
    sample = random.Random(7).sample(extra, min(beyond, len(extra)))
    return {
        "set": folder.name,
        "wanted": len(wanted),
        "found": len(wanted) - len(missed),
        "share": (len(wanted) - len(missed)) / len(wanted),
        "glossary": [len(aside & resolved.keys()), len(aside)],
        "states": dict(states),
        "roots": [(root.prefix, root.folder) for root in site.roots],
        "base_urls": list(site.base_urls),
        "missed": missed,
        "beyond": len(extra),
        "sample": [(*pair, *resolved[pair]) for pair in sorted(sample)],
        "dangling": dangling.most_common(40),
        "cpu_seconds": {
            "extract": extracted - started,
            "paths": indexed - extracted,
            "learn": learnt - indexed,
            "resolve": done - learnt,
        },
        "links": len(links),
    }


def main() -> int:
    """Measure the sets asked for; exit 1 where fewer than 97 % are found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("sets", nargs="*", default=SETS.split())
    parser.add_argument("--beyond", type=int, default=15, help="pairs to print beyond links.tsv")
    parser.add_argument("--missed", type=int, default=15, help="missed pairs to print")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    results = []
    for name in options.sets:
        result = measure(options.data / name, options.beyond)
        results.append(result)
        missed, sample = result["missed"], result["sample"]
        assert isinstance(missed, list)
        assert isinstance(sample, list)
        print(
            f"{name}: {result['found']} of {result['wanted']} pairs ({result['share']:.2%}), {result['beyond']} beyond"
        )
        for key in ("glossary", "states", "roots", "base_urls", "cpu_seconds", "links"):
            print(f"  {key}: {result[key]}")
        for pair in missed[: options.missed]:
            print("  missed", *pair)
        for row in sample:
            print("  beyond", *row)
    if options.json:
        options.json.write_text(json.dumps(results, indent=1, ensure_ascii=False))
    return 0 if all(float(str(result["share"])) >= 0.97 for result in results) else 1


if __name__ == "__main__":
    sys.exit(main())
