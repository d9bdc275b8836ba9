"""The device's ledger charges before a report is sent, once per answer, and never beyond a cap, whatever happens."""

import hashlib
import hmac
import json
import multiprocessing
import os
import signal
import sqlite3
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from make_vectors import BEGINS, FixedKey, whole_surveys
from scipy import stats

import sfumato as sf
from sfumato.errors import BudgetExceeded, CatalogError, InvalidParameter, LedgerError
from sfumato.kernel.exact import sum_exactly
from sfumato.local.mechanisms.permanent_coins import PermanentCoins
from sfumato.local.survey import device as device_module
from sfumato.local.survey import device_clock
from sfumato.local.survey.device import Caps, Device, find_default_place, write_permanent_purpose
from sfumato.local.survey.domains import draw_report
from sfumato.local.survey.new_survey import Renewal, new_survey
from sfumato.local.survey.signed_survey import Survey

FALSE_ALARM = 1e-6
KEY = FixedKey()
SURVEYS = dict(whole_surveys(KEY))


def at(days):
    return BEGINS + timedelta(days=days)


@pytest.fixture
def device(tmp_path):
    return tmp_path / "books" / "device.db"


@pytest.fixture
def clock(monkeypatch):
    """Set the device's clock to a day of the survey."""

    def turn(days):
        monkeypatch.setattr(device_module, "read_device_clock", lambda: at(days))
        return {"at": at(days)}

    return turn


def on(name, device):
    return Survey(SURVEYS[name].manifest, device)


def weekly(**changes):
    options = {"labels": list("abc"), "period_days": 7, "lifetime_epsilon": "2.5", "begins": BEGINS, **changes}
    return new_survey("Which?", epsilon=1, key=KEY, **options)


# charges


def test_a_report_is_charged_once_for_its_period_and_repeated_for_free(device):
    survey = on("categories", device)
    first = survey.report("c", at=at(1))
    assert first.epsilon == survey.epsilon
    assert not first.repeated
    again = survey.report("d", at=at(200))
    assert again.repeated
    assert again.epsilon == 0
    assert again.to_json() == first.to_json()
    assert json.loads(first.to_json()) == {"survey": survey.id, "period": 0, "id": first.id, "report": first.report}
    assert Device(device).sum_spent(survey.manifest, at(1)).lifetime == survey.epsilon


def test_every_period_costs_where_nothing_is_kept_until_the_lifetime_is_spent(device):
    survey = Survey(weekly().manifest, device)
    reports = [survey.report(0, at=at(7 * week)) for week in range(2)]
    assert [report.period for report in reports] == [0, 1]
    assert len({report.id for report in reports}) == 2
    with pytest.raises(BudgetExceeded) as caught:
        survey.report(0, at=at(14))
    assert caught.value.requested == survey.epsilon
    assert Decimal("0.5") <= caught.value.remaining < Decimal("0.5001")
    assert survey.report(1, at=at(8)).repeated


def test_a_kept_answer_costs_once_for_a_renewal(device):
    survey = on("two stages, rows", device)  # 30 days each, a lifetime for two
    Device(device).set_caps(per_survey=100)
    reports = [survey.report(day % 40, at=at(day)) for day in range(0, 60, 5)]
    assert [report.epsilon for report in reports] == [
        survey.longitudinal_epsilon if day in (0, 30) else 0 for day in range(0, 60, 5)
    ]
    assert len({report.report for report in reports}) == len(reports)
    with pytest.raises(BudgetExceeded, match="the survey's lifetime epsilon"):
        survey.report(0, at=at(61))


def test_what_is_charged_never_depends_on_the_answer(tmp_path):
    """Charges and refusals are the same for all answers."""
    histories = []
    for answers in ([0] * 9, list(range(9)), [3, 0, 3, 0, 3, 0, 3, 0, 3]):
        survey = on("two stages, k-ary", tmp_path / f"{answers}.db")
        costs = [survey.report(answer % 4, at=at(7 * week)).epsilon for week, answer in enumerate(answers)]
        with pytest.raises(BudgetExceeded):
            survey.report(answers[0] % 4, at=at(71))
        histories.append(costs)
    assert histories[0] == histories[1] == histories[2]


