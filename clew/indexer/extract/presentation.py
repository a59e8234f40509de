"""PPTX: slides in their order, titles as headings, lists, tables, notes, diagrams, links between slides.

4,500 slides of a dozen points a CPU-second.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from clew.indexer.extract.archive import Archive
from clew.indexer.extract.document import BlockKind, Document, Extraction, Kind, Source
from clew.indexer.extract.opc import PREFIXES, Relationship, main_part, properties, relationships
from clew.indexer.extract.parts import PartWriter
from clew.indexer.extract.recording import Recording, is_writer
from clew.indexer.extract.text_builder import join_parts
from clew.indexer.extract.xml_stream import XmlHandler, parse_all

_TITLES = frozenset(("title", "ctrTitle"))
_LEFT_OUT = frozenset(("sldNum", "dt", "ftr", "hdr", "sldImg"))  # repeated on every slide


def extract(source: Source, kind: Kind) -> Extraction:
    """The slides as one document; a slide is a location and an anchor, `slide=3`."""
    return Extraction(kind=kind, encoding=None, documents=join_parts(_parts(source)))


def _parts(source: Source) -> Iterator[Document]:
    with Archive(source) as archive:
        part = main_part(archive, "ppt/presentation.xml")
        order = _Order()
        parse_all(archive.chunks(part), order, what=f"{source.path}: {part}")
        related = relationships(archive, part)
        slides = [related[identifier].part for identifier in order.slides if identifier in related]
        numbers = {name: number for number, name in reversed(list(enumerate(slides, start=1)))}
        known = properties(archive)
        writer = PartWriter(source)
        writer.title, writer.meta, writer.language = known.title, known.meta, known.language
        for number, name in enumerate(slides, start=1):
            if archive.find(name) is None:
                continue
            slide = _read(archive, name, number, numbers)
            builder = writer.builder
            builder.close_block()
            builder.location("slide", str(number))
            builder.anchor(f"slide={number}")
            for shape in slide.in_order():
                shape.recording.replay(is_writer(builder))
                builder.close_block()
                builder.break_group()
            if writer.title is None and (title := slide.title()):
                writer.title = title
            if writer.full:
                yield writer.take()
        yield writer.take()


class _Order(XmlHandler):
    """The slides' relationship ids, as they are shown."""

    prefixes = PREFIXES

    def __init__(self) -> None:
        super().__init__()
        self.slides: list[str] = []
        self.starts["p:sldId"] = self._slide

    def _slide(self, attributes: Mapping[str, str]) -> None:
        identifier = self.attribute(attributes, "r:id")
        if identifier:
            self.slides.append(identifier)


@dataclass(kw_only=True, slots=True)
class _Shape:
    recording: Recording = field(default_factory=Recording)
    placeholder: str | None = None  # its type; None: not a placeholder
    href: str = ""  # of the whole shape
    text: list[str] = field(default_factory=list)

    @property
    def is_title(self) -> bool:
        return self.placeholder in _TITLES


@dataclass(kw_only=True, slots=True)
class _Slide:
    shapes: list[_Shape]
    after: list[_Shape]  # diagrams and notes

    def in_order(self) -> list[_Shape]:
        """Titles first: the order of shapes is the one they are painted in."""
        titles = [shape for shape in self.shapes if shape.is_title]
        return [*titles, *(shape for shape in self.shapes if not shape.is_title), *self.after]

    def title(self) -> str:
        return next((" ".join("".join(shape.text).split()) for shape in self.shapes if shape.is_title), "")


def _read(archive: Archive, name: str, number: int, numbers: Mapping[str, int]) -> _Slide:
    related = relationships(archive, name)
    handler = _Shapes(related, number, numbers)
    parse_all(archive.chunks(name), handler, what=name)
    after: list[_Shape] = []
    for relationship in related.values():
        if relationship.kind == "diagramData" and archive.find(relationship.part):
            diagram = _Shapes({}, number, numbers)
            diagram.begin_loose()
            parse_all(archive.chunks(relationship.part), diagram, what=relationship.part)
            after.extend(diagram.shapes)
    for relationship in related.values():
        if relationship.kind == "notesSlide" and archive.find(relationship.part):
            notes = _Shapes(relationships(archive, relationship.part), number, numbers)
            notes.body_items = False
            parse_all(archive.chunks(relationship.part), notes, what=relationship.part)
            after.extend(shape for shape in notes.shapes if shape.placeholder == "body")
    return _Slide(shapes=handler.shapes, after=after)


