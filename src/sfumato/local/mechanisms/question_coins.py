"""Yes-or-no questions with one keep coin: answer all of them, or one that is drawn uniformly.

Part of the trusted perimeter.
"""

from fractions import Fraction

import numpy as np
import numpy.typing as npt

from sfumato.kernel.coins import BoolArray
from sfumato.kernel.entropy import Entropy
from sfumato.kernel.samplers import uniform_below
from sfumato.local.mechanisms.coin_tables import flip_units
from sfumato.local.mechanisms.kary import Kary


def compute_questions_ratio(answered: int, keep: int) -> Fraction:
    """The greatest ratio of a report that answers so many questions.

    Claim: K-48. No report is more than max(result, 1/result) times as likely for one row of answers as for another.
    Requires: answered >= 1 and 0 < keep < 2**32 (caller).
    Relies on: K-40.
    Checked by: tests/local/test_questions.py::test_the_loss_over_all_pairs_of_answers
    """
    return Kary(2, keep).ratio ** answered


def answer_all(answers: BoolArray, keep: int, entropy: Entropy) -> npt.NDArray[np.uint8]:
    """Randomise every answer of each person (a row); the report is the row's bits, eight to a byte.

    Claim: K-48. Each answer is reported truthfully with probability keep / 2**32, independently.
    Requires: answers of shape (people, questions) (caller).
    Relies on: K-40.
    Checked by: tests/local/test_questions.py::test_each_answer_is_reported_with_the_keep_coin
    """
    kept = flip_units(keep, answers.size, entropy).reshape(answers.shape)
    return np.packbits(answers == kept, axis=1, bitorder="little")


def answer_one(answers: BoolArray, keep: int, entropy: Entropy) -> npt.NDArray[np.int64]:
    """Draw one question for each person (a row), and randomise that answer; the report is 2 * question + answer.

    Claim: K-48. The question is uniform and independent of the answers; its answer is truthful with keep / 2**32.
    Requires: answers of shape (people, questions) (caller).
    Relies on: K-07, K-40.
    Checked by: tests/local/test_questions.py::test_each_answer_is_reported_with_the_keep_coin
    """
    people, questions = answers.shape
    asked = uniform_below(questions, people, entropy)
    kept = flip_units(keep, people, entropy)
    reports: npt.NDArray[np.int64] = 2 * asked + (answers[np.arange(people), asked] == kept)
    return reports
