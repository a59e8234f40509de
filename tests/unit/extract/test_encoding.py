"""Scenario P1: without these, files in UTF-16, Cyrillic, Western or East Asian encodings would become mojibake."""

from __future__ import annotations

from io import BytesIO

import pytest

from clew.indexer.extract.document import ExtractionLimits, Source
from clew.indexer.extract.encoding import decode, decode_stream, open_text
from clew.testing.documents import extract_bytes

TEXTS = {
    "ru": "Наши ключи подписи меняются каждые девяносто дней. Дежурный инженер создаёт новую пару, публикует открытый "
    "ключ и ждёт, пока все сервисы обновят кэш. «Старый ключ» удаляется через сутки — не раньше.",
    "uk": "Ключі підпису змінюються кожні дев'яносто днів. Черговий інженер створює нову пару, публікує відкритий ключ "
    "і чекає, поки всі служби оновлять кеш.",
    "pt": "A rotação das chaves de assinatura é feita a cada noventa dias. O engenheiro de plantão gera um novo par, "
    "publica a chave pública e espera até que todos os serviços atualizem o cache. Não apague a chave antiga.",
    "fr": "L’équipe d’astreinte génère une nouvelle clé, publie la clé publique et attend que tous les services aient "
    "rafraîchi leur cache. N’effacez pas l’ancienne clé avant vingt-quatre heures.",
    "de": "Die Schlüssel werden alle neunzig Tage gewechselt. Der Bereitschaftsdienst erzeugt ein neues Paar, "
    "veröffentlicht den öffentlichen Schlüssel und wartet, bis alle Dienste ihn übernommen haben.",
    "es": "La rotación de las claves de firma se realiza cada noventa días. ¿Qué pasa después? Mañana se borra.",
    "pl": "Klucze podpisujące są wymieniane co dziewięćdziesiąt dni. Dyżurny inżynier tworzy nową parę, publikuje klucz "
    "publiczny i czeka, aż wszystkie usługi odświeżą pamięć podręczną.",
    "cs": "Podpisové klíče se mění každých devadesát dní. Službu konající inženýr vytvoří nový pár, zveřejní veřejný "
    "klíč a počká, až všechny služby obnoví mezipaměť. Žádný starý klíč se neodstraňuje příliš brzy.",
    "tr": "İmzalama anahtarları her doksan günde bir değiştirilir. Nöbetçi mühendis yeni bir çift oluşturur, açık "
    "anahtarı yayımlar ve bütün hizmetlerin önbelleği yenilemesini bekler.",
    "el": "Τα κλειδιά υπογραφής αλλάζουν κάθε ενενήντα ημέρες. Ο μηχανικός υπηρεσίας δημιουργεί ένα νέο ζεύγος.",
    "he": "מפתחות החתימה מוחלפים כל תשעים יום. המהנדס התורן יוצר זוג חדש ומפרסם את המפתח הציבורי.",
    "ar": "يتم تبديل مفاتيح التوقيع كل تسعين يوما. يقوم المهندس المناوب بإنشاء زوج جديد ونشر المفتاح العام.",
    "zh": "签名密钥每九十天轮换一次。值班工程师生成新的密钥对，发布公钥，并等待所有服务刷新缓存。旧密钥在二十四小时之后才会被删除。",
    "zh-tw": "簽名金鑰每九十天輪換一次。值班工程師產生新的金鑰對，發布公鑰，並等待所有服務重新整理快取。請不要提前操作。",
    "ja": "署名鍵は九十日ごとに交換します。当番のエンジニアは新しい鍵の組を作り、公開鍵を公表し、すべてのサービスがキャッシュを更新するまで待ちます。",
    "ko": "서명 키는 구십 일마다 교체합니다. 당직 엔지니어는 새 키 쌍을 만들고 공개 키를 게시한 다음 모든 서비스가 캐시를 새로 고칠 때까지 기다립니다.",
}

CASES = [
    ("ru", "cp1251", "cp1251"),
    ("ru", "koi8-r", "koi8-r"),
    ("ru", "cp866", "cp866"),
    ("ru", "iso-8859-5", "iso-8859-5"),
    ("uk", "cp1251", "cp1251"),
    ("pt", "cp1252", "cp1252"),
    ("pt", "iso-8859-1", "cp1252"),
    ("fr", "cp1252", "cp1252"),
    ("de", "cp1252", "cp1252"),
    ("es", "iso-8859-1", "cp1252"),
    ("pl", "cp1250", "cp1250"),
    ("pl", "iso-8859-2", "iso-8859-2"),
    ("cs", "cp1250", "cp1250"),
    ("tr", "cp1254", "cp1254"),
    ("el", "cp1253", "cp1253"),
    ("he", "cp1255", "cp1255"),
    ("ar", "cp1256", "cp1256"),
    ("zh", "gbk", "gbk"),
    ("zh-tw", "big5", "big5"),
    ("ja", "shift_jis", "shift_jis"),
    ("ja", "euc_jp", "euc-jp"),
    ("ja", "iso2022_jp", "iso2022_jp_2"),
    ("ko", "euc_kr", "euc-kr"),
]
UNICODE = ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be"]


