"""Survey documents: one canonical text, a signature, and an epsilon that the device computes itself."""

import json
import threading
import time
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.request import Request

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from make_vectors import BEGINS, FixedKey, altered, signed, whole_surveys

import sfumato as sf
from sfumato.errors import CatalogError, InvalidParameter, SfumatoError
from sfumato.local.survey import fetch as fetch_module
from sfumato.local.survey.canonical_json import MOST_WHOLE, NotCanonical, parse_canonical, write_canonical
from sfumato.local.survey.manifest import MOST_BYTES, read_manifest
from sfumato.local.survey.new_survey import Renewal, SurveyKey, new_survey
from sfumato.local.survey.survey_refusals import REFUSALS

KEY = FixedKey()
SURVEYS = dict(whole_surveys(KEY))
DOCUMENTS = {name: survey.manifest.to_bytes() for name, survey in SURVEYS.items()}
STATEMENTS = {name: json.loads(data)["survey"] for name, data in DOCUMENTS.items()}

TEXTS = st.text(st.characters(exclude_categories=("Cs",)), max_size=8)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-MOST_WHOLE, MOST_WHOLE) | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)


def code_of(data):
    with pytest.raises(CatalogError) as caught:
        read_manifest(data)
    assert (caught.value.message, caught.value.hint) == REFUSALS[caught.value.code]
    return caught.value.code


# one text


def test_names_stand_in_the_order_of_the_standard():
    """The example of RFC 8785, section 3.2.3, with whole numbers in place of texts."""
    names = ["\u20ac", "\r", "\ufb33", "1", "\U0001f600", "\u0080", "\u00f6"]
    order = ["\r", "1", "\u0080", "\u00f6", "\u20ac", "\U0001f600", "\ufb33"]
    assert list(json.loads(write_canonical(dict.fromkeys(names, 0)))) == order
    assert (
        write_canonical({"\r": '\u20ac$\x0f\nA\'B"\\\\"/'}) == b'{"\\r":"\xe2\x82\xac$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}'
    )


@given(JSON)
def test_the_canonical_text_reads_back_and_no_other_text_is_taken(value):
    text = write_canonical(value)
    assert parse_canonical(text) == value
    assert parse_canonical(write_canonical(parse_canonical(text))) == value
    for other in (json.dumps(value).encode(), json.dumps(value, indent=1).encode(), b" " + text, text + b"\n"):
        if other != text:
            with pytest.raises(NotCanonical):
                parse_canonical(other)


@pytest.mark.parametrize("value", [1.5, 1 << 53, float("nan"), b"", {1: 2}, {"a": {"b": 0.0}}, "\ud800", {"\ud800": 1}])
def test_what_has_no_canonical_text_is_refused(value):
    with pytest.raises(NotCanonical):
        write_canonical(value)


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(data):
    with suppress(NotCanonical):
        assert write_canonical(parse_canonical(data)) == data


# loading


def test_a_survey_is_loaded_from_a_file(tmp_path):
    path = tmp_path / "survey.json"
    path.write_bytes(DOCUMENTS["two stages, k-ary"])
    survey = sf.Survey.load(path, public_key=KEY.public_key)
    assert survey.question == "Which?"
    assert survey.verify(KEY.public_key)
    assert not survey.verify(SurveyKey().public_key)
    assert not survey.verify("nonsense")
    assert not survey.verify(None)
    assert Decimal("0.99999") < survey.epsilon <= 1
    assert Decimal("1.99999") < survey.longitudinal_epsilon <= 2
    assert survey.manifest.to_bytes() == DOCUMENTS["two stages, k-ary"]
    assert "survey" in repr(survey)
    with pytest.raises(CatalogError) as caught:
        sf.Survey.load(str(path), public_key=SurveyKey().public_key)
    assert caught.value.code == "survey-key"
    with pytest.raises(FileNotFoundError):
        sf.Survey.load(tmp_path / "none.json")


