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