@pytest.mark.parametrize(("language", "codec", "reported"), CASES)
def test_encoding_is_recognised_from_a_few_sentences(language: str, codec: str, reported: str):
    data = TEXTS[language].encode(codec, "ignore")
    text, encoding = decode(data)
    assert text == data.decode(codec)
    assert encoding == reported


@pytest.mark.parametrize("codec", UNICODE)
@pytest.mark.parametrize("language", sorted(TEXTS))
def test_unicode_is_recognised_with_and_without_a_mark(language: str, codec: str):
    text, encoding = decode(f"# {TEXTS[language]}\n".encode(codec))
    assert text == f"# {TEXTS[language]}\n"
    assert encoding.startswith(codec.removesuffix("-sig"))


@pytest.mark.parametrize(("codec", "reported"), [("cp1251", "cp1251"), ("utf-16", "utf-16-le"), ("koi8-r", "koi8-r")])
def test_markdown_in_another_encoding_is_markdown(codec: str, reported: str):
    from clew.indexer.extract.registry import extract

    data = f"# Ключи\r\n\r\nСм. [смену](смена.md): {TEXTS['ru']}\r\n".encode(codec, "ignore")
    extraction = extract(Source(path="ключи.md", size=len(data), stream=BytesIO(data)))
    (document,) = extraction.documents
    assert (extraction.kind.name, extraction.encoding) == ("markdown", reported)
    assert document.text.startswith("Ключи\n\nСм. смену: Наши ключи")
    assert document.links[0].href == "смена.md"


def test_ascii_says_utf8():
    assert decode(b"plain\r\ntext\rx") == ("plain\ntext\nx", "utf-8")


def test_a_damaged_byte_does_not_turn_utf8_into_something_else():
    data = (TEXTS["ru"] * 3).encode().replace("кэш".encode(), b"\xd0k", 1)
    text, encoding = decode(data)
    assert encoding == "utf-8"
    assert "Наши ключи" in text


@pytest.mark.parametrize(
    ("data", "hint", "reported"),
    [
        (b'<html><head><meta charset="windows-1251"></head><body>\xe4\xe0</body></html>', "html", "cp1251"),
        (b'<meta http-equiv="Content-Type" content="text/html; charset=koi8-r"><p>\xc4\xc1</p>', "html", "koi8-r"),
        (b'<?xml version="1.0" encoding="ISO-8859-2"?><a>\xb1\xb6</a>', "xml", "iso-8859-2"),
        (b"#!/usr/bin/python\n# -*- coding: cp1251 -*-\nx = '\xe4\xe0'\n", None, "cp1251"),
        (b"\xe4\xe0", "windows-1251", "cp1251"),
        (b"\xb0\xa1 \xb0\xa1", "ks_c_5601-1987", "euc-kr"),
    ],
)
def test_declared_charset_is_honoured(data: bytes, hint: str | None, reported: str):
    assert decode(data, hint)[1] == reported


@pytest.mark.parametrize("name", ["utf-8", "rot13", "base64", "no-such-thing", "unicode_escape", "punycode", "utf-7"])
def test_declared_charset_that_does_not_fit_is_not(name: str):
    data = f'<meta charset="{name}">'.encode() + TEXTS["pt"].encode("cp1252")
    assert decode(data, "html")[1] == "cp1252"


def test_forced_encoding_wins():
    (document,) = extract_bytes("a.txt", "déjà vu, été".encode("cp850"), encoding="cp850")
    assert document.text == "déjà vu, été"


@pytest.mark.parametrize("codec", ["utf-8", "cp1251", "utf-16-le", "gb18030"])
def test_stream_decodes_like_the_whole(codec: str):
    text = "Начало\r\n" + (TEXTS["ru"] + "\r\n") * 9000
    data = text.encode(codec)
    assert len(data) > 3 << 20 or codec == "cp1251"
    assert "".join(decode_stream(BytesIO(data), codec)) == text.replace("\r\n", "\n")


def test_encoding_that_shows_late_in_a_long_file_is_found():
    data = b"Only ASCII in this line, again and again.\n" * 120_000 + (TEXTS["ru"] + "\n").encode("cp1251") * 20
    assert len(data) > 5_000_000
    text = open_text(Source(path="a.txt", size=len(data), stream=BytesIO(data)))
    assert text.encoding == "cp1251"
    assert text.read().endswith(TEXTS["ru"] + "\n")


def test_binary_integers_are_no_utf16():
    from clew.indexer.extract.encoding import wide_encoding

    assert wide_encoding(bytes(range(1, 9)) * 100) is None
    assert wide_encoding(b"".join(number.to_bytes(2, "little") for number in range(1, 2000, 7))) is None


def test_parts_of_a_long_cyrillic_file_are_bounded():
    data = ((TEXTS["ru"] + "\n\n") * 400).encode("cp866", "ignore")
    parts = extract_bytes("a.txt", data, limits=ExtractionLimits(part=5000))
    assert len(parts) > 10
    assert max(len(part.text) for part in parts) <= 5002
    assert (
        "".join(part.text for part in parts)
        == "\n\n".join(" ".join(line.split()) for line in data.decode("cp866").split("\n\n")).strip()
    )
