"""The floor of abstention, fitted to one index and kept beside it.

A calibration belongs to a generation: what was embedded by another model, or cut into other windows, has other figures. It
lies at `calibrations/<generation>`, outside of everything that snapshots name, so neither publishing nor a sweep touches
it, and every snapshot of the generation is judged by it, past ones included.

With judged questions, the floor is where at most `LOST` of them would be refused. Without any, it is moved from the default:
up where questions made of the index's own sentences are far surer than that, down where the packaged foreign questions
(`clew.query.foreign`) stand far below it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from pydantic import ValidationError

from clew.errors import OptionError, StorageError
from clew.indexer.place import Place
from clew.indexer.sentences import line_spans, sentence_spans
from clew.indexer.snapshots import generation_name
from clew.query.abstention import Function
from clew.query.foreign import FOREIGN
from clew.query.inspection import moment
from clew.query.pinned import PinnedIndex
from clew_client.types import Calibration

FOLDER = "calibrations/"
LOST = 0.05  # of questions that have an answer
ACCEPTED = 0.02  # of questions that have none
OWN = 200  # questions made of the index's own sentences
FEWEST_WORDS = 12  # of a sentence that makes a question
MOST_WORDS = 40
EVERY = 4  # of its words one is asked
LANGUAGE_SHARE = 0.2  # of the chunks, for foreign questions in that language


def floor_for(function: Function, calibration: Calibration | None) -> float:
    """The fitted floor, where it was fitted for these very coefficients; else their own."""
    return function.floor if calibration is None or calibration.function != function.name else calibration.floor


def calibration_of(pinned: PinnedIndex) -> Calibration | None:
    """What was fitted for the generation of a snapshot; None where nothing was, or it cannot be read. It was fitted to the whole
    collection, so that a strict part has none."""
    if pinned.is_strict:
        return None
    try:
        data = pinned.place.store.get(FOLDER + pinned.generation.id)
        return Calibration.model_validate_json(data)
    except (StorageError, ValidationError):  # a store that may not be listed says "forbidden" of what is not there
        return None


def keep(place: Place, generation: str, calibration: Calibration) -> None:
    """Store a calibration, and remove those of generations that are gone."""
    place.store.put(FOLDER + generation, calibration.model_dump_json(indent=1).encode())
    names = [stored.name for stored in place.store.list(FOLDER)]
    place.store.delete(name for name in names if not place.store.exists(generation_name(name.removeprefix(FOLDER))))


def calibrate(
    pinned: PinnedIndex,
    function: Function,
    confidence: Callable[[str], float],
    questions: Sequence[str] = (),
) -> Calibration:
    """Fit the floor of a snapshot's generation; nothing is stored.

    `confidence`: of a question, asked of this snapshot. `questions`: such as should be answered; made of the index's own
    sentences where there are none. Raises OptionError for an index that holds nothing.
    """
    own = [confidence(text) for text in questions or own_questions(pinned)]
    if not own:
        raise OptionError(f"The index at {pinned.place.address} holds no sentences to calibrate with; give --queries.")
    foreign = [confidence(text) for text in foreign_questions(pinned.languages)]
    floor = judged_floor(own) if questions else floor_by_itself(own, foreign, function)
    return Calibration(
        function=function.name,
        floor=floor,
        method="questions" if questions else "self",
        questions=len(own),
        foreign=len(foreign),
        lost=sum(value < floor for value in own) / len(own),
        accepted=sum(value >= floor for value in foreign) / len(foreign),
        snapshot=pinned.snapshot.number,
        fitted=str(moment(time.time_ns())),
    )


def judged_floor(own: Sequence[float]) -> float:
    """The highest floor that refuses at most `LOST` of questions that should be answered, by their confidences."""
    return float(np.quantile(np.asarray(own, dtype=np.float64), LOST, method="lower"))


def floor_by_itself(own: Sequence[float], foreign: Sequence[float], function: Function) -> float:
    """A floor without judged questions: the function's, higher where questions made of the index's own sentences (`own`) are
    far surer than it, and lower, half of the way in logits, where all but `ACCEPTED` of the foreign ones stand lower.

    Half of the way: packaged questions are farther from a collection than what its readers ask in vain. On Kubernetes'
    documentation (questions refused / foreign ones answered) the default is .073 / .033, their own level 0 / .104, half
    of the way 0 / .059.
    """
    floor = max(_logit(function.floor), _logit(judged_floor(own)) - function.margin)
    passed = _logit(float(np.quantile(np.asarray(foreign, dtype=np.float64), 1 - ACCEPTED, method="lower")))
    return 1.0 / (1.0 + math.exp(-min(floor, (floor + passed) / 2)))


def _logit(share: float) -> float:
    bounded = min(1.0 - 1e-12, max(1e-12, share))
    return math.log(bounded / (1.0 - bounded))


def foreign_questions(languages: Mapping[str, int]) -> list[str]:
    """Packaged questions in the languages that an index holds a good share of; English ones where there are none."""
    total = sum(languages.values())
    known = [code for code in sorted(FOREIGN) if languages.get(code, 0) >= LANGUAGE_SHARE * max(1, total)]
    return [text for code in known or ["en"] for text in FOREIGN[code]]


def own_questions(pinned: PinnedIndex, count: int = OWN) -> list[str]:
    """Questions made of the index's own sentences: of chunks spread evenly over the collection the longest sentence of
    `FEWEST_WORDS` to `MOST_WORDS` words, of which every fourth is asked. The same for any two indexes of the same files."""
    order = pinned.once("_order", lambda: np.argsort(pinned.universe.tie))  # place → ordinal
    if not len(order):
        return []
    places = np.unique(np.linspace(0, len(order) - 1, min(count, len(order))).round().astype(np.int64))
    questions = []
    for text in pinned.read_chunks(order[places], ["text"])["text"].to_pylist():
        sentences = [
            text[start:end].split()
            for line in line_spans(text, 0, len(text))
            for start, end in sentence_spans(text, *line)
        ]
        words: list[str] = max((one for one in sentences if len(one) <= MOST_WORDS), key=len, default=[])
        if len(words) >= FEWEST_WORDS:
            questions.append(" ".join(words[::EVERY]))
    return questions