@pytest.mark.parametrize(
    ("cap", "words"),
    [("per_survey", "your cap for one survey"), ("per_month", "for thirty days"), ("lifetime", "your total cap")],
)
def test_each_cap_of_the_person_holds(device, cap, words):
    books = Device(device)
    assert books.caps() == Caps()
    books.set_caps(**{cap: "0.999"})
    with pytest.raises(BudgetExceeded, match=words):
        on("categories", device).report("a", at=at(1))
    assert books.sum_spent(SURVEYS["categories"].manifest, at(1)).lifetime == 0
    books.set_caps(**{cap: 1})
    on("categories", device).report("a", at=at(1))
    for wrong in (0, -1, "x", float("inf"), True):
        with pytest.raises(InvalidParameter):
            books.set_caps(**{cap: wrong})


def test_caps_are_over_all_surveys_and_months_pass(device, clock):
    books = Device(device)
    books.set_caps(per_month="1.2", lifetime="1.7")
    on("categories", device).report("a", **clock(1))
    with pytest.raises(BudgetExceeded):
        on("yes or no", device).report(True, **clock(30))
    on("yes or no", device).report(True, **clock(31))
    with pytest.raises(BudgetExceeded):
        on("questions", device).report([True, False, True], **clock(200))
    spent = books.sum_spent(SURVEYS["questions"].manifest, at(31))
    assert spent.survey == 0
    assert spent.month == SURVEYS["yes or no"].epsilon
    assert spent.lifetime == sum_exactly(SURVEYS["yes or no"].epsilon, SURVEYS["categories"].epsilon)


def test_what_is_left_is_exact_to_the_last_digit(device):
    """A cap of exactly two reports takes two; one unit less in the thirty-second digit takes one."""
    survey = Survey(weekly(lifetime_epsilon=3).manifest, device)
    two = sum_exactly(survey.epsilon, survey.epsilon)
    books = Device(device)
    books.set_caps(per_survey=sum_exactly(two, -Fraction(1, 10**32)))
    survey.report("a", at=at(1))
    with pytest.raises(BudgetExceeded):
        survey.report("a", at=at(8))
    books.set_caps(per_survey=two)
    survey.report("a", at=at(8))


def test_a_clock_that_goes_back_buys_nothing(device, clock):
    survey = Survey(weekly(lifetime_epsilon=9).manifest, device)
    Device(device).set_caps(per_survey=9, per_month="2.5")
    later = survey.report("a", **clock(20))
    survey.report("a", **clock(3))
    assert survey.report("b", **clock(20)).id == later.id
    with pytest.raises(BudgetExceeded):
        survey.report("a", **clock(10))  # charges of later days count too


def test_a_clock_that_was_set_back_and_is_right_again_buys_nothing(device, clock):
    """A charge is never older than the previous one, even if the clock was set back."""
    survey = Survey(weekly(lifetime_epsilon=9).manifest, device)
    Device(device).set_caps(per_survey=9, per_month="2.5")
    survey.report("a", **clock(50))
    survey.report("a", **clock(3))
    with pytest.raises(BudgetExceeded, match="your cap for thirty days"):
        survey.report("a", **clock(57))
    assert Device(device).sum_spent(survey.manifest, at(57)).month == sum_exactly(survey.epsilon, survey.epsilon)
    assert Device(device).sum_spent(survey.manifest, at(81)).month == 0
    survey.report("a", **clock(81))


