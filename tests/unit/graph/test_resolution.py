"""Which forms are one entity: without these, two people of a name would be one, or one thing many."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from clew.indexer.graph.names import key_of
from clew.indexer.graph.resolution import Alias, Form, distance, normalised, resolve


def form(name: str, type_: str = "", documents: int = 3, weight: int = 2) -> Form:
    return Form(key=key_of(name, type_), name=name, type=type_, documents=documents, mentions=documents, weight=weight)


def groups(aliases: Sequence[Alias]) -> list[set[str]]:
    found: dict[int, set[str]] = {}
    for alias in aliases:
        found.setdefault(alias.entity, set()).add(
            f"{alias.form.name}:{alias.form.type}" if alias.form.type else alias.form.name
        )
    return sorted(found.values(), key=sorted)


def test_a_title_in_front_the_case_and_the_number_make_no_second_entity() -> None:
    forms = [
        form("Ahab", "person"),
        form("Captain Ahab", "person"),
        form("Electrons"),
        form("electrons"),
        form("electron"),
    ]
    assert groups(resolve(forms)) == [{"Ahab:person", "Captain Ahab:person"}, {"Electrons", "electrons", "electron"}]


def test_homonyms_of_two_types_stay_apart_and_places_that_say_nothing_join_the_better_known() -> None:
    forms = [form("Mercury", "place", 5), form("Mercury", "product", 4), form("Mercury", "", 9)]
    assert groups(resolve(forms)) == [{"Mercury", "Mercury:place"}, {"Mercury:product"}]


def test_a_stray_type_makes_no_homonym() -> None:
    assert len(groups(resolve([form("Mercury", "place", 9), form("Mercury", "person", 1)]))) == 1


def test_short_name_of_two_people_is_neither() -> None:
    forms = [form("Ana Prado", "person"), form("Rui Prado", "person"), form("Prado")]
    assert groups(resolve(forms)) == [{"Ana Prado:person"}, {"Prado"}, {"Rui Prado:person"}]


def test_short_name_of_the_only_person_of_it_is_theirs_and_says_so() -> None:
    aliases = resolve([form("Ana Prado", "person", 4), form("Prado")])
    assert len(groups(aliases)) == 1
    assert "only full name" in next(alias.reason for alias in aliases if alias.form.name == "Prado")


def test_acronyms_are_not_words() -> None:
    assert groups(resolve([form("US"), form("us"), form("IT"), form("it")])) == [{"IT"}, {"US"}, {"it"}, {"us"}]


def test_abbreviation_counts_where_texts_agree_on_it() -> None:
    forms = [form("Tide Gate Controller"), form("TGC"), form("Total Grain Count")]
    assert len(groups(resolve(forms, abbreviations=[("TGC", "Tide Gate Controller")]))) == 2
    two = [("TGC", "Tide Gate Controller"), ("TGC", "Total Grain Count")]
    assert len(groups(resolve(forms, abbreviations=two))) == 3


def test_nearly_alike_merges_by_meaning_alone_and_never_across_numbers() -> None:
    forms = [form("Kaliningrad"), form("Kaliningrat"), form("release 1.21"), form("release 1.22")]

    def same(names: Sequence[str]) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
        return np.ones((len(names), 1), dtype=np.float32)

    assert groups(resolve(forms)) == [{"Kaliningrad"}, {"Kaliningrat"}, {"release 1.21"}, {"release 1.22"}]
    forms[1] = form("Kaliningrd")
    assert {"Kaliningrad", "Kaliningrd"} in groups(resolve(forms, embed=same))
    assert {"release 1.21"} in groups(resolve(forms, embed=same))


def test_what_was_parted_by_hand_stays_parted() -> None:
    one, other = form("De Walt"), form("DeWalt", documents=5)
    assert len(groups(resolve([one, other]))) == 1
    assert len(groups(resolve([one, other], apart=[(one.key, other.key)]))) == 2


def test_result_does_not_depend_on_the_order_of_forms() -> None:
    forms = [
        form("Pod"),
        form("pods", documents=9),
        form("POD"),
        form("Pods", "identifier", 2),
        form("Ana Prado", "person"),
        form("Prado"),
    ]
    assert [(a.form.key, a.entity, a.how) for a in resolve(forms)] == [
        (a.form.key, a.entity, a.how) for a in resolve(list(reversed(forms)))
    ]


def test_normal_forms() -> None:
    assert normalised("Role-Based Access Controls") == normalised("role based access control")
    assert normalised("autorizações") == normalised("Autorização")
    assert normalised("status") == "status"


def test_distance_stops_at_its_bound() -> None:
    assert distance("kitten", "sitting", 5) == 3
    assert distance("kitten", "sitting", 1) == 2
