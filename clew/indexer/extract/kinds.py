"""What kind of file this is: by its content first, by its name second."""

from __future__ import annotations

import re
import struct
import zipfile
import zlib
from typing import BinaryIO

from clew.indexer.extract.document import Kind
from clew.indexer.extract.encoding import bom_encoding, wide_encoding

HEAD_BYTES = 16 << 10
TAIL_BYTES = 4 << 10
_ZIPPED = ("docx", "pptx", "xlsx", "odt", "ods", "odp", "epub")
_ZIP_DIRECTORY_LIMIT = 8 << 20  # bytes; zipfile reads the whole directory into memory (about ten times that)

MEDIA_TYPES: dict[str, str] = {
    "markdown": "text/markdown",
    "html": "text/html",
    "rst": "text/x-rst",
    "asciidoc": "text/asciidoc",
    "text": "text/plain",
    "code": "text/x-source",
    "pdf": "application/pdf",
    "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "odt": "application/vnd.oasis.opendocument.text",
    "ods": "application/vnd.oasis.opendocument.spreadsheet",
    "odp": "application/vnd.oasis.opendocument.presentation",
    "epub": "application/epub+zip",
    "email": "message/rfc822",
    "notebook": "application/x-ipynb+json",
    "json": "application/json",
    "jsonl": "application/x-ndjson",
    "csv": "text/csv",
    "parquet": "application/vnd.apache.parquet",
    "encrypted-office": "application/x-ole-storage; encrypted",
    "legacy-office": "application/x-ole-storage",
    "unsupported": "application/octet-stream",
}

# Names decide among texts only: `notes.md` that holds a JPEG is a JPEG.
_TEXT_EXTENSIONS: dict[str, str] = {
    **dict.fromkeys(("md", "markdown", "mdown", "mkd", "mkdn", "mdwn", "mdx", "mdtext", "rmd", "qmd"), "markdown"),
    **dict.fromkeys(("html", "htm", "xhtml", "xht", "shtml"), "html"),
    **dict.fromkeys(("rst", "rest"), "rst"),
    **dict.fromkeys(("adoc", "asciidoc", "asc", "ad"), "asciidoc"),
    **dict.fromkeys(("txt", "text", "log", "org", "tex", "ltx", "bib", "srt", "vtt", "me", "nfo", "textile"), "text"),
    **dict.fromkeys(("man", "roff", "1", "2", "3", "4", "5", "6", "7", "8", "wiki", "mediawiki", "creole"), "text"),
    **dict.fromkeys(("json", "geojson", "webmanifest", "json5", "jsonld"), "json"),
    **dict.fromkeys(("jsonl", "ndjson", "ldjson"), "jsonl"),
    **dict.fromkeys(("csv", "tsv", "tab"), "csv"),
    **dict.fromkeys(("eml", "emlx", "mht", "mhtml"), "email"),
    "ipynb": "notebook",
}