def test_a_clock_that_is_set_forward_while_the_process_runs_does_not_end_the_month(device, monkeypatch):
    """The times that a caller gives, and a system clock that is set forward, choose periods. They buy no new month."""
    begun = datetime.now(UTC)
    monkeypatch.setattr(device_clock, "_CLOCK", device_clock._RunningClock())  # a process of its own
    survey = Survey(weekly(lifetime_epsilon=90, begins=begun - timedelta(days=300)).manifest, device)
    Device(device).set_caps(per_survey=90, per_month="2.5", lifetime=90)
    times = [begun + timedelta(days=7 * week) for week in range(-40, 8)]
    made = 0
    for moment in times:
        monkeypatch.setattr(device_clock, "datetime", set_clock(moment))
        try:
            survey.report("a", at=moment)
            made += 1
        except BudgetExceeded:
            pass
    assert made == 2
    monkeypatch.setattr(device_module, "read_device_clock", lambda: begun + timedelta(days=31))
    survey.report("a", at=times[-1])  # negative control: the device's own clock does end it


def set_clock(moment):
    class Clock(datetime):
        @classmethod
        def now(cls, tz=None):
            return moment + timedelta(days=60)

    return Clock


def test_an_announced_period_is_used_whatever_the_clock_says_and_bounds_the_month(device, clock):
    survey = Survey(weekly(lifetime_epsilon=9).manifest, device)
    Device(device).set_caps(per_survey=9, per_month="1.5")
    say = [KEY.announce(survey.manifest, at(7 * week)) for week in range(12)]
    assert survey.report("a", announcement=say[2], **clock(300)).period == 2
    clock(340)
    with pytest.raises(BudgetExceeded, match="thirty days"):
        survey.report("a", announcement=say[3])  # announced seven days later, whatever the clock says
    assert survey.report("a", announcement=say[8]).period == 8
    clock(60)
    with pytest.raises(BudgetExceeded, match="thirty days"):
        survey.report("a", announcement=say[11])  # a dishonest announcement does not end the month either


def test_announcements_of_others_are_refused(device):
    survey = Survey(weekly().manifest, device)
    with pytest.raises(CatalogError, match="not announced"):
        survey.report("a", announcement=KEY.announce(SURVEYS["categories"].manifest, at(1)))
    with pytest.raises(CatalogError, match="another key"):
        sf.local.SurveyKey().announce(survey.manifest, at(1))


def test_a_time_without_its_zone_is_refused(device):
    with pytest.raises(InvalidParameter, match="time zone"):
        on("categories", device).report("a", at=at(1).replace(tzinfo=None))
    assert Device(device).sum_spent(SURVEYS["categories"].manifest, at(1)).lifetime == 0


def test_the_refusal_says_whose_cap_it_was(device):
    dear = new_survey("Which?", labels=list("abc"), epsilon=6, key=KEY, begins=BEGINS)
    with pytest.raises(BudgetExceeded, match="4 is left of your cap for one survey"):
        Survey(dear.manifest, device).report("a", at=at(1))
    survey = Survey(weekly().manifest, device)
    for week in range(2):
        survey.report("a", at=at(7 * week))
    with pytest.raises(BudgetExceeded, match="of the survey's lifetime epsilon"):
        survey.report("a", at=at(14))


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE charges SET epsilon = '-1'",
        "UPDATE charges SET epsilon = 'NaN'",
        "UPDATE charges SET epsilon = 'x'",
        "UPDATE charges SET epsilon = X'00'",
        "UPDATE settings SET value = 'x' WHERE name = 'per_month'",
        "DELETE FROM settings WHERE name = 'lifetime'",
        "DELETE FROM settings WHERE name = 'secret'",
        "UPDATE settings SET value = '00' WHERE name = 'secret'",
        "UPDATE settings SET value = 'xy' WHERE name = 'secret'",
        "UPDATE settings SET value = 'sfumato-device 0' WHERE name = 'format'",
        "DROP TABLE charges",
    ],
)
def test_books_that_say_what_cannot_be_are_refused(change, device):
    survey = Survey(weekly(lifetime_epsilon=9, renewal=Renewal(2, 1)).manifest, device)
    survey.report("a", at=at(1))
    with sqlite3.connect(device) as books:
        books.execute(change)
    books.close()
    with pytest.raises(LedgerError) as caught:
        survey.report("a", at=at(8))
    assert caught.value.code == "device-ledger"