class _Shapes(XmlHandler):
    """The shapes of a slide that hold text."""

    prefixes = PREFIXES

    def __init__(self, related: Mapping[str, Relationship], number: int, numbers: Mapping[str, int]) -> None:
        super().__init__()
        self.shapes: list[_Shape] = []
        self._related = related
        self._number = number
        self._numbers = numbers
        self._shape: _Shape | None = None
        self._branches: list[bool] = []
        self._in_paragraph = False
        self._begun = False  # the paragraph has content
        self._bullet: bool | None = None
        self._in_row = False
        self._linked = False  # a run's link is open
        self._texting = False
        self._field_kind = ""
        self.skipped = frozenset(("a:tcPr", "a:endParaRPr", "a:lstStyle", "p:txStyles"))
        self.starts.update(
            {
                "p:sp": self._begin_shape,
                "p:graphicFrame": self._begin_shape,
                "p:pic": self._begin_shape,
                "p:ph": self._placeholder,
                "a:p": self._begin_paragraph,
                "a:buNone": lambda _: self._set_bullet(False),
                "a:buChar": lambda _: self._set_bullet(True),
                "a:buAutoNum": lambda _: self._set_bullet(True),
                "a:hlinkClick": self._link,
                "a:fld": self._begin_field,
                "a:t": self._begin_text,
                "m:t": self._begin_text,
                "a:br": self._break,
                "a:tbl": self._begin_table,
                "a:tr": self._begin_row,
                "a:tc": self._begin_cell,
                "mc:AlternateContent": lambda _: self._branches.append(False),
                "mc:Choice": self._branch,
                "mc:Fallback": self._branch,
            }
        )
        self.ends.update(
            {
                "p:sp": self._end_shape,
                "p:graphicFrame": self._end_shape,
                "p:pic": self._end_shape,
                "a:p": self._end_paragraph,
                "a:r": self._end_run,
                "a:fld": self._end_field,
                "a:t": self._end_text,
                "m:t": self._end_text,
                "a:tr": self._end_row,
                "mc:AlternateContent": self._end_branches,
            }
        )

    #: Whether paragraphs of a body are list items (those of the notes are not).
    body_items = True

    def begin_loose(self) -> None:
        """Take paragraphs that stand in no shape, as those of a diagram."""
        self._begin_shape({})

    # --- shapes ---

    def _begin_shape(self, _: Mapping[str, str]) -> None:
        self._shape = _Shape()
        self.shapes.append(self._shape)

    def _end_shape(self) -> None:
        shape = self._shape
        if shape is not None and shape.href:
            shape.recording.link(shape.href)
        self._shape = None

    def _placeholder(self, attributes: Mapping[str, str]) -> None:
        if self._shape is not None:
            self._shape.placeholder = attributes.get("type", "obj")
            if self._shape.placeholder in _LEFT_OUT:
                self.shapes.remove(self._shape)

    # --- paragraphs ---

    def _begin_paragraph(self, _: Mapping[str, str]) -> None:
        self._in_paragraph = True
        self._begun = False
        self._bullet = None

    def _set_bullet(self, value: bool) -> None:
        self._bullet = value

    def _begin_content(self) -> _Shape | None:
        shape = self._shape
        if shape is None or self._begun:
            return shape
        self._begun = True
        if self._in_row:
            return shape
        recording = shape.recording
        if shape.is_title:
            if recording.has_text:
                recording.text(" ")  # a title in two paragraphs is one heading
            else:
                recording.open_block(BlockKind.HEADING, level=1 if shape.placeholder == "ctrTitle" else 2)
        elif self._bullet or (self._bullet is None and self.body_items and shape.placeholder in ("body", "obj")):
            recording.open_block(BlockKind.ITEM)
        else:
            recording.open_block()
        if shape.href:
            recording.link_start(shape.href)
            self._linked, shape.href = True, ""
        return shape

    def _end_paragraph(self) -> None:
        self._in_paragraph = False
        shape = self._shape
        if shape is None:
            return
        self._end_run()
        if self._in_row:
            shape.recording.text(" ")
        elif not shape.is_title and self._begun:
            shape.recording.close_block()

    def _end_run(self) -> None:
        if self._linked and self._shape is not None:
            self._shape.recording.link_end()
        self._linked = False

    def _write(self, text: str) -> None:
        if self._field_kind == "slidenum":
            return
        shape = self._begin_content()
        if shape is not None:
            shape.recording.text(text)
            if shape.is_title:
                shape.text.append(text)

    def _break(self, _: Mapping[str, str]) -> None:
        shape = self._shape
        if shape is None or not self._begun:
            return
        if shape.is_title or self._in_row:
            self._write(" ")
        else:
            shape.recording.line_break()

    def _begin_text(self, _: Mapping[str, str]) -> None:
        self._texting = True

    def _end_text(self) -> None:
        self._texting = False

    def characters(self, text: str) -> None:
        """Text counts inside `a:t` and `m:t` alone."""
        if self._texting:
            self._write(text)

    def _begin_field(self, attributes: Mapping[str, str]) -> None:
        self._field_kind = attributes.get("type", "other")

    def _end_field(self) -> None:
        self._field_kind = ""

    # --- links ---

    def _link(self, attributes: Mapping[str, str]) -> None:
        shape = self._shape
        href = self._href(attributes)
        if shape is None or not href:
            return
        if not self._in_paragraph:  # the whole shape's
            shape.href = href
            return
        if not self._linked and self._begin_content() is not None:
            shape.recording.link_start(href)
            self._linked = True

    def _href(self, attributes: Mapping[str, str]) -> str:
        action = attributes.get("action", "")
        related = self._related.get(self.attribute(attributes, "r:id") or "")
        if related is not None:
            if related.external:
                return related.target
            number = self._numbers.get(related.part)
            return f"#slide={number}" if number else ""
        jump = action.rpartition("jump=")[2] if "hlinkshowjump" in action else ""
        last = max(self._numbers.values(), default=1)
        to = {"firstslide": 1, "lastslide": last, "nextslide": self._number + 1, "previousslide": self._number - 1}
        target = to.get(jump, 0)
        return f"#slide={target}" if 1 <= target <= last else ""

    # --- tables, alternatives ---

    def _begin_table(self, _: Mapping[str, str]) -> None:
        if self._shape is not None:
            self._shape.recording.break_group()

    def _begin_row(self, _: Mapping[str, str]) -> None:
        if self._shape is not None:
            self._shape.recording.open_block(BlockKind.ROW)
            self._in_row = True

    def _begin_cell(self, _: Mapping[str, str]) -> None:
        if self._shape is not None:
            self._shape.recording.cell_break()

    def _end_row(self) -> None:
        if self._shape is not None:
            self._shape.recording.close_block()
        self._in_row = False

    def _branch(self, _: Mapping[str, str]) -> None:
        if not self._branches:
            return
        if self._branches[-1]:
            self.skip()
        else:
            self._branches[-1] = True

    def _end_branches(self) -> None:
        if self._branches:
            self._branches.pop()
