"""YAML that knows where each key stood, so that a wrong setting can be named with its line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

Path = tuple[str | int, ...]

LARGEST = 1 << 20  # bytes; a configuration is written by people


@dataclass(frozen=True, kw_only=True, slots=True)
class Fault:
    """One thing that is wrong with a configuration."""

    key: str  # dotted, '' for the file as a whole
    line: int | None  # from 1; None where it comes from elsewhere (the environment)
    message: str  # what is wrong, and what is allowed

    def sentence(self) -> str:
        """In one line."""
        where = f"line {self.line}: " if self.line else ""
        return f"{where}{self.key}: {self.message}" if self.key else f"{where}{self.message}"


@dataclass(kw_only=True)
class Marked:
    """A document, the lines of its keys, and what is wrong with it as YAML."""

    data: dict[str, Any] = field(default_factory=dict)
    lines: dict[Path, int] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)

    def line(self, path: Sequence[str | int]) -> int | None:
        """The line of the deepest part of `path` that is written in the file."""
        for length in range(len(path), 0, -1):
            found = self.lines.get(tuple(path[:length]))
            if found is not None:
                return found
        return None


def dotted(path: Sequence[str | int]) -> str:
    """A path as people write it."""
    return ".".join(str(part) for part in path)


def read_marked(text: bytes) -> Marked:
    """Read one YAML mapping. What is wrong becomes faults, never an exception."""
    import yaml

    marked = Marked()
    if len(text) > LARGEST:
        marked.faults.append(Fault(key="", line=None, message=f"larger than {LARGEST} bytes; this is no configuration"))
        return marked
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        loaded = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # ValueError: a date such as 2026-99-99
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or str(error).splitlines()[0]
        line = mark.line + 1 if mark else None
        marked.faults.append(Fault(key="", line=line, message=f"not YAML: {problem}"))
        return marked
    if loaded is None:
        return marked
    if not isinstance(loaded, dict):
        marked.faults.append(
            Fault(key="", line=1, message="expected keys and values, such as `collections:` and what belongs to it")
        )
        return marked
    _walk(node, (), marked, set())
    marked.data = loaded
    return marked


def _walk(node: Any, path: Path, marked: Marked, above: set[int]) -> None:
    import yaml

    if id(node) in above:  # an alias that names a part of itself
        marked.faults.append(Fault(key=dotted(path), line=node.start_mark.line + 1, message="contains itself"))
        return
    above = above | {id(node)}
    if isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            line = key.start_mark.line + 1
            if not isinstance(key, yaml.ScalarNode) or key.tag != "tag:yaml.org,2002:str":
                if getattr(key, "tag", "") != "tag:yaml.org,2002:merge":
                    name = dotted((*path, str(key.value)))
                    marked.faults.append(Fault(key=name, line=line, message="a key must be text; put it into quotes"))
                continue
            if key.value in seen:  # YAML readers silently take the last one
                name = dotted((*path, key.value))
                marked.faults.append(Fault(key=name, line=line, message="written twice; leave one of them out"))
            seen.add(key.value)
            marked.lines[(*path, key.value)] = line
            _walk(value, (*path, key.value), marked, above)
    elif isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            marked.lines[(*path, index)] = item.start_mark.line + 1
            _walk(item, (*path, index), marked, above)