@pytest.mark.parametrize("record", ["", "{", "[]", '{"survey": 1}', '{"survey":"a","period":0,"id":"b","report":[]}'])
def test_a_kept_record_that_cannot_be_is_refused(record, device):
    survey = Survey(weekly(lifetime_epsilon=9, renewal=Renewal(2, 9)).manifest, device)
    survey.report("a", at=at(1))
    with sqlite3.connect(device) as books:
        books.execute("UPDATE reports SET record = ?", (record,))
        books.execute("UPDATE permanent SET report = ?", (record,))
    books.close()
    for day in (1, 8):
        with pytest.raises(LedgerError):
            survey.report("a", at=at(day))


def test_a_damaged_schema_is_refused(device):
    """Python's sqlite3 raises another error, because its message quotes the damaged file."""
    survey = on("categories", device)
    survey.report("a", at=at(1))
    whole = device.read_bytes()
    device.write_bytes(whole.replace(b"CREATE TABLE charges", b"CREATE TABLE\xd2charges", 1))
    with pytest.raises(LedgerError):
        survey.report("a", at=at(1))


def test_before_and_after_the_survey_nothing_is_charged(device):
    for day, code in ((-1, "survey-early"), (366, "survey-over")):
        with pytest.raises(CatalogError) as caught:
            on("categories", device).report("a", at=at(day))
        assert caught.value.code == code
    assert Device(device).sum_spent(SURVEYS["categories"].manifest, at(0)).lifetime == 0


# answers


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("categories", ["g", 6, -1, 1.5, None, True, b"a", [], float("nan")]),
        ("numbers", ["1", None, float("nan"), float("inf"), True, [1], 10**400, 1j]),
        ("questions", [[True, False], [1, 0, 1], "110", None, {"ä": True, "b": False}, {"ä": True, "b": True, "c": 1}]),
        ("yes or no", [2, "maybe", None]),
    ],
)
def test_what_is_no_answer_is_refused_and_not_quoted(name, wrong, device):
    for value in wrong:
        with pytest.raises(InvalidParameter) as caught:
            on(name, device).report(value, at=at(1))
        assert "maybe" not in str(caught.value)
    assert not device.exists()


def test_answers_may_be_said_in_several_ways():
    manifest = SURVEYS["categories"].manifest
    assert manifest.domain.read("c", manifest.permanent) == manifest.domain.read(np.int64(2), manifest.permanent) == 2
    manifest = SURVEYS["yes or no"].manifest
    assert [manifest.domain.read(answer, manifest.permanent) for answer in (True, "no", np.bool_(True))] == [1, 0, 1]
    manifest = SURVEYS["questions"].manifest
    several = (
        [True, False, True],
        (True, False, True),
        np.array([True, False, True]),
        {"c": True, "ä": True, "b": False},
    )
    assert {manifest.domain.read(answer, manifest.permanent) for answer in several} == {"05"}
    manifest = SURVEYS["numbers"].manifest
    for low, same in ((0, -5), (24, 1e300), (12, Decimal(12)), (12, np.float32(12))):
        assert manifest.domain.read(low, manifest.permanent) == manifest.domain.read(same, manifest.permanent)


@pytest.mark.parametrize("name", SURVEYS)
def test_reports_are_well_formed(name, tmp_path):
    values = {"numbers": 3.5, "repeated": 2, "questions": [True, True, False], "words": "abc", "bytes": "é", "delta": 7}
    value = values.get(name, 1)
    for person in range(10):
        Device(tmp_path / f"{person}.db").set_caps(delta="0.01")
        report = on(name, tmp_path / f"{person}.db").report(value, at=at(1))
        assert SURVEYS[name].table.form.decode([report.report])[1] == 0


# permanent reports


