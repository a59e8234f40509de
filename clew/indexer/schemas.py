"""The Arrow schemas of the tables beside the data: every column with its type, unit and nullability, once.

Keys: `file_key` is handed out in path order within a batch and never reused;
`chunk_key = file_key * 2**24 + counter` and `link_key = file_key * 2**24 + counter`, so the file of a chunk is a
shift away and every key stays below 2**53 (JavaScript-safe).
"""

from __future__ import annotations

import pyarrow as pa

FORMAT_VERSION = 1
KEY_BITS = 24
MAX_PER_FILE = 1 << KEY_BITS
MAX_FILE_KEY = (1 << (53 - KEY_BITS)) - 1

_strings = pa.list_(pa.string())
_map = pa.list_(pa.struct([pa.field("key", pa.string(), nullable=False), pa.field("values", _strings, nullable=False)]))

#: One row a file.
FILES = pa.schema(
    [
        pa.field("file_key", pa.int64(), nullable=False),
        pa.field("path", pa.string(), nullable=False),  # relative to the root, '/' separated, as text
        pa.field("path_raw", pa.binary()),  # the raw bytes where the name is not UTF-8
        pa.field("name", pa.string(), nullable=False),
        pa.field("extension", pa.string(), nullable=False),  # lower case, without the dot
        pa.field("directories", _strings, nullable=False),  # segments of the directory
        pa.field("kind", pa.string()),  # the extractor: markdown, pdf, …; null until extracted
        pa.field("media_type", pa.string()),
        pa.field("size", pa.int64(), nullable=False),  # bytes
        pa.field("mtime_ns", pa.int64()),  # nanoseconds since 1970, UTC
        pa.field("etag", pa.string()),
        pa.field("version_id", pa.string()),
        pa.field("checksum", pa.string()),  # the store's own full-object checksum, "algorithm:value"
        pa.field("inode", pa.string()),  # "device:inode", local files only
        pa.field("content_hash", pa.string()),  # blake3 of the bytes, hex
        pa.field("encoding", pa.string()),  # as found; null for binary formats
        pa.field("owner", pa.string()),
        pa.field("urls", _strings, nullable=False),  # addresses that the document says are its own
        pa.field("records", pa.int64(), nullable=False),  # documents in the file (1 for an ordinary file)
        pa.field("chunk_count", pa.int64(), nullable=False),
        pa.field("link_count", pa.int64(), nullable=False),
        pa.field("next_chunk", pa.int64(), nullable=False),  # the next free counter of a chunk_key
        pa.field("state", pa.string(), nullable=False),  # indexed | failed | skipped
        pa.field("stage", pa.string()),  # where it failed: fetch | extract | chunk | embed
        pa.field("reason", pa.string()),  # a short stable word
        pa.field("message", pa.string()),
        pa.field("attempts", pa.int32(), nullable=False),
        pa.field("next_try_ns", pa.int64()),  # nanoseconds since 1970, UTC
        pa.field("indexed_ns", pa.int64()),  # nanoseconds since 1970, UTC
    ]
)

#: One row a document: an ordinary file's only one (record null), or a row of a record file.
DOCUMENTS = pa.schema(
    [
        pa.field("file_key", pa.int64(), nullable=False),
        pa.field("record_number", pa.int32(), nullable=False),  # 0 for an ordinary file
        pa.field("record", pa.string()),
        pa.field("title", pa.string()),
        pa.field("language", pa.string()),
        pa.field("char_count", pa.int64(), nullable=False),
        pa.field("meta", _map, nullable=False),  # front matter, properties, columns
    ]
)


def chunks_schema(dimension: int | None) -> pa.Schema:
    """One row a chunk. `vector` is there when the generation has an embedder; null until it is filled."""
    fields = [
        pa.field("chunk_key", pa.int64(), nullable=False),
        pa.field("file_key", pa.int64(), nullable=False),
        pa.field("record_number", pa.int32(), nullable=False),
        pa.field("record", pa.string()),
        pa.field("title", pa.string()),
        pa.field("heading_path", _strings, nullable=False),
        pa.field("text", pa.large_string(), nullable=False),
        pa.field("tail", pa.string(), nullable=False),  # white space up to the next chunk; '' where they overlap
        pa.field("char_start", pa.int64(), nullable=False),  # code points into the document's normalised text
        pa.field("char_end", pa.int64(), nullable=False),
        pa.field("location_unit", pa.string()),  # page | sheet | slide | line | cell | entry
        pa.field("location_value", pa.string()),
        pa.field("anchors", _strings, nullable=False),  # canonical fragments that point into this chunk
        pa.field("token_count", pa.int32(), nullable=False),
        pa.field("language", pa.string()),
        pa.field("content_hash", pa.binary(16), nullable=False),  # xxh3-128 of what is embedded
    ]
    if dimension is not None:
        fields.append(pa.field("vector", pa.list_(pa.float32(), dimension)))
    return pa.schema(fields)


#: One row a written link.
LINKS = pa.schema(
    [
        pa.field("link_key", pa.int64(), nullable=False),
        pa.field("source_file", pa.int64(), nullable=False),
        pa.field("source_record", pa.int32(), nullable=False),
        pa.field("source_chunk", pa.int64()),
        pa.field("href", pa.string(), nullable=False),
        pa.field("base_href", pa.string()),
        pa.field("kind", pa.string(), nullable=False),
        pa.field("anchor", pa.string(), nullable=False),  # anchor text
        pa.field("context", pa.string(), nullable=False),  # the sentence around it
        pa.field("fragment", pa.string()),
        pa.field("probed", pa.list_(pa.uint64()), nullable=False),  # hashes of the target keys that were tried
        pa.field("target_file", pa.int64()),
        pa.field("target_record", pa.int32()),
        pa.field("target_chunk", pa.int64()),
        pa.field("fragment_found", pa.bool_()),  # false: the fragment names nothing in the target; null: no fragment
        pa.field("weight", pa.float32()),  # cosine of anchor context and target chunk
        pa.field("state", pa.string(), nullable=False),  # resolved | dangling | external
    ]
)

#: One row an edge, in an edge file (Arrow IPC), sorted by (source_chunk, -weight, target_chunk, link_key).
EDGES = pa.schema(
    [
        pa.field("source_chunk", pa.int64(), nullable=False),
        pa.field("target_chunk", pa.int64(), nullable=False),
        pa.field("weight", pa.float32(), nullable=False),
        pa.field("link_key", pa.int64(), nullable=False),
    ]
)