_CODE_LANGUAGES: dict[str, str] = {
    "python": "py pyi pyx pxd pyw",
    "c": "c h",
    "c++": "cc cpp cxx c++ hh hpp hxx h++ inl ipp tpp ixx cppm idl",
    "cuda": "cu cuh",
    "objective-c": "m mm",
    "csharp": "cs csx",
    "java": "java",
    "kotlin": "kt kts",
    "scala": "scala sc sbt",
    "groovy": "groovy gradle",
    "clojure": "clj cljs cljc edn",
    "go": "go mod",
    "rust": "rs",
    "swift": "swift",
    "javascript": "js mjs cjs jsx",
    "typescript": "ts mts cts tsx",
    "vue": "vue svelte astro",
    "php": "php phtml",
    "ruby": "rb rake gemspec erb",
    "perl": "pl pm t pod",
    "lua": "lua",
    "r": "r",
    "julia": "jl",
    "haskell": "hs lhs",
    "ocaml": "ml mli",
    "fsharp": "fs fsi fsx",
    "elixir": "ex exs eex heex",
    "erlang": "erl hrl",
    "dart": "dart",
    "zig": "zig",
    "nim": "nim",
    "d": "d",
    "fortran": "f f77 f90 f95 f03 f08 for",
    "ada": "adb ads",
    "pascal": "pas pp dpr",
    "visual-basic": "vb vbs bas",
    "lisp": "lisp lsp el scm ss rkt",
    "assembly": "asm s",
    "verilog": "v sv svh vhd vhdl",
    "sql": "sql ddl",
    "shell": "sh bash zsh fish ksh",
    "powershell": "ps1 psm1 psd1",
    "batch": "bat cmd",
    "make": "mk mak cmake ninja bazel bzl",
    "css": "css scss sass less styl",
    "yaml": "yaml yml",
    "toml": "toml lock",
    "ini": "ini cfg conf properties env editorconfig desktop service",
    "xml": "xml xsd xsl xslt wsdl plist csproj vcxproj vbproj props targets resx xaml rss atom opml dtd",
    "protobuf": "proto thrift avsc fbs",
    "graphql": "graphql gql",
    "terraform": "tf tfvars hcl nix",
    "template": "tpl tmpl j2 jinja jinja2 liquid mustache hbs ejs pug haml jsp asp aspx cshtml razor",
    "diff": "diff patch",
    "po": "po pot",
    "solidity": "sol",
    "dockerfile": "dockerfile",
    "rc": "rc rc2 def odl reg",
    "tcl": "tcl",
    "matlab": "mat-script",
    "graphviz": "dot gv puml mmd",
}
_CODE_EXTENSIONS: dict[str, str] = {
    extension: language for language, extensions in _CODE_LANGUAGES.items() for extension in extensions.split()
}
_NAMES: dict[str, str] = {
    **dict.fromkeys(("makefile", "gnumakefile", "dockerfile", "containerfile", "jenkinsfile", "vagrantfile"), "code"),
    **dict.fromkeys(("rakefile", "gemfile", "procfile", "justfile", "cmakelists.txt", "go.sum"), "code"),
    **dict.fromkeys(("readme", "license", "licence", "copying", "notice", "authors", "changelog", "changes"), "text"),
    **dict.fromkeys(("news", "todo", "install", "contributing", "requirements.txt", "robots.txt"), "text"),
}

_BINARY_MAGIC: tuple[tuple[bytes, str], ...] = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"II*\x00", "image/tiff"),
    (b"MM\x00*", "image/tiff"),
    (b"8BPS", "image/vnd.adobe.photoshop"),
    (b"\x00\x00\x01\x00", "image/x-icon"),
    (b"OggS", "audio/ogg"),
    (b"fLaC", "audio/flac"),
    (b"ID3", "audio/mpeg"),
    (b"\x1aE\xdf\xa3", "video/x-matroska"),
    (b"BZh", "application/x-bzip2"),
    (b"\xfd7zXZ\x00", "application/x-xz"),
    (b"\x28\xb5\x2f\xfd", "application/zstd"),
    (b"7z\xbc\xaf\x27\x1c", "application/x-7z-compressed"),
    (b"Rar!\x1a\x07", "application/vnd.rar"),
    (b"\x7fELF", "application/x-elf"),
    (b"MZ", "application/vnd.microsoft.portable-executable"),
    (b"\xca\xfe\xba\xbe", "application/java-vm"),
    (b"\xcf\xfa\xed\xfe", "application/x-mach-binary"),
    (b"\x00asm", "application/wasm"),
    (b"SQLite format 3\x00", "application/vnd.sqlite3"),
    (b"{\\rtf", "application/rtf"),
    (b"%!PS", "application/postscript"),
    (b"wOFF", "font/woff"),
    (b"wOF2", "font/woff2"),
    (b"\x00\x01\x00\x00\x00", "font/ttf"),
    (b"OTTO", "font/otf"),
    (b"ARROW1", "application/vnd.apache.arrow.file"),
    (b"ORC", "application/vnd.apache.orc"),
    (b"Obj\x01", "application/vnd.apache.avro"),
    (b"\x80\x04\x95", "application/x-python-pickle"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", ""),  # OLE2: looked into
)
_OLE2 = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_WEAK_MAGIC = frozenset((b"MZ", b"ORC", b"ID3", b"BZh", b"OTTO", b"wOFF", b"wOF2", b"8BPS", b"OggS", b"fLaC"))

