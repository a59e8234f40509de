"""Without these, a declared `pt-BR` would be analysed as English, and texts of unknown language by a wrong stemmer."""

from __future__ import annotations

import subprocess
import sys

import pytest

from clew.indexer.lexical.analysis import Analyzer
from clew.indexer.lexical.detection import detect_language
from clew.indexer.lexical.languages import LANGUAGES, language_code

SAMPLES = {
    "en": "The daemon reads the files where they lie and it writes an index beside them for the next search.",
    "pt": "O sistema lê os arquivos onde eles estão e grava um índice ao lado deles para a próxima busca que você fizer.",
    "es": "El sistema lee los archivos donde están y escribe un índice junto a ellos para la próxima búsqueda del usuario.",
    "fr": "Le système lit les fichiers là où ils sont et écrit un index à côté pour la prochaine recherche des utilisateurs.",
    "de": "Das System liest die Dateien dort, wo sie liegen, und schreibt einen Index daneben für die nächste Suche der Nutzer.",
    "ca": "El sistema llegeix els fitxers allà on són i escriu un índex al costat per a la cerca següent dels usuaris.",
    "it": "Il sistema legge i file dove si trovano e scrive un indice accanto per la prossima ricerca degli utenti, anche più volte.",
    "nl": "Het systeem leest de bestanden waar ze liggen en schrijft een index ernaast voor de volgende zoekopdracht van je.",
    "ru": "Система читает файлы там, где они лежат, и пишет индекс рядом с ними для следующего поиска.",
    "uk": "Система читає файли там, де вони лежать, і пише індекс поруч із ними для наступного пошуку, щоб він був швидким.",
    "el": "Το σύστημα διαβάζει τα αρχεία εκεί που βρίσκονται.",
    "ar": "يقرأ النظام الملفات حيث توجد ويكتب فهرسا بجانبها للبحث التالي عن الوثائق",
    "he": "המערכת קוראת את הקבצים במקום שבו הם נמצאים",
    "hi": "सिस्टम फ़ाइलों को वहीं पढ़ता है जहाँ वे हैं और उनके पास एक सूचकांक लिखता है",
    "ja": "システムはファイルをその場で読み、索引を隣に書きます。",
    "zh": "系统在文件所在的位置读取文件,并在旁边写入索引。",
    "ko": "시스템은 파일이 있는 곳에서 파일을 읽습니다",
    "th": "ระบบอ่านไฟล์ในที่ที่ไฟล์อยู่",
}


@pytest.mark.parametrize(("language", "text"), SAMPLES.items(), ids=SAMPLES)
def test_language_of_a_sentence_is_found(language: str, text: str) -> None:
    """A text is stemmed by the rules of its own language."""
    assert detect_language(text) == language


@pytest.mark.parametrize("text", ["", "   ", "12 345 67", "ok", "Docker", "foo_bar(x) {", "OK 200 GET /x"])
def test_short_and_wordless_texts_stay_undecided(text: str) -> None:
    """A guess from five letters would stem English names by Finnish rules."""
    assert detect_language(text) is None


def test_russian_prose_full_of_english_code_is_russian() -> None:
    """Technical prose quotes code; the letters of most characters are then not those of its language."""
    prose = "Чтобы запустить контейнер, выполните команду. "
    code = "docker run --rm -it ubuntu bash -c 'apt-get update && apt-get install curl' "
    assert detect_language(prose * 2 + code * 2) == "ru"


def test_japanese_with_many_ideographs_is_not_chinese() -> None:
    """Kana decide, not their share."""
    assert detect_language("東京都庁舎建設計画概要説明資料の件") == "ja"


def test_detection_is_the_same_in_another_process() -> None:
    """Hash seeds must not decide a language, or two builds would differ."""
    script = (
        "from clew.indexer.lexical.detection import detect_language as d\n"
        f"print([d(text) for text in {[SAMPLES['es'], SAMPLES['ca']]!r}])"
    )
    answers = {
        subprocess.run(
            [sys.executable, "-c", script],
            check=True,
            capture_output=True,
            encoding="utf-8",
            env={"PYTHONHASHSEED": seed, "PYTHONIOENCODING": "utf-8", "PYTHONPATH": ":".join(sys.path)},
        ).stdout
        for seed in ("1", "2")
    }
    assert len(answers) == 1


@pytest.mark.parametrize(
    ("tag", "code"),
    [
        ("pt-BR", "pt"),
        ("PT_br", "pt"),
        ("por", "pt"),
        ("nb", "no"),
        ("en", "en"),
        ("zh-Hant-TW", "zh"),
        ("ger", "de"),
        ("tlh", None),
        ("", None),
        (None, None),
        ("english", None),
    ],
)
def test_tags_become_codes(tag: str | None, code: str | None) -> None:
    """Documents declare their language in many spellings."""
    assert language_code(tag) == code


@pytest.mark.parametrize("code", sorted(LANGUAGES))
def test_every_language_has_a_working_analyzer(code: str) -> None:
    """A stemmer that tantivy does not know raises only when it is used."""
    assert Analyzer(code).streams("Running 3 containers: Контейнеры, κείμενα, كتاب, தமிழ், 日本語")[0]
