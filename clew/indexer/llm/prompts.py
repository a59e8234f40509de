"""Prompts: Markdown files in the package, each with a system part, a user part and places to fill.

A prompt's version is the hash of its file, so replies to an older wording are never taken for replies to this one. No prompt holds
an example of a name: what is written there could come back as if a text had said it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import xxhash

from clew.indexer.llm.protocol import Message

_PLACE = re.compile(r"\{\{(\w+)\}\}")
_PARTS = re.compile(r"\A(?:<!--.*?-->\s*)?# system\n(?P<system>.*?)\n# user\n(?P<user>.*)\Z", re.DOTALL)


@dataclass(frozen=True, kw_only=True, slots=True)
class Filled:
    """A prompt with its places filled: what is asked."""

    name: str
    version: str
    messages: tuple[Message, ...]
    max_tokens: int = 1024


@dataclass(frozen=True, kw_only=True, slots=True)
class Prompt:
    """One prompt file."""

    name: str
    version: str
    system: str
    user: str

    @property
    def places(self) -> frozenset[str]:
        """Names of the places to fill."""
        return frozenset(_PLACE.findall(self.system) + _PLACE.findall(self.user))

    def fill(self, *, max_tokens: int = 1024, **values: str) -> Filled:
        """The prompt with these values, each put in as it is: places inside of values are not filled again."""
        if set(values) != self.places:
            raise ValueError(f"The prompt {self.name!r} has the places {sorted(self.places)}, not {sorted(values)}")

        def filled(text: str) -> str:
            return _PLACE.sub(lambda found: values[found[1]], text)

        messages = (
            Message(role="system", content=filled(self.system)), Message(role="user", content=filled(self.user))
        )  # fmt: skip
        return Filled(name=self.name, version=self.version, messages=messages, max_tokens=max_tokens)


@cache
def prompt(name: str) -> Prompt:
    """The prompt of this name: prompts/NAME.md. Raises FileNotFoundError where there is none."""
    text = (files("clew.indexer.llm") / "prompts" / f"{name}.md").read_text("utf-8")
    parts = _PARTS.match(text)
    if parts is None:
        raise ValueError(f"prompts/{name}.md needs the headings '# system' and '# user', in this order")
    return Prompt(
        name=name,
        version=xxhash.xxh3_64_hexdigest(text.encode()),
        system=parts["system"].strip(),
        user=parts["user"].strip(),
    )


def fenced(text: str, tag: str = "passage") -> str:
    """A text between tags that it cannot close itself: material, whatever it says."""
    safe = re.sub(rf"<(/?)({re.escape(tag)})", r"‹\1\2", text, flags=re.IGNORECASE)
    return f"<{tag}>\n{safe}\n</{tag}>"
