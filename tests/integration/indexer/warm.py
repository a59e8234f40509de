"""What a run imports and reads on its way, done once in the process that the others are forked from.

A run that dies at a fault point does so in a process of its own. Cold, that process takes .8 CPU-s and more for five small files, and
.2 with this behind it. Nothing here starts a thread: a fork would lose it.
"""

from importlib import import_module

from clew.indexer.lexical import detection

for _name in (
    *("blake3", "gzip", "pathspec", "py3langid", "pyromark", "sentencex", "tantivy"),
    *(
        "clew.connectors.localstore",
        "clew.indexer.compaction",
        "clew.indexer.embedders.hashing",
        "clew.indexer.garbage",
    ),
    *("clew.indexer.lexical.assembly", "clew.indexer.purge", "clew.indexer.run", "clew.indexer.upkeep"),
    *(
        f"clew.indexer.extract.{name}"
        for name in ("encoding", "front_matter", "html", "markdown", "records", "registry", "shortcodes", "unseen")
    ),
):
    import_module(_name)

detection._models()  # unpacking the model of languages is most of it
