"""Presentations with speaker's notes (ECMA-376)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

from tests.examples.archive import XML, archive
from tests.examples.opc import OFFICE, Relations, content_types, core, root_relations
from tests.examples.pieces import Paragraph


@dataclass(frozen=True, slots=True)
class Slide:
    """A title, bullet points, and what the speaker says."""

    title: str
    points: Sequence[Paragraph]
    notes: str = ""


_A = "http://schemas.openxmlformats.org/drawingml/2006/main"
_P = "http://schemas.openxmlformats.org/presentationml/2006/main"
_SPACES = f'xmlns:a="{_A}" xmlns:r="{OFFICE}" xmlns:p="{_P}"'
_GROUP = '<p:nvGrpSpPr><p:cNvPr id="1" name=""/><p:cNvGrpSpPr/><p:nvPr/></p:nvGrpSpPr><p:grpSpPr/>'


def _shape(number: int, name: str, kind: str, paragraphs: str, box: tuple[int, int, int, int]) -> str:
    x, y, width, height = box
    return (
        f'<p:sp><p:nvSpPr><p:cNvPr id="{number}" name="{name}"/><p:cNvSpPr/><p:nvPr><p:ph {kind}/></p:nvPr></p:nvSpPr>'
        f'<p:spPr><a:xfrm><a:off x="{x}" y="{y}"/><a:ext cx="{width}" cy="{height}"/></a:xfrm></p:spPr>'
        f"<p:txBody><a:bodyPr/><a:lstStyle/>{paragraphs}</p:txBody></p:sp>"
    )


def _theme() -> str:
    def colour(name: str, value: str) -> str:
        return f'<a:{name}><a:srgbClr val="{value}"/></a:{name}>'

    palette = {
        "dk1": "102A43",
        "lt1": "FFFFFF",
        "dk2": "243B53",
        "lt2": "F0F4F8",
        "hlink": "0967D2",
        "folHlink": "6B46C1",
    }
    palette |= {
        f"accent{i}": value for i, value in enumerate(("1F7A8C", "E1B12C", "BF4E30", "5C7C2F", "7B5EA7", "486581"), 1)
    }
    order = ("dk1", "lt1", "dk2", "lt2", *(f"accent{i}" for i in range(1, 7)), "hlink", "folHlink")
    font = '<a:latin typeface="Calibri"/><a:ea typeface=""/><a:cs typeface=""/>'
    fill = '<a:solidFill><a:schemeClr val="phClr"/></a:solidFill>'
    effect = "<a:effectStyle><a:effectLst/></a:effectStyle>"
    return (
        f'{XML}<a:theme xmlns:a="{_A}" name="Tide"><a:themeElements><a:clrScheme name="Tide">'
        f"{''.join(colour(name, palette[name]) for name in order)}</a:clrScheme>"
        f'<a:fontScheme name="Tide"><a:majorFont>{font}</a:majorFont><a:minorFont>{font}</a:minorFont></a:fontScheme>'
        f'<a:fmtScheme name="Tide"><a:fillStyleLst>{fill * 3}</a:fillStyleLst>'
        f"<a:lnStyleLst>{f'<a:ln>{fill}</a:ln>' * 3}</a:lnStyleLst><a:effectStyleLst>{effect * 3}</a:effectStyleLst>"
        f"<a:bgFillStyleLst>{fill * 3}</a:bgFillStyleLst></a:fmtScheme></a:themeElements></a:theme>"
    )


def pptx(title: str, keywords: str, slides: Sequence[Slide]) -> bytes:
    """A presentation with one master, one layout and speaker's notes."""
    title_box, body_box = (457200, 274638, 8229600, 1143000), (457200, 1600200, 8229600, 4525963)
    deck = Relations()
    master = deck.add("slideMaster", "slideMasters/slideMaster1.xml")
    listed: list[str] = []
    entries: dict[str, str] = {}
    pml = "officedocument.presentationml"
    types = {
        "ppt/presentation.xml": f"{pml}.presentation.main",
        "ppt/slideMasters/slideMaster1.xml": f"{pml}.slideMaster",
        "ppt/slideLayouts/slideLayout1.xml": f"{pml}.slideLayout",
        "ppt/theme/theme1.xml": "officedocument.theme",
        "docProps/core.xml": "package.core-properties",
    }
    for number, slide in enumerate(slides, 1):
        rid = deck.add("slide", f"slides/slide{number}.xml")
        listed.append(f'<p:sldId id="{255 + number}" r:id="{rid}"/>')
        links = Relations()
        links.add("slideLayout", "../slideLayouts/slideLayout1.xml")
        paragraphs: list[str] = []
        for point in slide.points:
            runs: list[str] = []
            for item in point:
                if isinstance(item, str):
                    runs.append(f"<a:r><a:t>{escape(item)}</a:t></a:r>")
                else:
                    target = links.add("hyperlink", item.href, external=True)
                    runs.append(
                        f'<a:r><a:rPr><a:hlinkClick r:id="{target}"/></a:rPr><a:t>{escape(item.text)}</a:t></a:r>'
                    )
            paragraphs.append(f"<a:p>{''.join(runs)}</a:p>")
        heading = f"<a:p><a:r><a:t>{escape(slide.title)}</a:t></a:r></a:p>"
        tree = _shape(2, "Title", 'type="title"', heading, title_box)
        tree += _shape(3, "Content", 'idx="1"', "".join(paragraphs), body_box)
        part = f"ppt/slides/slide{number}.xml"
        types[part] = f"{pml}.slide"
        if slide.notes:
            links.add("notesSlide", f"../notesSlides/notesSlide{number}.xml")
            notes = f"ppt/notesSlides/notesSlide{number}.xml"
            types[notes] = f"{pml}.notesSlide"
            spoken = f"<a:p><a:r><a:t>{escape(slide.notes)}</a:t></a:r></a:p>"
            shape = _shape(2, "Notes", 'type="body" idx="1"', spoken, body_box)
            entries[notes] = f"{XML}<p:notes {_SPACES}><p:cSld><p:spTree>{_GROUP}{shape}</p:spTree></p:cSld></p:notes>"
            back = Relations()
            back.add("slide", f"../slides/slide{number}.xml")
            entries[f"ppt/notesSlides/_rels/notesSlide{number}.xml.rels"] = str(back)
        entries[part] = f"{XML}<p:sld {_SPACES}><p:cSld><p:spTree>{_GROUP}{tree}</p:spTree></p:cSld></p:sld>"
        entries[f"ppt/slides/_rels/slide{number}.xml.rels"] = str(links)
    deck.add("theme", "theme/theme1.xml")
    under_master, under_layout = Relations(), Relations()
    layout = under_master.add("slideLayout", "../slideLayouts/slideLayout1.xml")
    under_master.add("theme", "../theme/theme1.xml")
    under_layout.add("slideMaster", "../slideMasters/slideMaster1.xml")
    empty = _shape(2, "Title", 'type="title"', "<a:p/>", title_box) + _shape(
        3, "Content", 'idx="1"', "<a:p/>", body_box
    )
    colours = {"bg1": "lt1", "tx1": "dk1", "bg2": "lt2", "tx2": "dk2", "hlink": "hlink", "folHlink": "folHlink"}
    colours |= {f"accent{i}": f"accent{i}" for i in range(1, 7)}
    mapping = " ".join(f'{name}="{value}"' for name, value in colours.items())
    return archive(
        {
            "[Content_Types].xml": content_types(types),
            "_rels/.rels": root_relations("ppt/presentation.xml"),
            "docProps/core.xml": core(title, keywords),
            "ppt/presentation.xml": (
                f'{XML}<p:presentation {_SPACES}><p:sldMasterIdLst><p:sldMasterId id="2147483648" r:id="{master}"/>'
                f"</p:sldMasterIdLst><p:sldIdLst>{''.join(listed)}</p:sldIdLst>"
                '<p:sldSz cx="9144000" cy="6858000"/><p:notesSz cx="6858000" cy="9144000"/></p:presentation>'
            ),
            "ppt/_rels/presentation.xml.rels": str(deck),
            "ppt/theme/theme1.xml": _theme(),
            "ppt/slideMasters/slideMaster1.xml": (
                f"{XML}<p:sldMaster {_SPACES}><p:cSld><p:spTree>{_GROUP}{empty}</p:spTree></p:cSld><p:clrMap {mapping}/>"
                f'<p:sldLayoutIdLst><p:sldLayoutId id="2147483649" r:id="{layout}"/></p:sldLayoutIdLst></p:sldMaster>'
            ),
            "ppt/slideMasters/_rels/slideMaster1.xml.rels": str(under_master),
            "ppt/slideLayouts/slideLayout1.xml": (
                f'{XML}<p:sldLayout {_SPACES} type="obj"><p:cSld name="Title and content"><p:spTree>{_GROUP}{empty}'
                "</p:spTree></p:cSld></p:sldLayout>"
            ),
            "ppt/slideLayouts/_rels/slideLayout1.xml.rels": str(under_layout),
            **entries,
        }
    )
