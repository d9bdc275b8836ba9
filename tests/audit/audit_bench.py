"""The made-up datasets of `make audit`: loaded once for all questions, accountings and engines that use them."""

import tempfile
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import ClassVar

from audited_engines import ENGINES

from sfumato.kernel.mechanisms import Noise
from sfumato.lab.auditing.audit_stage import Setting, Stage
from sfumato.lab.auditing.format_pairs import list_format_pairs
from sfumato.lab.auditing.neighbouring_pairs import list_pairs, list_random_pairs
from sfumato.lab.auditing.pair_maker import CROWD, DatasetPair, PairMaker
from sfumato.lab.auditing.question_pairs import make_question_pairs
from sfumato.lab.auditing.throwaway_desk import Load, PinnedRows

RANDOM_PAIRS = 2
SEED = 1


class Bench:
    """Pairs of a declaration, and those of the question that is audited now. They stay loaded while they are used."""

    tested: ClassVar[set[Noise]] = set()  # by this process: the draws of a noise do not depend on a declaration

    def __init__(self) -> None:
        self._open = ExitStack()
        self._folder = Path(self._open.enter_context(tempfile.TemporaryDirectory()))
        self._declared: dict[object, tuple[list[DatasetPair], list[DatasetPair]]] = {}
        self._asked: dict[object, tuple[list[DatasetPair], list[DatasetPair]]] = {}
        self._loads: dict[str, Load | None] = {}
        self.pinned = self._open.enter_context(PinnedRows())

    def __enter__(self) -> "Bench":
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def find_load(self, engine: str) -> Load | None:
        """How this engine loads tables; its server or session is started once."""
        if engine not in self._loads:
            offer = ENGINES[engine].offer
            self._loads[engine] = None if offer is None else self._open.enter_context(offer())
        return self._loads[engine]

    def find_pairs(self, declaration: object, question: object, stage: Stage, setting: Setting) -> "Pairs":
        """The pairs of a declaration and of a question about it. Equal names have equal pairs."""
        if declaration not in self._declared:
            folder = self._folder / f"{len(self._declared)}"
            folder.mkdir()
            parts = stage.tables, stage.public, stage.unit
            maker = PairMaker(*parts, Random(SEED))
            common = [*list_pairs(*parts, folder, SEED, formats=False), *list_random_pairs(*parts, RANDOM_PAIRS, SEED)]
            self._declared[declaration] = common, list(list_format_pairs(maker, maker.make_crowd(CROWD), folder))
        if (declaration, question) not in self._asked:
            kept = [pair for lists in self._declared.values() for pairs in lists for pair in pairs]
            self.pinned.drop(data for pair in kept for data in (pair.first, pair.second))
            self._asked = {(declaration, question): _ask_pairs(stage, replace(setting, pinned=None))}
        common, formats = self._declared[declaration]
        return Pairs(common, formats, *self._asked[declaration, question])


def _ask_pairs(stage: Stage, setting: Setting) -> tuple[list[DatasetPair], list[DatasetPair]]:
    """The pairs of a question, and its crowds."""
    own = list(make_question_pairs(stage, setting, SEED, crowds=False))
    names = {pair.name for pair in own}
    return own, [pair for pair in make_question_pairs(stage, setting, SEED) if pair.name not in names]


class Pairs:
    """The pairs of a question: of its declaration, in every format of a source, its own, and of crowds."""

    def __init__(
        self,
        common: list[DatasetPair],
        formats: list[DatasetPair],
        own: list[DatasetPair],
        crowds: list[DatasetPair],
    ) -> None:
        self._common, self._formats, self._own, self._crowds = common, formats, own, crowds

    def alternate(self, first: int) -> "Pairs":
        """Every other pair of the declaration. The next question has the others. Both have the two that are sampled."""
        return Pairs([*self._common[:2], *self._common[2 + first :: 2]], self._formats, self._own, self._crowds)

    def choose(self, every: int, *, all_of_its_own: bool, formats: bool, crowds: bool) -> list[DatasetPair]:
        """One of `every` pairs, or all of the question's own. How a source is read depends neither on the question nor
        on the accounting, and what an engine measures of a crowd does not depend on the accounting.
        """
        own = self._own if all_of_its_own else self._own[::every]
        return [
            *self._common[::every], *(self._formats if formats else ()), *own, *(self._crowds if crowds else ()),
        ]  # fmt: skip