_HTML_START = re.compile(
    rb"\s*(?:<!--.*?-->\s*)*(?:<\?xml[^>]*\?>\s*)?(?:<!--.*?-->\s*)*<(?:!doctype\s+html|html|head|body)[\s>]",
    re.IGNORECASE | re.DOTALL,
)
_HTML_TAG = re.compile(rb"<(?:p|div|h[1-6]|table|ul|ol|a|span|br|title|meta|img)[\s>/]", re.IGNORECASE)
_SVG = re.compile(rb"\s*(?:<\?xml[^>]*\?>\s*)?(?:<!--.*?-->\s*)*(?:<!DOCTYPE\s+svg[^>]*>\s*)?<svg[\s>]", re.DOTALL)
_MAIL_HEADER = re.compile(rb"([!-9;-~]+):[ \t]")
_MAIL_NAMES = frozenset(
    b"from to cc subject date received message-id mime-version return-path delivered-to reply-to "
    b"content-type x-mailer sender in-reply-to references dkim-signature".split()
)
_JSON_RECORD = re.compile(rb"\s*\{\s*\"")


def kind(name: str, media_type: str | None = None) -> Kind:
    """A kind with its usual media type, unless another is given."""
    return Kind(name=name, media_type=media_type or MEDIA_TYPES[name])


def detect(path: str, head: bytes, size: int, *, tail: bytes | None = None, stream: BinaryIO | None = None) -> Kind:
    """The kind of a file from its name, its first bytes (`HEAD_BYTES` of them), and its size.

    `tail` (the last bytes) and `stream` (seekable) let it look into archives; without them it goes by the head alone.
    Never raises for bad content: what is not known is `unsupported`, with the media type that comes closest.
    """
    extension = _extension(path)
    if not head:
        return _text_kind(path, extension, head)
    pdf = head.find(b"%PDF-", 0, 1029)
    textual = is_text(head)
    if pdf == 0 or (pdf > 0 and (extension == "pdf" or not textual)):
        return kind("pdf")
    if head.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return _zip_kind(extension, head, tail, stream)
    if head.startswith(_OLE2):
        return _ole_kind(head, stream)
    if head.startswith(b"\x1f\x8b"):
        return _gzip_kind(path, head)
    if head.startswith(b"PAR1"):
        return kind("parquet")
    if not textual or not bom_encoding(head):
        media_type = _magic(head, textual)
        if media_type:
            return kind("unsupported", media_type)
    if not textual:
        return kind("unsupported", _guess(path, head))
    return _text_kind(path, extension, head, tail)


def is_text(head: bytes) -> bool:
    """Whether the first bytes of a file look like text, in whichever encoding."""
    if bom_encoding(head) or wide_encoding(head):
        return True
    nul = head.count(0)
    controls = len(head) - len(head.translate(None, _CONTROLS))
    try:
        head.decode("utf-8")
    except UnicodeDecodeError as error:
        if error.start < len(head) - 4 and error.reason != "unexpected end of data":  # not the cut at the end
            return nul == 0 and controls * 50 <= len(head)
    return nul * 100 <= len(head) and controls * 10 <= len(head)


def unlike_its_name(path: str, head: bytes) -> str | None:
    """Why a file whose name says that it is text is none, as the rest of a sentence; None where the name does not say so."""
    extension = _extension(path)
    if extension not in _TEXT_EXTENSIONS and extension not in _CODE_EXTENSIONS:
        return None
    if nul := head.count(0):
        return f"{nul:,} of its first {len(head):,} bytes are zero"
    return "its bytes are text in no encoding" if not is_text(head) else None


_CONTROLS = bytes([*range(0x09), 0x0B, *range(0x0E, 0x1B), *range(0x1C, 0x20), 0x7F])


def _extension(path: str) -> str:
    name = path.rpartition("/")[2]
    return name.rpartition(".")[2].lower() if "." in name[1:] else ""


