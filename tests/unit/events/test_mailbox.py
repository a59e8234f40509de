"""What outlives the process; without these a webhook's events would be lost in a restart."""

from __future__ import annotations

from pathlib import Path

import orjson

from clew.connectors.events.hints import Hint, Parsed, Rejected
from clew.connectors.events.mailbox import DEAD, WAITING, DeadLetters, Mailbox
from clew.connectors.objects import ObjectStore

HINTS = (Hint(path="a/ü.md", happened_ns=5), Hint(path="caf\udce9", is_folder=True))


def test_posted_hints_survive_a_restart_until_acknowledged(tmp_path: Path) -> None:
    name = Mailbox(ObjectStore.open(tmp_path)).post(HINTS)
    for _ in range(2):  # a process that dies without acknowledging, and the next one
        (delivery,) = Mailbox(ObjectStore.open(tmp_path)).receive(0)
        assert delivery.hints == HINTS
        assert delivery.handle == name
    mailbox = Mailbox(ObjectStore.open(tmp_path))
    handles = [one.handle or "" for one in mailbox.receive(0)]
    assert mailbox.receive(0) == []
    mailbox.acknowledge(handles)
    assert Mailbox(ObjectStore.open(tmp_path)).receive(0) == []


def test_what_is_handed_back_comes_again(tmp_path: Path) -> None:
    mailbox = Mailbox(ObjectStore.open(tmp_path))
    mailbox.post(HINTS)
    first = mailbox.receive(0)
    mailbox.hand_back([one.handle or "" for one in first])
    assert mailbox.receive(0) == first


def test_deliveries_come_in_the_order_of_posting(tmp_path: Path) -> None:
    mailbox = Mailbox(ObjectStore.open(tmp_path))
    names = [mailbox.post([Hint(path=f"{number}.md")]) for number in range(20)]
    assert mailbox.post([]) is None
    assert [one.handle for one in mailbox.receive(0)] == names


def test_object_that_nobody_can_read_makes_us_look_everywhere(tmp_path: Path) -> None:
    store = ObjectStore.open(tmp_path)
    store.put(f"{WAITING}0", b'[{"pa')
    (delivery,) = Mailbox(store).receive(0)
    assert delivery.hints == (Hint(path="", is_folder=True),)


def test_dead_letter_is_kept_once_with_its_reason(tmp_path: Path) -> None:
    store = ObjectStore.open(tmp_path)
    letters = DeadLetters(store)
    for _ in range(3):
        letters.keep("sqs", Parsed(rejected=(Rejected(reason="it is not JSON", body="\ud800 nonsense"),)))
    (stored,) = store.list(DEAD)
    letter = orjson.loads(store.get(stored.name))
    assert (letter["source"], letter["reason"], letter["characters"]) == ("sqs", "it is not JSON", 10)
    assert letter["body"].endswith("nonsense")


def test_monstrous_dead_letter_is_cut(tmp_path: Path) -> None:
    store = ObjectStore.open(tmp_path)
    DeadLetters(store).keep("sqs", Parsed(rejected=(Rejected(reason="x", body="y" * (1 << 20)),)))
    (stored,) = store.list(DEAD)
    assert stored.size < 300_000