def test_the_stream_is_hmac_of_the_secret_and_of_what_it_is_about():
    stream = PermanentCoins(b"s" * 32, write_permanent_purpose("d" * 64, 3, 7))
    about = b'{"answer":7,"purpose":"sfumato permanent report 1","renewal":3,"survey":"' + b"d" * 64 + b'"}'
    key = hmac.new(b"s" * 32, about, hashlib.sha256).digest()
    expected = b"".join(hmac.new(key, number.to_bytes(8, "big"), hashlib.sha256).digest() for number in range(4))
    taken = b"".join(bytes(stream.take(count)) for count in (1, 0, 31, 32, 5, 40))
    assert taken == expected[:109]
    others = (("t", "d", 3, 7), ("s", "e", 3, 7), ("s", "d", 4, 7), ("s", "d", 3, 8), ("s", "d", 3, "7"))
    starts = {
        bytes(PermanentCoins(a.encode() * 32, write_permanent_purpose(b * 64, c, d)).take(32)) for a, b, c, d in others
    }
    assert len(starts | {expected[:32]}) == 6


def test_the_permanent_report_is_the_secrets_own_and_stays(device):
    survey = on("repeated", device)  # sent as it is, for four weeks
    reports = [survey.report(week, at=at(7 * week)).report for week in range(4)]
    assert len(set(reports)) == 1
    with sqlite3.connect(device) as books:
        (secret,) = books.execute("SELECT value FROM settings WHERE name = 'secret'").fetchone()
    books.close()
    manifest = survey.manifest
    answer = manifest.domain.read(0, manifest.permanent)
    stream = PermanentCoins(bytes.fromhex(secret), write_permanent_purpose(manifest.digest, 0, answer))
    assert reports[0] == draw_report(manifest.permanent, answer, stream)


def test_a_changed_answer_does_not_show_within_a_renewal(tmp_path):
    """A changed answer would show as a changed permanent report, so the first report of a renewal stays."""
    for person in range(20):
        survey = on("repeated", tmp_path / f"{person}.db")
        assert survey.report(-1.5, at=at(1)).report == survey.report(8, at=at(8)).report


def test_permanent_reports_over_many_secrets_follow_the_table():
    table, people = sf.local.randomiser("krr", k=4, epsilon=1), 20_000
    drawn = [
        draw_report(table, 2, PermanentCoins(person.to_bytes(32, "big"), write_permanent_purpose("d" * 64, 0, 2)))
        for person in range(people)
    ]
    true, other = (float(chance) for chance in table.support)
    assert stats.binomtest(drawn.count(2), people, true).pvalue > FALSE_ALARM
    assert stats.binomtest(drawn.count(0), people, other).pvalue > FALSE_ALARM
    assert stats.binomtest(drawn.count(2), people, true * 1.1).pvalue < FALSE_ALARM


# the file


def test_the_books_are_for_their_owner_alone_and_are_one_file(device):
    on("categories", device).report("a", at=at(1))
    assert device.stat().st_mode & 0o777 == 0o600
    assert os.listdir(device.parent) == ["device.db"]


def test_books_that_cannot_be_read_are_never_replaced(device):
    survey = on("categories", device)
    survey.report("a", at=at(1))
    whole = device.read_bytes()
    other = whole.replace(b"sfumato-device 2", b"sfumato-device 9")
    for damaged in (b"", b"nonsense" * 1000, whole[:3000], other):
        device.write_bytes(damaged)
        with pytest.raises(LedgerError) as caught:
            survey.report("a", at=at(1))
        assert caught.value.code == "device-ledger"
        assert device.read_bytes() == damaged


