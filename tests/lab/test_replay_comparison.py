"""Each rule of a replay's comparison notices its fault: the recordings of a real run, altered in one place."""

from dataclasses import replace
from fractions import Fraction

import pytest

import sfumato as sf
from sfumato.catalog.dataset import Dataset, Table
from sfumato.kernel.mechanisms import LaplaceNoise
from sfumato.kernel.sensitivity import Sensitivity
from sfumato.lab.auditing.audit_stage import Setting, set_stage
from sfumato.lab.auditing.query_replay import record_run
from sfumato.lab.auditing.question_pairs import make_pairs
from sfumato.lab.auditing.recorded_release import RecordedEntropy
from sfumato.lab.auditing.replay_comparison import compare_recordings

COLUMNS = {"person": sf.Id(), "cost": sf.Real(-5, 500), "city": sf.Category(["Rome", "Oslo"]), "job": sf.Text()}
GROUPED = "SELECT city, COUNT(*) AS n, SUM(cost) AS s FROM t GROUP BY city"
BY_JOB = "SELECT job, COUNT(*) AS n FROM t GROUP BY job"


def record(sql, folder):
    dataset = Dataset("t", [Table("t", None, "person", COLUMNS, 2, 2)], sf.Budget(epsilon=3, delta="0.01"))
    stage = set_stage(dataset, sql)
    pair = next(make_pairs(stage, folder, 0, 3))
    tape = RecordedEntropy()
    first = record_run(stage.dataset, sql, pair.first, Setting(epsilon="0.001"), tape)  # so little that all noise shows
    tape.rewind()
    return first, record_run(stage.dataset, sql, pair.second, Setting(epsilon="0.001"), tape)


@pytest.fixture(scope="module")
def grouped(tmp_path_factory):
    return record(GROUPED, tmp_path_factory.mktemp("grouped"))


@pytest.fixture(scope="module")
def by_job(tmp_path_factory):
    return record(BY_JOB, tmp_path_factory.mktemp("by_job"))


def faults(first, second):
    return " ".join(compare_recordings(first, second, rows_are_fixed=True).faults)


def change_release(run, change):
    """The run with other released integers of its first measurement."""
    name = next(iter(run.released.integers))
    cells = tuple(change(run.released.integers[name], run.measured[0].integers[name]))
    return replace(run, released=replace(run.released, integers={**run.released.integers, name: cells}))


def change_certificate(run, **changes):
    """The run with another first measurement in its certificate."""
    first, *others = run.certificate.measurements
    return replace(run, certificate=replace(run.certificate, measurements=(replace(first, **changes), *others)))


def test_a_real_pair_shows_nothing(grouped, by_job):
    assert faults(*grouped) == ""
    assert compare_recordings(*grouped, rows_are_fixed=True).share > 0
    first, second = by_job
    assert compare_recordings(first, second, rows_are_fixed=False).faults == ()


def test_an_entry_without_noise_is_noticed(grouped):
    bare = [change_release(run, lambda noisy, exact: (*noisy[:-1], exact[-1])) for run in grouped]
    assert "got no noise" in faults(*bare)


def test_a_release_without_noise_is_noticed(grouped):
    bare = [change_release(run, lambda noisy, exact: exact) for run in grouped]
    assert "no noise was added" in faults(*bare)


def test_noise_that_depends_on_the_data_is_noticed(grouped):
    first, second = grouped
    other = change_release(second, lambda noisy, exact: (noisy[0] + 1, *noisy[1:]))
    assert "the noise depends on the data" in faults(first, other)


def test_another_number_of_draws_is_noticed(grouped):
    first, second = grouped
    assert "number of noise draws" in faults(first, replace(second, bytes_taken=second.bytes_taken + 8))


def test_integers_that_move_too_far_are_noticed(grouped):
    first, second = grouped
    small = Sensitivity(Fraction(1), Fraction(1))
    found = faults(*(change_certificate(run, sensitivity=small) for run in (first, second)))
    assert "in L1" in found
    assert "in squared L2" in found


def test_noise_that_does_not_pay_is_noticed(grouped):
    """The scale is the sensitivity instead of sensitivity / epsilon."""
    runs = [
        change_certificate(run, noise=LaplaceNoise(run.certificate.measurements[0].sensitivity.l1)) for run in grouped
    ]
    assert "does not pay" in faults(*runs)


def test_a_scale_that_depends_on_the_data_is_noticed(grouped):
    first, second = grouped
    scale = 2 * second.certificate.measurements[0].noise.scale
    assert "certificates differ" in faults(first, change_certificate(second, noise=LaplaceNoise(scale)))


def test_a_forgotten_part_of_the_loss_is_noticed(grouped):
    part = grouped[0].certificate.measurements[0].loss
    runs = [replace(run, certificate=replace(run.certificate, loss=part)) for run in grouped]
    assert "do not add up" in faults(*runs)


def test_another_charge_is_noticed(grouped):
    first, second = grouped
    runs = [replace(run, spent=sf.ApproxDP("0.0001", 0)) for run in grouped]
    assert "charged another loss" in faults(*runs)
    assert "charges differ" in faults(first, replace(second, spent=sf.ApproxDP("0.0001", 0)))


def test_another_number_of_measurements_is_noticed(grouped):
    first, second = grouped
    assert "number of measurements" in faults(first, replace(second, measured=second.measured * 2))


def test_errors_of_one_dataset_are_noticed(grouped):
    first, second = grouped
    assert "Errors differ" in faults(first, replace(second, error="EngineFailed: …"))
    same = [replace(run, error="QueryError: …", released=None) for run in grouped]
    assert faults(*same) == ""


def test_the_form_of_the_answer_is_compared(grouped):
    first, second = grouped
    answer = second.answer
    fewer = replace(answer, rows=answer.rows[:1])
    assert "number of rows" in faults(first, replace(second, answer=fewer))
    texts = replace(answer, rows=[{**row, "n": str(row["n"])} for row in answer.rows])
    assert "n: the types" in faults(first, replace(second, answer=texts))
    assert "columns" in faults(first, replace(second, answer=replace(answer, columns=("city", "n"))))
    other = replace(first, answer=replace(first.answer, rows=[{**row, "n": 0} for row in first.answer.rows]))
    assert "though the released integers are the same" in faults(first, other)


def test_released_keys_are_checked(by_job):
    first, second = by_job
    (keys,) = (measured for measured in first.certificate.measurements if measured.threshold is not None)

    def release_key(key, noisy):
        integers = dict.fromkeys(second.released.integers, (noisy,))
        released = replace(second.released, keys=(key,), integers=integers)
        return replace(second, released=released, answer=None, tape=None)

    held = second.measured[0].keys[0]
    nobody = release_key(("nobody's",), keys.threshold)
    assert "no counted person holds" in faults(replace(first, answer=None), nobody)
    assert "below its threshold" in faults(replace(first, answer=None), release_key(held, keys.threshold - 1))
    released = release_key(held, keys.threshold)
    assert faults(replace(first, answer=None), released) == ""
    recorded = replace(released, tape=second.tape)  # other noise than this was recorded
    assert "released keys are not those" in faults(replace(first, answer=None), recorded)


def test_a_person_counts_once_for_a_key(by_job):
    first, second = by_job
    (keys,) = (measured for measured in first.certificate.measurements if measured.threshold is not None)
    exact = second.measured[0]
    twice = {**exact.integers, keys.name: (exact.integers[keys.name][0] + 2, *exact.integers[keys.name][1:])}
    other = replace(second, measured=(replace(exact, integers=twice),))
    found = faults(first, other)
    assert "more than once" in found or "in squared L2" in found  # people, or weights
