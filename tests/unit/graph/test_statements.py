"""Statements found by plain patterns: without these, a claim could say what its sentence does not."""

from __future__ import annotations

import pytest

from clew.indexer.graph.statements import Statement, statements


def one(text: str, language: str = "en") -> Statement:
    (found,) = statements(text, language)
    return found


@pytest.mark.parametrize(
    ("text", "language", "subject", "kind"),
    [
        ("A tide gate is a door that keeps the sea out.", "en", "tide gate", "definition"),
        ("The pump station requires two operators.", "en", "pump station", "requirement"),
        ("The Northwind 200 costs 450 euros per month.", "en", "Northwind 200", "price"),
        ("Northwind was released in 2021 by the harbour.", "en", "Northwind", "date"),
        ("The signal relay is compatible with older controllers.", "en", "signal relay", "compatibility"),
        ("Northwind is certified under ISO 9001 for ports.", "en", "Northwind", "certification"),
        ("A comporta é uma porta que retém a maré.", "pt", "comporta", "definition"),
        ("O farol exige manutenção duas vezes ao ano.", "pt", "farol", "requirement"),
        ("La compuerta es una puerta que retiene la marea.", "es", "compuerta", "definition"),
        ("Шлюз — это сооружение для прохода судов.", "ru", "Шлюз", "definition"),
        ("Маяк требует ремонта каждые два года.", "ru", "Маяк", "requirement"),
    ],
)
def test_subject_and_kind(text: str, language: str, subject: str, kind: str) -> None:
    stated = one(text, language)
    assert (stated.subject, stated.kind) == (subject, kind)


@pytest.mark.parametrize(
    ("text", "status", "negated"),
    [
        ("The tide gate supports remote control.", "confirmed", False),
        ("The tide gate does not support remote control.", "confirmed", True),
        ("The tide gate may support remote control next year.", "suspected", False),
        ("The tide gate may contain a second motor.", "confirmed", False),
        ("The tide gate contains a pump, or perhaps several pumps.", "confirmed", False),
        ("The tide gate reportedly supports remote control.", "unverified", False),
        ("Mill Street Pump is a disputed landmark of the town.", "disputed", False),
    ],
)
def test_status_is_the_texts_own(text: str, status: str, negated: bool) -> None:
    found = list(statements(text, "en"))
    assert [(stated.status, stated.negated) for stated in found] == [(status, negated)]