def test_a_failure_while_drawing_leaves_neither_charge_nor_report(device, monkeypatch):
    survey = on("two stages, k-ary", device)
    Device(device)
    before = device.read_bytes()
    monkeypatch.setattr(device_module, "_draw_again", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        survey.report("a", at=at(1))
    monkeypatch.undo()
    assert Device(device).sum_spent(survey.manifest, at(1)).lifetime == 0
    assert survey.report("a", at=at(1)).epsilon == survey.longitudinal_epsilon
    assert before != device.read_bytes()


def one_report(path, barrier, results):
    survey = on("categories", path)
    barrier.wait()
    results.put(survey.report("a", at=at(1)).to_json())


def test_racing_processes_make_one_report(device):
    context = multiprocessing.get_context("spawn")
    barrier, results = context.Barrier(3), context.Queue()
    racers = [context.Process(target=one_report, args=(device, barrier, results)) for _ in range(3)]
    for racer in racers:
        racer.start()
    lines = {results.get(timeout=60) for _ in racers}
    for racer in racers:
        racer.join()
    assert len(lines) == 1
    assert Device(device).sum_spent(SURVEYS["categories"].manifest, at(1)).lifetime == SURVEYS["categories"].epsilon


REPORT_FOREVER = """
import sys
from datetime import UTC, datetime, timedelta
from make_vectors import BEGINS, FixedKey
from sfumato.local.survey.new_survey import new_survey
from sfumato.local.survey.signed_survey import Survey
from sfumato.local.survey.device import Device
many = dict(period_days=1, lifetime_epsilon=1000, begins=BEGINS)
made = new_survey("?", epsilon=1, key=FixedKey(), labels=["a", "b"], **many)
Device(sys.argv[1]).set_caps(per_survey=1000, per_month=1000, lifetime=1000)
survey = Survey(made.manifest, sys.argv[1])
for day in range(365):
    print(survey.report("a", at=BEGINS + timedelta(days=day)).to_json(), flush=True)
"""


def test_whatever_left_before_a_kill_was_charged(device):
    """Every line that a killed process printed is in the device's ledger, with its charge."""
    folder = os.path.dirname(__file__)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((folder, *sys.path))}
    process = subprocess.Popen(
        [sys.executable, "-c", REPORT_FOREVER, str(device)], stdout=subprocess.PIPE, text=True, env=environment
    )
    first = process.stdout.readline()
    time.sleep(0.05)
    os.kill(process.pid, signal.SIGKILL)
    lines = [first, *process.stdout.readlines()]
    process.stdout.close()
    process.wait()
    whole = [line.strip() for line in lines if line.endswith("\n")]
    assert 1 <= len(whole) < 365
    with sqlite3.connect(device) as books:
        kept = {record for (record,) in books.execute("SELECT record FROM reports")}
        charges = books.execute("SELECT COUNT(*) FROM charges").fetchone()[0]
    books.close()
    assert set(whole) <= kept
    assert charges == len(kept) <= len(whole) + 1


def test_where_the_books_are(monkeypatch, tmp_path):
    monkeypatch.setenv("SFUMATO_DEVICE", str(tmp_path / "mine.db"))
    assert find_default_place() == tmp_path / "mine.db"
    Survey(weekly().manifest).report("a", at=at(1))
    assert (tmp_path / "mine.db").exists()
    monkeypatch.delenv("SFUMATO_DEVICE")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert find_default_place() == tmp_path / ".sfumato" / "device.db"


def test_a_survey_that_keeps_a_report_beyond_the_persons_cap_is_refused_before_it_is_made(device):
    survey = Survey(
        new_survey(
            "?", epsilon=1, key=KEY, labels=list("abc"), period_days=7, renewal=Renewal(5, 9), begins=BEGINS
        ).manifest,
        device,
    )
    with pytest.raises(BudgetExceeded):
        survey.report("a", at=at(1))


def test_a_cap_on_delta_is_kept_exactly(device):
    """Rounded up, it would allow a report above the cap."""
    for cap in ("0.00001234567890123456789012345678901234", "1e-6"):
        assert Device(device).set_caps(delta=cap).delta == Decimal(cap)
    assert Device(device).set_caps(delta=0).delta == 0
    for wrong in (1, "2", "-0.1"):
        with pytest.raises(sf.errors.InvalidParameter):
            Device(device).set_caps(delta=wrong)
