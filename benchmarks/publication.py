"""Tables that benchmarks write into `docs/benchmarks.md`, between two marks, and the pictures beside them."""

from __future__ import annotations

from pathlib import Path

PAGE = Path(__file__).resolve().parents[1] / "docs" / "benchmarks.md"


def publish(name: str, table: str, picture: str, caption: str) -> None:
    """Put a table between the marks of `name`, and its picture into `docs/images/NAME.svg`."""
    begin, end = f"<!-- {name}: written by `python -m benchmarks.{name} --publish` -->", f"<!-- /{name} -->"
    text = PAGE.read_text("utf-8")
    if text.count(begin) != 1 or text.count(end) != 1:
        raise SystemExit(f"{PAGE} lacks the marks {begin} and {end} between which the table goes.")
    before, rest = text.split(begin)
    shown = f"![{caption}](images/{name}.svg)"
    PAGE.write_text(f"{before}{begin}\n\n{table}\n\n{shown}\n\n{end}{rest.split(end)[1]}", "utf-8")
    images = PAGE.parent / "images"
    images.mkdir(exist_ok=True)
    (images / f"{name}.svg").write_text(picture, "utf-8")


def figure(value: float | None) -> str:
    """.917, and a dash for nothing."""
    return "–" if value is None else f"{value:.3f}".replace("0.", ".", 1)


def gain(difference: float, low: float, high: float, p: float) -> str:
    """A difference, its interval, and a star where it is no chance (p < .05)."""
    signed = [f"{value:+.3f}".replace("0.", ".", 1) for value in (difference, low, high)]
    return f"{signed[0]} ({signed[1]} … {signed[2]}){'*' if p < 0.05 else ''}".replace("-", "−")
