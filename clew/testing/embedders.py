"""What every embedder must keep: subclass `EmbedderConformance` in a test module and give it yours.

class TestMyEmbedder(EmbedderConformance):
    @pytest.fixture(scope="class")
    def embedder(self):
        return MyEmbedder()
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence

import numpy as np
import pytest

from clew.indexer.embedders.hashing import HashingEmbedder
from clew.indexer.embedders.protocol import Embedder

__all__ = ["EmbedderConformance", "HashingEmbedder"]

TEXTS: tuple[str, ...] = (
    "Rotate the signing key every ninety days.",
    "A kitchen garden wants sun, water and patience.",
    "The key is rotated by the operations team; see the runbook for signing keys and their owners.",
    "x",
    "Ключ подписи меняют каждые девяносто дней.",
    "A chave de assinatura é trocada a cada noventa dias.",
    "def rotate(key: bytes) -> bytes:\n    return key[1:] + key[:1]\n",
    "word " * 200,
)
ODD_TEXTS: tuple[str, ...] = (
    "",
    " ",
    "\n\t\r ",
    "\x00\x01\x7f",
    "👩‍👩‍👧‍👦 🏳️‍🌈 é é",
    "\u202eright to left\u202c \u200b\ufeff\ufffd",
    "漢字とかな交じりの文章。" * 30,
    "a" * 5_000,
    "supercalifragilistic " * 3_000,
)


class EmbedderConformance:
    """Deleted, an embedder could mix vectors of different batches, lengths or orders without anybody noticing."""

    tolerance = 1e-6  # between a text's vectors from different batches; 0.0 where they must be equal to the bit
    margin = 0.1  # of cosine, between a related and an unrelated text
    _opened: Embedder
    semantic = True  # whether related texts must come out closer than unrelated ones

    @classmethod
    def open(cls) -> Embedder:
        """The embedder under test. Called once a class; may skip."""
        raise NotImplementedError

    @pytest.fixture
    def embedder(self) -> Embedder:
        """The embedder under test, opened once: a model takes its time."""
        kind = type(self)
        if "_opened" not in vars(kind):
            kind._opened = kind.open()
        return kind._opened

    def test_it_is_an_embedder(self, embedder: Embedder) -> None:
        """Shape of the protocol."""
        assert isinstance(embedder, Embedder)

    def test_vectors_are_float32_rows_of_the_stated_dimension_and_length_one(self, embedder: Embedder) -> None:
        """Indices and scores rely on it: a dot product is a cosine."""
        vectors = embedder.embed_passages(TEXTS)
        assert vectors.dtype == np.float32
        assert vectors.shape == (len(TEXTS), embedder.fingerprint.dimension)
        np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-5)
        query = embedder.embed_query(TEXTS[0])
        assert query.dtype == np.float32
        assert query.shape == (embedder.fingerprint.dimension,)
        assert abs(float(np.linalg.norm(query)) - 1.0) < 1e-5

    def test_no_texts_give_no_rows(self, embedder: Embedder) -> None:
        """A batch may hold nothing that is new."""
        assert embedder.embed_passages([]).shape == (0, embedder.fingerprint.dimension)
        assert embedder.count_tokens([]) == []

    def test_a_vector_does_not_depend_on_the_texts_that_travel_with_it(self, embedder: Embedder) -> None:
        """Alone, among others, in another order, among longer ones: the same vector."""
        together = embedder.embed_passages(TEXTS)
        for row, text in enumerate(TEXTS):
            self._same(embedder.embed_passages([text])[0], together[row])
        self._same(embedder.embed_passages(TEXTS[::-1])[::-1], together)
        self._same(embedder.embed_passages([*TEXTS * 5, "far longer " * 500])[: len(TEXTS)], together)

    def test_the_same_texts_give_the_same_vectors_again(self, embedder: Embedder) -> None:
        """A rebuilt index must equal the old one."""
        np.testing.assert_array_equal(embedder.embed_passages(TEXTS), embedder.embed_passages(TEXTS))
        np.testing.assert_array_equal(embedder.embed_query(TEXTS[2]), embedder.embed_query(TEXTS[2]))

    def test_odd_texts_have_finite_vectors_of_length_one(self, embedder: Embedder) -> None:
        """Empty, of control characters, of one endless word, far too long: never an error, never NaN."""
        vectors = embedder.embed_passages(ODD_TEXTS)
        assert np.isfinite(vectors).all()
        np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-5)
        for text in ODD_TEXTS:
            assert np.isfinite(embedder.embed_query(text)).all()

    def test_related_texts_are_closer_than_unrelated_ones(self, embedder: Embedder) -> None:
        """Otherwise the vectors are noise, or the weights were read wrongly."""
        if not self.semantic:
            pytest.skip("this embedder makes no claim about meaning")
        query = embedder.embed_query("when are signing keys rotated")
        about_keys, about_gardens = embedder.embed_passages([TEXTS[2], TEXTS[1]])
        assert query @ about_keys > query @ about_gardens + self.margin

    def test_tokens_are_counted_untruncated_and_batch_free(self, embedder: Embedder) -> None:
        """The chunker's windows are measured with it."""
        counts = embedder.count_tokens(TEXTS)
        assert counts == [embedder.count_tokens([text])[0] for text in TEXTS]
        assert all(isinstance(count, int) for count in counts)
        assert embedder.count_tokens([""]) == [0]
        assert embedder.count_tokens(["word " * 3_000])[0] >= 3_000

    def test_fingerprint_is_the_same_for_a_copy_in_another_process(self, embedder: Embedder) -> None:
        """Workers get the embedder by pickle and must give the same vectors."""
        copy = pickle.loads(pickle.dumps(embedder))
        assert copy.fingerprint == embedder.fingerprint
        assert copy.fingerprint.id == embedder.fingerprint.id
        self._same(copy.embed_passages(TEXTS[:3]), embedder.embed_passages(TEXTS[:3]))

    def _same(self, one: np.ndarray | Sequence[float], other: np.ndarray) -> None:
        if self.tolerance:
            np.testing.assert_allclose(one, other, atol=self.tolerance, rtol=0)
        else:
            np.testing.assert_array_equal(one, other)
