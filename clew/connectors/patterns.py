"""Which names belong to a collection: globs, `.clewignore` files and default excludes, pruned by directory.

Patterns have gitignore's meaning, for `include` and `exclude` alike: `*.md` at any depth, `/top.md` only at the root,
`docs/**` everything below a folder, `drafts/` folders only, `!keep.md` takes back an earlier pattern (the last match
wins). What lies in an excluded folder cannot be taken back without taking back the folder. Precedence, first verdict
wins: `exclude`, the `.clewignore` files from the deepest up, hidden names and default excludes, `include`.

Names are never patterns: `[draft] 100%*.md` is a legal name, and only patterns have special characters. To name such
a file in a pattern, `escape` it.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from clew.errors import OptionError

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

logger = logging.getLogger(__name__)

IGNORE_FILE = ".clewignore"
INDEX_FOLDER = ".clew"

#: Why a name is left out.
Verdict = Literal["reserved", "excluded", "hidden", "default", "not included"]

#: Folders that hold machinery or copies of other people's files, by name, at any depth.
_FOLDER_GROUPS = (
    # version control
    ".git .hg .svn .bzr .jj CVS _darcs",
    # packages of programming languages
    "node_modules bower_components jspm_packages site-packages dist-packages .eggs .gradle .terraform",
    # virtual environments (`venv` and `env` only with a pyvenv.cfg: see MARKED_FOLDERS) and caches
    ".venv .tox .nox __pycache__ .mypy_cache .pytest_cache .ruff_cache .hypothesis .ipynb_checkpoints .cache",
    # editors and operating systems
    ".idea .vscode .Trash .Spotlight-V100 .fseventsd .TemporaryItems __MACOSX $RECYCLE.BIN lost+found",
)
DEFAULT_FOLDERS = frozenset(" ".join(_FOLDER_GROUPS).split()) | {"System Volume Information"}
#: Folders of these names are left out when they hold the marker file.
MARKED_FOLDERS = dict.fromkeys(("venv", "env", "ENV", "virtualenv", ".virtualenv", ".env"), "pyvenv.cfg")
_DEFAULT_FILE_NAMES = frozenset({".DS_Store", "Thumbs.db", "ehthumbs.db", "desktop.ini", "Icon\r"})
_DEFAULT_FILE_ENDINGS = ("~", ".swp", ".swo", ".pyc", ".crdownload", ".part")
_DEFAULT_FILE_BEGINNINGS = ("._", "~$", ".~lock.", ".nfs", ".fuse_hidden")
#: Endings of files whose rows are documents (a compression suffix may follow).
RECORD_SUFFIXES = (".jsonl", ".ndjson", ".csv", ".tsv", ".parquet")
_RECORD_INDEX = re.compile(r"\.(jsonl|ndjson|csv|tsv|parquet)(\.(gz|bz2|xz|zst))?\.clew\Z")

_SPECIAL = re.compile(r"([*?\[\]!#\\ ])")
_OTHER_SPACE = re.compile(r"([^\S ])")  # would be stripped at the end of a pattern
_GLOB = re.compile(r"[*?\[\\]")
_REMEMBERED = 1 << 16  # directories whose verdict is kept: some 10 MB


def escape(name: str) -> str:
    """A pattern that matches exactly this name."""
    return "/" + _OTHER_SPACE.sub(r"[\1]", _SPECIAL.sub(r"\\\1", name.strip("/")))


def _compile(lines: Iterable[str], *, source: str | None = None) -> GitIgnoreSpec:
    """Compile patterns. A line that is no pattern is an OptionError, or is left out where `source` (a file) says so."""
    from pathspec import GitIgnoreSpec

    patterns: list[str] = []
    for line in lines:
        try:
            GitIgnoreSpec.from_lines([line])
        except (ValueError, re.error) as error:
            if source is None:
                raise OptionError(
                    f"The pattern {line!r} cannot be read: {error}. Write it like a line of a .gitignore."
                ) from None
            logger.warning("%s: the line %r is no pattern (%s) and is left out", source, line, error)
        else:
            patterns.append(line.replace("\n", "\x00"))  # as in `_match`
    return GitIgnoreSpec.from_lines(patterns)


def _match(spec: GitIgnoreSpec, path: str, is_folder: bool) -> bool | None:
    """What the last pattern that matches this very path says. True: matched; False: taken back; None: not mentioned.

    A pattern that matches a folder above says nothing here (`fullmatch`): each folder on the way is judged by itself.
    """
    # A line break is replaced because `.` in a compiled pattern does not match it.
    probe = path.replace("\n", "\x00") if "\n" in path else path
    if is_folder:
        probe += "/"
    for pattern in reversed(spec.patterns):
        if pattern.include is not None and pattern.regex is not None and pattern.regex.fullmatch(probe):
            return pattern.include
    return None


def _match_below(spec: GitIgnoreSpec, path: str) -> bool:
    """Whether a file, or a folder above it, is matched: `docs` includes all that lies in it."""
    return bool(spec.check_file(path.replace("\n", "\x00")).include)


@dataclass(frozen=True, kw_only=True)
class IgnoreRules:
    """The lines of one `.clewignore` file and of those above it."""

    folder: str  # relative to the root, '' for the root itself
    lines: tuple[str, ...]
    above: IgnoreRules | None = None

    @cached_property
    def _spec(self) -> GitIgnoreSpec:
        return _compile(self.lines, source=f"{self.folder}/{IGNORE_FILE}".lstrip("/"))

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_spec"}

    def verdict(self, path: str, is_folder: bool) -> bool | None:
        """True: ignored; False: taken back; None: no rule speaks of it. The deepest file that speaks decides."""
        rules: IgnoreRules | None = self
        while rules is not None:
            prefix = rules.folder + "/" if rules.folder else ""
            if path.startswith(prefix) and len(path) > len(prefix):
                verdict = _match(rules._spec, path[len(prefix) :], is_folder)
                if verdict is not None:
                    return verdict
            rules = rules.above
        return None


@dataclass(frozen=True, kw_only=True)
class Selection:
    """Which files of a root belong to the collection.

    `admits` and `descends` take paths relative to the root ('/' separated) and look at every folder on the way, so
    the answer for a path is the same whether a tree was walked or a flat list of keys was read.
    """

    include: tuple[str, ...] = ()  # empty: everything
    exclude: tuple[str, ...] = ()
    default_excludes: bool = True
    hidden: bool = False  # names that begin with a dot belong too
    ignore_rules: IgnoreRules | None = None
    reserved: tuple[str, ...] = ()  # folders that are never listed: where indexes lie
    _known: dict[str, bool] = field(default_factory=dict, init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "include", tuple(self.include))
        object.__setattr__(self, "exclude", tuple(self.exclude))
        _ = self._include_spec, self._exclude_spec  # a bad pattern is reported before any work is done

    def __getstate__(self) -> dict[str, Any]:
        state = {name: value for name, value in self.__dict__.items() if not name.startswith("_")}
        return {**state, "_known": {}}

    @cached_property
    def _include_spec(self) -> GitIgnoreSpec:
        return _compile(self.include)

    @cached_property
    def _exclude_spec(self) -> GitIgnoreSpec:
        return _compile(self.exclude)

    @cached_property
    def _include_heads(self) -> tuple[str, ...] | None:
        """The literal beginnings of the include patterns; None when one of them matches at any depth."""
        heads = []
        for pattern in self.include:
            if pattern.startswith(("!", "#")) or not pattern.strip():
                continue
            anchored = "/" in pattern.rstrip("/")
            if not anchored:
                return None
            literal = []
            for segment in pattern.strip("/").split("/"):
                if _GLOB.search(segment):
                    break
                literal.append(segment)
            heads.append("/".join(literal))
        return tuple(heads)

    def with_rules(self, folder: str, text: str) -> Selection:
        """This selection below `folder`, whose `.clewignore` holds `text`."""
        # As Git parts lines; a file's name may hold what else `str.splitlines` cuts at (U+2028, U+0085, form feeds).
        lines = tuple(line.removesuffix("\r") for line in text.split("\n"))
        rules = IgnoreRules(folder=folder, lines=lines, above=self.ignore_rules)
        return replace(self, ignore_rules=rules)

    def reserving(self, *folders: str) -> Selection:
        """This selection without the given folders (relative to the root), whatever the patterns say."""
        return replace(self, reserved=(*self.reserved, *folders)) if folders else self

    def admits(self, path: str) -> bool:
        """Whether the file of this path belongs to the collection."""
        parent, _, _ = path.rpartition("/")
        return (not parent or self.descends(parent)) and self.verdict(path, is_folder=False) is None

    def descends(self, directory: str) -> bool:
        """Whether anything below this folder can belong to the collection."""
        if not directory:
            return True
        known = self._known.get(directory)
        if known is None:
            parent, _, _ = directory.rpartition("/")
            known = self.descends(parent) and self.verdict(directory, is_folder=True) is None
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            self._known[directory] = known
        return known

    def only_hidden(self, path: str, *, is_folder: bool) -> bool:
        """Whether the path is left out for nothing but hidden names on its way (and include patterns)."""
        segments = path.split("/")
        verdicts = []
        for depth in range(1, len(segments) + 1):
            last = depth == len(segments)
            verdicts.append(self.verdict("/".join(segments[:depth]), is_folder=not last or is_folder))
        found = [verdict for verdict in verdicts if verdict not in (None, "not included")]
        return bool(found) and all(verdict == "hidden" for verdict in found)

    def marker(self, directory: str) -> str | None:
        """The path of a file whose presence tells that this folder is left out (`pyvenv.cfg`), else None."""
        if not self.default_excludes:
            return None
        marker = MARKED_FOLDERS.get(directory.rpartition("/")[2])
        return f"{directory}/{marker}" if marker else None

    def heads(self) -> tuple[str, ...]:
        """Beginnings of path, none of which begins another, below which all that is included lies; ('',): anywhere."""
        heads = self._include_heads if self.include else None
        if not heads:
            return ("",)
        shortest: list[str] = []
        for head in sorted(set(heads)):
            if not shortest or not head.startswith(shortest[-1]):
                shortest.append(head)
        return tuple(shortest)

    def verdict(self, path: str, *, is_folder: bool) -> Verdict | None:
        """Why this one name is left out, the folders above it aside; None when it is not."""
        name = path.rpartition("/")[2]
        if name == INDEX_FOLDER or _is_record_index(name) or path in self.reserved:
            return "reserved"
        if self.exclude:
            excluded = _match(self._exclude_spec, path, is_folder)
            if excluded:
                return "excluded"
            if excluded is False:
                return self._inclusion(path, is_folder)
        if self.ignore_rules is not None:
            ignored = self.ignore_rules.verdict(path, is_folder)
            if ignored:
                return "excluded"
            if ignored is False:
                return self._inclusion(path, is_folder)
        if not self._named_by_include(path):
            if self.default_excludes and _is_default_exclude(name, is_folder):
                return "default"
            if not self.hidden and name.startswith("."):
                return "hidden"
        return self._inclusion(path, is_folder)

    def _named_by_include(self, path: str) -> bool:
        """`--include '.github/**'` asks for a hidden folder by its name."""
        heads = self._include_heads if self.include else None
        return bool(heads) and any(head == path or head.startswith(path + "/") for head in heads or ())

    def _inclusion(self, path: str, is_folder: bool) -> Verdict | None:
        if not self.include:
            return None
        if not is_folder:
            return None if _match_below(self._include_spec, path) else "not included"
        heads = self._include_heads
        if heads is None or any(_on_the_way(path, head) for head in heads):
            return None
        return "not included"


def _on_the_way(directory: str, head: str) -> bool:
    """Whether one of the two lies below (or is) the other."""
    return not head or directory == head or head.startswith(directory + "/") or directory.startswith(head + "/")


def _is_record_index(name: str) -> bool:
    return name.endswith(".clew") and _RECORD_INDEX.search(name) is not None


def _is_default_exclude(name: str, is_folder: bool) -> bool:
    if is_folder:
        return name in DEFAULT_FOLDERS
    return (
        name in _DEFAULT_FILE_NAMES or name.endswith(_DEFAULT_FILE_ENDINGS) or name.startswith(_DEFAULT_FILE_BEGINNINGS)
    )


def folders_above(path: str) -> Iterator[str]:
    """The folders on the way to a path, the root ('') first, the path itself not among them."""
    yield ""
    at = path.find("/")
    while at >= 0:
        yield path[:at]
        at = path.find("/", at + 1)