@pytest.mark.parametrize("name", SURVEYS)
def test_the_persons_cap_is_on_what_an_answer_costs(name, tmp_path):
    path = tmp_path / "survey.json"
    path.write_bytes(DOCUMENTS[name])
    price = SURVEYS[name].longitudinal_epsilon
    assert sf.Survey.load(path, cap=price).longitudinal_epsilon == price
    with pytest.raises(CatalogError) as caught:
        sf.Survey.load(path, cap=price - Decimal("1e-20"))
    assert caught.value.code == "survey-cap"
    for wrong in ("0", -1, "x", float("nan"), True):
        with pytest.raises(InvalidParameter):
            sf.Survey.load(path, cap=wrong)


class Page(BaseHTTPRequestHandler):
    def drip(self, text):
        with suppress(OSError):
            for byte in text * 20:
                self.wfile.write(bytes([byte]))
                time.sleep(0.1)

    def do_GET(self):
        if self.path == "/slow-headers":
            self.wfile.write(b"HTTP/1.0 200 OK\r\n")
            return self.drip(b"X: y\r\n")
        if self.path == "/slow":
            self.send_response(200)
            self.end_headers()
            return self.drip(b"{    }")
        pages = {"/survey": DOCUMENTS["categories"], "/huge": b" " * (MOST_BYTES + 100)}
        if self.path == "/elsewhere":
            self.send_response(302)
            self.send_header("Location", "/survey")
        else:
            self.send_response(200 if self.path in pages else 404)
        self.end_headers()
        self.wfile.write(pages.get(self.path, b""))

    def log_message(self, *_):
        pass