def _magic(head: bytes, textual: bool) -> str | None:
    for magic, media_type in _BINARY_MAGIC:
        if head.startswith(magic) and not (textual and magic in _WEAK_MAGIC):
            return media_type
    if head.startswith(b"RIFF") and not textual:
        return {b"WAVE": "audio/wav", b"AVI ": "video/x-msvideo", b"WEBP": "image/webp"}.get(head[8:12])
    if head[4:8] == b"ftyp":
        return "video/mp4"
    if head[257:262] == b"ustar":
        return "application/x-tar"
    return None


def _guess(path: str, head: bytes) -> str:
    import puremagic

    try:
        matches = puremagic.magic_string(head[:4096], path.rpartition("/")[2])
    except (puremagic.PureError, ValueError):
        matches = []
    return next(
        (m.mime_type for m in matches if m.mime_type and not m.mime_type.startswith("text/")),
        "application/octet-stream",
    )


# --- Containers -----------------------------------------------------------------------------------------------------


def _zip_kind(extension: str, head: bytes, tail: bytes | None, stream: BinaryIO | None) -> Kind:
    declared = _zip_mimetype(head)
    for name in ("epub", "odt", "ods", "odp"):
        if declared.startswith(MEDIA_TYPES[name]):  # templates too: …text-template
            return kind(name)
    names = _zip_names(head, tail, stream)
    for prefix, name in (("word/", "docx"), ("ppt/", "pptx"), ("xl/", "xlsx")):
        if any(entry.startswith(prefix) for entry in names):
            return kind(name)
    if "META-INF/container.xml" in names and any(entry.endswith(".opf") for entry in names):
        return kind("epub")
    if "content.xml" in names and extension in ("odt", "ods", "odp"):
        return kind(extension)
    if "META-INF/MANIFEST.MF" in names:
        return kind("unsupported", "application/java-archive")
    if extension in _ZIPPED and b"PK\x05\x06" not in (tail or head):
        return kind(extension)  # cut off before anything telling: broken, not of a kind that clew does not know
    return kind("unsupported", declared or "application/zip")


def _zip_mimetype(head: bytes) -> str:
    """ODF and EPUB keep their media type, uncompressed, as the first entry."""
    if len(head) < 30 or head[:4] != b"PK\x03\x04":
        return ""
    method, length, name_length, extra = struct.unpack("<8xH8xI4xHH", head[:30])
    start = 30 + name_length + extra
    if method == 0 and head[30 : 30 + name_length] == b"mimetype" and length < 256:
        return head[start : start + length].decode("ascii", "replace").strip()
    return ""


def _zip_names(head: bytes, tail: bytes | None, stream: BinaryIO | None) -> list[str]:
    end = (tail or head).rfind(b"PK\x05\x06")
    if stream is not None and end >= 0:
        directory = int.from_bytes((tail or head)[end + 12 : end + 16], "little")
        if directory <= _ZIP_DIRECTORY_LIMIT:
            try:
                stream.seek(0)
                with zipfile.ZipFile(stream) as archive:
                    return archive.namelist()
            except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError, struct.error, EOFError):
                pass  # damaged: the names that can be seen tell what it was meant to be
    seen = re.findall(rb"PK(?:\x01\x02.{42}|\x03\x04.{26})([\x20-\x7e]{1,200})", head + (tail or b""), re.DOTALL)
    return [name.decode("ascii") for name in seen]


def _ole_kind(head: bytes, stream: BinaryIO | None) -> Kind:
    directory = head
    if stream is not None and len(head) >= 52:
        shift, start = struct.unpack("<30xH16xI", head[:52])
        if 7 <= shift <= 16:
            stream.seek((start + 1) << shift)
            directory = stream.read(8192)
    for stream_name, name, media_type in (
        ("EncryptedPackage", "encrypted-office", MEDIA_TYPES["encrypted-office"]),
        ("WordDocument", "legacy-office", "application/msword"),
        ("Workbook", "legacy-office", "application/vnd.ms-excel"),
        ("PowerPoint Document", "legacy-office", "application/vnd.ms-powerpoint"),
        ("__nameid_version", "legacy-office", "application/vnd.ms-outlook"),
    ):
        if stream_name.encode("utf-16-le") in directory:
            return kind(name, media_type)
    return kind("legacy-office")


