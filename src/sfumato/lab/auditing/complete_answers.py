"""Ask as a user does, from SQL to the answer, on both datasets of a pair, and compare what is not noise."""

from collections.abc import Iterator

from sfumato.answering.desk import Desk
from sfumato.errors import SfumatoError
from sfumato.lab.auditing.audit_stage import Setting, Stage, plan_question
from sfumato.lab.auditing.pair_maker import DatasetPair
from sfumato.lab.auditing.real_releases import RealRelease, check_releases, find_small_noise
from sfumato.lab.auditing.recorded_release import ExactIntegers, RecordingEngine, record_with
from sfumato.lab.auditing.upgraded_answers import FAULT, find_released, upgrade_answer

COMPLETE_RUNS = 3  # of the whole path, on each dataset of the hardest pair


def check_real_path(stage: Stage, sql: str, pair: DatasetPair, setting: Setting) -> Iterator[str]:
    """The faults of complete answers, and of the noise that the path of all answers adds."""
    yield from _compare_complete_runs(stage, sql, pair, setting)
    for part in setting.split(stage):
        yield from _check_releases(stage, sql, pair, part)


def _check_releases(stage: Stage, sql: str, pair: DatasetPair, setting: Setting) -> Iterator[str]:
    with setting.open(stage.dataset, pair.second) as desk:
        try:
            (plan,) = plan_question(desk, sql, setting).plans
            exact = ExactIntegers.read(desk.engine.aggregate(plan))
        except SfumatoError:
            return  # the same refusal as in the complete answers
        yield from (f"{pair.name}: {fault}" for fault in check_releases(desk, plan, exact))


def _compare_complete_runs(stage: Stage, sql: str, pair: DatasetPair, setting: Setting) -> Iterator[str]:
    """Ask as a user does, from SQL to the answer, and compare errors, columns, types, noise and stored answers."""
    forms: list[dict[str, set[str]]] = []
    releases: list[RealRelease] = []
    upgrades: list[RealRelease] = []
    asked = setting.complete(stage.query)
    for data in (pair.first, pair.second):
        kinds: dict[str, set[str]] = {}
        for _ in range(COMPLETE_RUNS):
            recorders: list[RecordingEngine] = []
            with setting.open(stage.dataset, data, record_with(setting.wrap, recorders)) as desk:
                shown = list(_ask_completely(desk, sql, asked))
                found = list(find_released(desk, recorders[0])) if recorders[0].measured else []
                if found:
                    upgraded = upgrade_answer(desk, sql, asked, recorders[0], found[0])
                    shown += upgraded.shown
                    upgrades += upgraded.releases
                releases += found
                for column, kind in shown:
                    kinds.setdefault(column, set()).add(kind)
        forms.append(kinds)
    yield from (f"{pair.name}: complete answers: {fault}" for fault in find_small_noise(releases))
    yield from (f"{pair.name}: upgrades: {fault}" for fault in find_small_noise(upgrades))
    for column in sorted({*forms[0], *forms[1]}):
        one, two = (form.get(column, set()) - {"NoneType"} for form in forms)
        if column == FAULT:
            yield from (f"{pair.name}: {fault}" for fault in sorted(one | two))
        elif one != two and (column.startswith("error") or (one and two)):
            yield f"{pair.name}: {column} is {sorted(one)} on one dataset and {sorted(two)} on the other."


def _ask_completely(desk: Desk, sql: str, setting: Setting) -> Iterator[tuple[str, str]]:
    """What an answer shows besides its numbers: columns with the types of their values, or an error."""
    try:
        answer = setting.ask(desk, sql)
    except SfumatoError as error:
        yield "error", f"{type(error).__name__}: {error.message}"
        return
    spent = desk.ledger.totals().spent
    again = setting.ask(desk, sql)
    if again.rows != answer.rows or desk.ledger.totals().spent != spent:
        yield FAULT, "The same question again is charged again, or its stored answer differs."
    yield "columns", repr(answer.columns)
    for row in answer.rows:
        yield from ((f"the type of {name}", type(value).__name__) for name, value in row.items())