@pytest.fixture
def server():
    made = ThreadingHTTPServer(("127.0.0.1", 0), Page)
    made.daemon_threads, made.block_on_close = True, False
    thread = threading.Thread(target=made.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{made.server_port}"
    made.shutdown()
    thread.join()
    made.server_close()


def test_a_survey_is_fetched_with_a_limit(server, monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    assert sf.Survey.load(f"{server}/survey", public_key=KEY.public_key).question == "Which?"
    assert sf.Survey.load(f"{server}/elsewhere", public_key=KEY.public_key).question == "Which?"
    for path, options, code in (
        ("/survey", {}, "survey-address"),
        ("/huge", {"public_key": KEY.public_key}, "survey-size"),
        ("/none", {"public_key": KEY.public_key}, "survey-unreachable"),
    ):
        with pytest.raises(SfumatoError) as caught:
            sf.Survey.load(server + path, **options)
        assert caught.value.code == code
    with pytest.raises(SfumatoError) as caught:
        sf.Survey.load("http://127.0.0.1:1/", public_key=KEY.public_key)
    assert caught.value.code == "survey-unreachable"
    with pytest.raises(SfumatoError) as caught:
        sf.Survey.load("https://:/", public_key=KEY.public_key)
    assert caught.value.code == "survey-unreachable"


def test_every_step_to_a_survey_is_safe(server):
    """An https address that leads through http, or to another kind of address, is as bad as http."""
    with pytest.raises(SfumatoError) as caught:
        sf.Survey.load(f"{server}/elsewhere")
    assert caught.value.code == "survey-address"
    request = Request("https://example.org/survey")
    strict, known = fetch_module._Redirects(secure=True), fetch_module._Redirects(secure=False)
    for address, both in (("https://example.org/x", True), ("http://example.org/x", False)):
        assert known.redirect_request(request, None, 302, "", {}, address).full_url == address
        if both:
            assert strict.redirect_request(request, None, 302, "", {}, address).full_url == address
        else:
            with pytest.raises(fetch_module._InsecureStepError):
                strict.redirect_request(request, None, 302, "", {}, address)
    for address in ("ftp://example.org/x", "file:///etc/hosts", "data:,x"):
        with pytest.raises(fetch_module._InsecureStepError):
            known.redirect_request(request, None, 302, "", {}, address)


def test_an_address_is_one_however_it_is_written(server, monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    loud = server.replace("http://", "HTTP://")
    assert sf.Survey.load(f"{loud}/survey", public_key=KEY.public_key).question == "Which?"
    with pytest.raises(SfumatoError) as caught:
        sf.Survey.load(f"{loud}/survey")
    assert caught.value.code == "survey-address"


@pytest.mark.parametrize("path", ["/slow", "/slow-headers"])
def test_a_server_that_drips_is_not_waited_for(path, server, monkeypatch):
    """Each byte arrives within the time limit, but all of them together would not."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setattr(fetch_module, "TIMEOUT", 0.5)
    started = time.perf_counter()
    with pytest.raises(SfumatoError) as caught:
        sf.Survey.load(server + path, public_key=KEY.public_key)
    assert caught.value.code == "survey-unreachable"
    assert time.perf_counter() - started < 5


# refusing


def test_altered_documents_are_refused_for_the_reason():
    """The documents of the shared vectors: what they must be refused for is read here from their names."""
    expected = {
        "spaces": "form", "huge": "size", "unsigned": "form", "question altered": "signature",
        "table altered": "signature", "version 4": "version", "another id": "id", "a bolder table, signed": "epsilon",
        "a coin of zero": "table", "a coin of all": "table", "without memoise": "field", "an unknown field": "field",
        "memoise 2 of two stages": "epsilon", "memoise 9 of two stages": "epsilon", "lifetime_epsilon 1": "epsilon",
        "public_key: one digit": "signature", "mean 15": "table", "mean 26": "table", "question 5": "epsilon",
        "noise 0": "table", "noise 1": "delta", "noise 18": "delta", "delta 0": "delta",
    }  # fmt: skip
    found = dict(altered(KEY))
    for name, reason in expected.items():
        assert code_of(found[name]) == f"survey-{reason}", name
    for name in ("a bolder table, stated", "a shyer table", "mean 16"):
        assert read_manifest(found[name])


@pytest.mark.parametrize("name", SURVEYS)
def test_every_single_changed_bit_is_refused(name):
    data = DOCUMENTS[name]
    for place in range(len(data)):
        changed = bytearray(data)
        changed[place] ^= 1 << place % 8
        assert code_of(bytes(changed)) in {"survey-form", "survey-version", "survey-signature"}


def test_the_table_is_checked_and_not_what_is_stated():
    """A table above the stated epsilon is refused, by one unit as well as by a hundred."""
    statement = json.loads(json.dumps(STATEMENTS["yes or no"]))
    keep = statement["mechanism"]["coins"]["keep"]
    for units, taken in ((keep, True), (keep + 1, False), (keep + (1 << 24), False)):
        statement["mechanism"]["coins"]["keep"] = units
        data = signed(KEY, statement)
        if taken:
            assert read_manifest(data).table.epsilon <= Decimal("0.5")
        else:
            assert code_of(data) == "survey-epsilon"


@settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.sampled_from(sorted(STATEMENTS)), st.data())
def test_signed_nonsense_is_refused_or_costs_what_it_states(name, data):
    """Whatever a signer writes: the document is refused with a constant text, or its table keeps the stated epsilon."""
    statement = json.loads(json.dumps(STATEMENTS[name]))
    for _ in range(data.draw(st.integers(1, 3))):
        parent, key = data.draw(st.sampled_from(places(statement)))
        choices = JSON | st.sampled_from([0, 1, 2, 1 << 31, (1 << 32) - 1, 1 << 32, "1", "0.5", "9", None])
        parent[key] = data.draw(choices)
    document = signed(KEY, statement, renamed=data.draw(st.booleans()))
    try:
        found = read_manifest(document)
    except CatalogError as refused:
        assert refused.code in REFUSALS
        assert (refused.message, refused.hint) == REFUSALS[refused.code]
        return
    assert found.table.epsilon <= found.epsilon
    assert found.price <= (found.epsilon if found.memo is None else found.memo.epsilon)
    assert found.price <= found.lifetime_epsilon


def places(value):
    """Every place in a document that holds a value."""
    keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else []
    return [(value, key) for key in keys] + [place for key in keys for place in places(value[key])]


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=300), st.integers(0, 600), st.integers(0, 40))
def test_cut_and_mixed_bytes_are_refused(noise, start, length):
    data = DOCUMENTS["categories"]
    mixed = data[:start] + noise + data[start + length :]
    if mixed.removesuffix(b"\n") != data.removesuffix(b"\n"):
        assert code_of(mixed).startswith("survey-")


def test_deep_and_long_documents_are_refused_quickly():
    for data in (b"[" * 2_000_000, b'{"a":' * 500_000, b"9" * 4_000_000, b'"' + b"x" * MOST_BYTES):
        assert code_of(data) in {"survey-form", "survey-size"}


# making


def test_surveys_are_made_with_the_table_of_least_variance():
    assert SURVEYS["categories"].table.name == sf.local.choose(6, 1).name
    assert SURVEYS["yes or no"].table.name == "rr"
    assert SURVEYS["numbers"].table.name == "hybrid"
    many = new_survey("Which?", epsilon=1, key=KEY, labels=[str(label) for label in range(100)], most_bits=16)
    assert many.table.name == "olh"
    staged = SURVEYS["two stages, k-ary"].table
    assert staged.name == "memoised krr"
    wide = new_survey(
        "?", epsilon=1, key=KEY, labels=[f"{label}" for label in range(100)], period_days=1, renewal=Renewal(2, 9)
    )
    assert wide.table.name in {"memoised oue", "memoised sue"}


def test_periods_are_counted_from_the_beginning():
    manifest = SURVEYS["two stages, k-ary"].manifest  # 365 days of 7 days each
    assert manifest.periods == 53
    assert manifest.period_at(BEGINS) == 0
    assert manifest.period_at(BEGINS + timedelta(days=7, seconds=-1)) == 0
    assert manifest.period_at(BEGINS + timedelta(days=7)) == 1
    assert manifest.period_at(BEGINS + timedelta(days=364, hours=23)) == 52
    for days, code in ((-1, "survey-early"), (365, "survey-over")):
        with pytest.raises(CatalogError) as caught:
            manifest.period_at(BEGINS + timedelta(days=days))
        assert caught.value.code == code
    assert SURVEYS["categories"].manifest.period_at(BEGINS + timedelta(days=300)) == 0


@pytest.mark.parametrize(
    "wrong",
    [
        {}, {"labels": ["a", "b"], "bounds": (0, 1)}, {"labels": ["a"]}, {"labels": ["a", "a"]}, {"labels": ["a", ""]},
        {"labels": ["a", "b"], "epsilon": 0}, {"labels": ["a", "b"], "minimum_batch": 0}, {"bounds": (1, 0)},
        {"labels": ["a", "b"], "period_days": -1}, {"labels": ["a", "b"], "days": 0}, {"questions": []},
        {"labels": ["a", "b"], "lifetime_epsilon": "0.5"}, {"labels": ["a", "b"], "endpoint": "http://x"},
        {"labels": ["a", "b"], "renewal": Renewal(2, 5)}, {"labels": ["a", "b"], "mechanism": "nonsense"},
        {"labels": ["a", "b", "c"], "mechanism": "olh", "renewal": Renewal(2, 5), "period_days": 1},
        {"labels": ["a", "b"], "renewal": Renewal(2, 0), "period_days": 1},
    ],
)  # fmt: skip
def test_what_cannot_be_a_survey_is_not_made(wrong):
    with pytest.raises(SfumatoError):
        new_survey("Which?", **{"epsilon": 1, "key": KEY, **wrong})


def test_the_key_is_kept_for_its_owner_alone(tmp_path):
    path = tmp_path / "survey.key"
    first, second = SurveyKey(path), SurveyKey(path)
    assert first.public_key == second.public_key
    assert path.stat().st_mode & 0o777 == 0o600
    assert SurveyKey().public_key != SurveyKey().public_key
    path.write_text("nonsense")
    with pytest.raises(CatalogError):
        SurveyKey(path)


def test_a_survey_begins_now_and_its_id_is_of_its_content():
    first = new_survey("Which?", epsilon=1, key=KEY, labels=["a", "b"], begins=BEGINS)
    assert first.id == new_survey("Which?", epsilon=1, key=KEY, labels=["a", "b"], begins=BEGINS).id
    assert first.id != new_survey("Whose?", epsilon=1, key=KEY, labels=["a", "b"], begins=BEGINS).id
    now = new_survey("Which?", epsilon=1, key=KEY, labels=["a", "b"])
    assert now.manifest.period_at(datetime.now(UTC)) == 0