def _gzip_kind(path: str, head: bytes) -> Kind:
    """Compressed records are records; any other compressed file is not looked into."""
    try:
        inner = zlib.decompressobj(31).decompress(head, 64 << 10)
    except zlib.error:
        inner = b""
    inner_path = path[:-3] if path.lower().endswith(".gz") else path
    if inner and is_text(inner):
        found = _text_kind(inner_path, _extension(inner_path), inner)
        if found.name in ("json", "jsonl", "csv"):
            return found
    elif not inner and _TEXT_EXTENSIONS.get(_extension(inner_path)) in ("json", "jsonl", "csv"):
        return kind(_TEXT_EXTENSIONS[_extension(inner_path)])
    return kind("unsupported", "application/gzip")


# --- Texts ----------------------------------------------------------------------------------------------------------


def _text_kind(path: str, extension: str, head: bytes, tail: bytes | None = None) -> Kind:
    name = path.rpartition("/")[2].lower()
    named = _NAMES.get(name) or _TEXT_EXTENSIONS.get(extension)
    if named is None and extension in _CODE_EXTENSIONS:
        named = "code"
    plain = _as_ascii(head)
    if _SVG.match(plain) and named in (None, "code"):
        return kind("unsupported", "image/svg+xml")
    if named in (None, "text", "html", "csv", "json") and _HTML_START.match(plain):
        return kind("html")
    if named == "email" and not _is_mail(plain, least=1):
        named = "text"
    if named == "json" and _looks_like_lines(plain):
        named = "jsonl"
    if named == "code":
        return kind("code", f"text/x-{_CODE_EXTENSIONS.get(extension, 'source')}")
    if named is not None:
        return kind(named)
    return _sniff(plain, extension, _as_ascii(tail) if tail else b"")


def _as_ascii(head: bytes) -> bytes:
    """The head with wide characters made narrow, for patterns over ASCII."""
    encoding = bom_encoding(head) or wide_encoding(head)
    if encoding is None:
        return head
    return head.decode(encoding, "ignore").encode("utf-8", "ignore")


def _sniff(plain: bytes, extension: str, tail: bytes) -> Kind:
    start = plain.lstrip()
    if start.startswith(b"{"):
        if b'"cells"' in plain and (b'"nbformat"' in plain or b'"nbformat"' in tail):
            return kind("notebook")
        if _looks_like_lines(plain):
            return kind("jsonl")
        if _JSON_RECORD.match(plain):
            return kind("json")
    if re.match(rb"\[\s*[\[{\"\d]", start) and tail.rstrip()[-1:] in (b"]", b""):
        return kind("json")
    if _is_mail(plain):
        return kind("email")
    if start.startswith(b"<?xml"):
        return kind("code", "text/x-xml")
    if start.startswith(b"#!"):
        return kind("code", "text/x-script")
    if start.startswith(b"<") and len(_HTML_TAG.findall(plain)) >= 3:
        return kind("html")
    return kind("text")


def _looks_like_lines(plain: bytes) -> bool:
    """Whether every line is a JSON object of its own."""
    import json

    lines = [line for line in plain.split(b"\n", 3)[:3] if line.strip()]
    if len(lines) < 2 or not all(line.lstrip().startswith(b"{") for line in lines[:2]):
        return False
    try:
        json.loads(lines[0])
    except ValueError:
        return False
    return True


def _is_mail(plain: bytes, least: int = 3) -> bool:
    """So many well-known header fields before the first empty line, and nothing but fields there."""
    known: set[bytes] = set()
    for line in plain.replace(b"\r\n", b"\n").lstrip(b"\n").split(b"\n")[:40]:
        if not line.strip():
            break
        if line[:1] in b" \t" or (not known and line.startswith(b"From ")):
            continue
        field = _MAIL_HEADER.match(line + b" ")
        if field is None:
            return False
        name = field[1].lower()
        if name in _MAIL_NAMES:
            known.add(name)
    return len(known) >= least
