"""What a definition says that a thing is: without these, one thing of two descriptions could be torn apart, or two of one name mixed."""

from __future__ import annotations

import pytest

from clew.indexer.graph.homonyms import head_of


@pytest.mark.parametrize(
    ("predicate", "goal", "expected"),
    [
        ("is a", "Portuguese supplier of hulls for buoys", ("organisation", "supplier")),
        ("is an", "internal project led by the harbour office", ("undertaking", "project")),
        ("is a", "tool that manages charts", ("undertaking", "tool")),
        ("é um", "fornecedor de cascos", ("organisation", "fornecedor")),
        ("é uma", "enfermeira da clínica de Faro", ("person", "enfermeira")),
        ("es un", "proyecto del puerto", ("undertaking", "proyecto")),
        ("— это", "небольшой поставщик корпусов", ("organisation", "поставщик")),
        ("is a", "way to divide cluster resources between users", None),
        ("is the", "smallest unit of a project", None),
        ("means", "a supplier", None),
    ],
)
def test_head_of_a_definition(predicate: str, goal: str, expected: tuple[str, str] | None) -> None:
    assert head_of(predicate, goal) == expected