@pytest.mark.parametrize(
    ("language", "status", "texts"),
    [
        (
            "en",
            "suspected",
            """The Gannet is probably a buoy that watches the shelf. / The Gannet is believed to support radar. / The Gannet seems to be
            a buoy. / The Gannet may be a copy of the Petrel. / The Gannet appears to require two operators. / Perhaps the Gannet requires
            two operators. / The Gannet requires, apparently, two operators. / We suspect that the Gannet uses a second battery.""",
        ),
        (
            "en",
            "unverified",
            """Reportedly, the Gannet supports radar. / The Gannet is said to be a copy of the Petrel. / It is rumoured that the Gannet costs
            450 euros. / The Gannet supports radar, but this has not been verified. / The Gannet supports radar (unconfirmed). / The Gannet
            was allegedly released in 2021. / It has not been confirmed that the Gannet supports radar. / The Gannet is an alleged copy of
            the Petrel. / According to unconfirmed reports, the Gannet requires two operators. / The Gannet supports radar, which has not
            yet been verified. / The maker claims that the Gannet supports radar.""",
        ),
        (
            "en",
            "disputed",
            """The maker denies that the Gannet requires two operators. / Critics argue that the Gannet is a copy of the Petrel. / The claim
            that the Gannet supports radar is disputed. / The Gannet supports radar, which the maker denies. / It is disputed whether the
            Gannet requires two operators. / The Gannet supports radar, but this is contested. / The report contradicts the claim that
            the Gannet supports radar.""",
        ),
        (
            "en",
            "confirmed",
            """The Gannet supports radar, but the price has not been verified. / The Gannet handles disputed charges and alleged debts. / A
            plugin may provide radar to all buoys. / The Gannet requires approval if this has not been confirmed. / The Gannet stores
            unverified reports and rumours. / The Gannet contains a pump, perhaps several.""",
        ),
        (
            "pt",
            "suspected",
            """Acredita-se que o Gannet suporta radar. / É possível que o Gannet suporte radar. / O Gannet parece ser uma boia. / O Gannet
            parece suportar radar. / O Gannet, ao que parece, exige dois operadores. / Provavelmente o Gannet exige dois operadores.""",
        ),
        (
            "pt",
            "unverified",
            """Supostamente, o Gannet suporta radar. / O Gannet supostamente suporta radar. / O Gannet suporta radar, mas isso ainda não foi
            confirmado. / O Gannet suporta radar, ainda não confirmado. / Segundo rumores, o Gannet custa 450 euros. / O Gannet teria
            sido lançado em 2021. / O Gannet é uma suposta cópia do Petrel.""",
        ),
        (
            "pt",
            "disputed",
            """O fabricante nega que o Gannet exija dois operadores. / O Gannet suporta radar, o que o fabricante nega. / A alegação de que
            o Gannet suporta radar é contestada.""",
        ),
        (
            "pt",
            "confirmed",
            """O Gannet armazena dados ainda não confirmados pelo operador. / O Gannet exige revisão se isso não foi confirmado.""",
        ),
        (
            "es",
            "suspected",
            """Al parecer, el Gannet soporta radar. / Es probable que el Gannet requiera dos operadores. / El Gannet parece ser una boya. /
            El Gannet probablemente requiere dos operadores.""",
        ),
        (
            "es",
            "unverified",
            """El Gannet supuestamente soporta radar. / Se dice que el Gannet cuesta 450 euros. / El Gannet soporta radar, pero esto aún no
            ha sido verificado. / El Gannet soporta radar (sin confirmar).""",
        ),
        (
            "es",
            "disputed",
            """El fabricante niega que el Gannet sea una copia del Petrel. / El Gannet soporta radar, aunque el fabricante lo niega.""",
        ),
        (
            "ru",
            "suspected",
            """Предположительно, маяк поддерживает радар. / Маяк, по-видимому, требует ремонта. / Считается, что маяк требует ремонта. /
            Маяк — это, вероятно, башня.""",
        ),
        (
            "ru",
            "unverified",
            """По неподтверждённым данным, маяк поддерживает радар. / Маяк якобы поддерживает радар. / Маяк поддерживает радар, но это пока
            не подтверждено. / Производитель утверждает, что маяк поддерживает радар.""",
        ),
        (
            "ru",
            "disputed",
            """Завод отрицает, что маяк требует ремонта. / Маяк поддерживает радар, хотя завод это отрицает. / Утверждение о том, что
            маяк поддерживает радар, оспаривается.""",
        ),
        ("ru", "confirmed", "Маяк хранит непроверенные данные. / Маяк требует вероятностной оценки."),
    ],
)
def test_cue_governs_its_clause_and_no_other(language: str, status: str, texts: str) -> None:
    for text in (" ".join(part.split()) for part in texts.split(" / ")):
        found = list(statements(text, language))
        assert [stated.status for stated in found] == [status], text


def test_claim_of_which_something_else_is_said_states_nothing() -> None:
    assert list(statements("The claim that the Gannet supports radar is old.", "en")) == []


def test_denial_is_not_lost_where_the_subject_ends() -> None:
    assert list(statements("Developers do not normally need to run updates.", "en")) == []
    assert one("The Gannet file cannot refer to other files.").negated


@pytest.mark.parametrize(
    "text",
    [
        "Is the tide gate a door that keeps the sea out?",
        "This approach requires two operators on site.",
        "If the tide gate is a door, close it at night.",
        "You must have two operators on site at night.",
        "Role-based access control (for short RBAC) came later.",
    ],
)
def test_what_states_nothing_of_a_subject_is_left_alone(text: str) -> None:
    assert list(statements(text, "en")) == []


def test_span_is_the_sentence() -> None:
    text = "Before that it rained. A tide gate is a door that keeps the sea out. Then it stopped."
    stated = one(text)
    assert text[stated.start : stated.end] == "A tide gate is a door that keeps the sea out."


def test_abbreviation_in_brackets_comes_along() -> None:
    assert one("The Tide Gate Controller (TGC) is a service that moves gates.").abbreviation == "TGC"
