"""Register, Surveys and Lab: what an owner declares, what nobody else may see, and names that are not paths or HTML."""

import io
import json
import re

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fastapi.testclient import TestClient
from served_clinic import make_clinic

from sfumato.local.survey.manifest import read_manifest
from sfumato.service.accounts import Accounts
from sfumato.service.api import make_app
from sfumato.service.service_settings import ServiceSettings
from sfumato.service.service_shell import POLICY

OWN = {"origin": "http://testserver"}
CSV = "pid,age,city,cost\n" + "\n".join(
    f"{i % 80},{20 + i % 60},{'Rome' if i % 3 else 'Oslo'},{i}.5" for i in range(400)
)
HOSTILE = '"><script>alert(1)</script>'


@pytest.fixture
def clinic(tmp_path):
    return make_clinic(tmp_path / "clinic")


@pytest.fixture
def app(clinic, tmp_path):
    (tmp_path / "files" / "inner").mkdir(parents=True)
    (tmp_path / "files" / "inner" / "visits.csv").write_text(CSV)
    (tmp_path / "files" / "notes.txt").write_text("no")
    (tmp_path / "outside.csv").write_text(CSV)
    return make_app(
        [clinic.folder],
        clinic.accounts,
        ServiceSettings((), "", sources=str(tmp_path / "files"), most_upload_bytes=1 << 20),
    )


@pytest.fixture
def sign_in(app):
    opened = []

    def sign_in(name):
        client = TestClient(app, raise_server_exceptions=False)
        client.__enter__()
        opened.append(client)
        link = app.state.sessions.make_link(name)
        assert client.post(f"/signin/{link}", headers=OWN, follow_redirects=False).status_code == 303
        client.csrf = re.search(r'name="csrf" value="([0-9a-f]{64})"', client.get("/").text)[1]
        return client

    yield sign_in
    for client in opened:
        client.__exit__(None, None, None)


@pytest.fixture
def olga(sign_in):
    return sign_in("olga")


def post(client, address, files=None, **form):
    return client.post(address, data={"csrf": client.csrf, **form}, files=files, headers=OWN, follow_redirects=False)


def begin(client, dataset="hospital", table="visits"):
    begun = post(client, "/register", dataset=dataset, table=table)
    assert begun.status_code == 303, begun.text
    return begun.headers["location"]


def upload(client, place, content=CSV, name="visits.csv"):
    return post(client, f"{place}/source", files={"file": (name, content)})


COLUMNS = {
    "kind-0": "id", "kind-1": "integer", "lower-1": "0", "upper-1": "120", "kind-2": "category",
    "values-2": "Rome, Oslo", "kind-3": "real", "lower-3": "0", "upper-3": "300",
}  # fmt: skip


def register(client, **names):
    place = begin(client, **names)
    assert upload(client, place).status_code == 303
    assert post(client, f"{place}/people", unit="pid", max_rows="5", max_groups="1").status_code == 303
    assert post(client, f"{place}/columns", action="next", **COLUMNS).status_code == 303
    assert post(client, f"{place}/budget", epsilon="2", delta="1e-6", accounting="basic").status_code == 303
    return place


def test_an_owner_registers_a_dataset_grants_and_an_analyst_asks(olga, sign_in, clinic):
    place = register(olga)
    shown = olga.get(f"{place}?step=columns").text
    assert "400 records read" in shown
    assert "clamped" in shown
    review = olga.get(f"{place}?step=review").text
    assert "[tables.visits]" in review
    assert "max_rows_per_unit = 5" in review
    done = post(olga, f"{place}/review")
    assert done.headers["location"].startswith("/datasets/hospital")
    assert "Rome, Oslo" in olga.get("/datasets/hospital").text
    assert olga.get(place).status_code == 403, "the draft is gone"
    assert post(olga, "/datasets/hospital/grants", user="ann", epsilon="1", action="set").status_code == 303
    ann = sign_in("ann")
    asked = post(ann, "/datasets/hospital/ask", sql="SELECT COUNT(*) AS n FROM visits", epsilon="0.5", action="ask")
    assert asked.headers["location"].startswith("/answers/")
    log = [line["action"] for line in Accounts(clinic.accounts).list_log()]
    assert "register dataset" in log


def test_the_budget_step_shows_odds_and_errors_of_the_declarations(olga):
    place = register(olga)
    shown = post(olga, f"{place}/budget:preview", epsilon="2", delta="1e-6", accounting="basic", people="400").text
    assert "at most 88.1" in shown
    assert "± 150" in shown  # 5 rows, epsilon 0.2: 5 / 0.2 * ln 20 = 75, and half of epsilon pays for the count
    more = post(olga, f"{place}/budget:preview", epsilon="2", delta="1e-6", accounting="zcdp", people="400").text
    assert "± 1" in more
    assert 'role="alert"' in post(olga, f"{place}/budget:preview", epsilon="x", delta="", accounting="basic").text


def test_a_path_never_leads_out_of_the_folder_of_sources(olga, tmp_path):
    place = begin(olga)
    assert "inner/visits.csv" in olga.get(place).text
    (tmp_path / "files" / "link.csv").symlink_to(tmp_path / "outside.csv")
    outside = ("../outside.csv", str(tmp_path / "outside.csv"), "inner/../../outside.csv", "link.csv", "/etc/passwd")
    for path in (*outside, "notes.txt", "", "inner", "a\0.csv"):
        refused = post(olga, f"{place}/source", path=path)
        assert refused.status_code == 400, path
        assert "folder of sources" in refused.text
    assert post(olga, f"{place}/source", path="inner/visits.csv").status_code == 303


def test_names_are_never_paths(olga, app, tmp_path):
    for name in ("../../evil", "a/b", "", "x" * 1000, "a\nb", "."):
        refused = post(olga, "/register", dataset=name, table="t")
        if refused.status_code == 303:  # a catalog can hold it: the folder has a random name all the same
            assert re.fullmatch(r"/register/[0-9a-f]{24}", refused.headers["location"])
        assert refused.status_code in (303, 400)
    assert not (tmp_path / "evil").exists()
    for draft in ("%2e%2e%2fclinic", "nosuch", "a" * 24, "draft.json"):
        assert olga.get(f"/register/{draft}").status_code in (403, 404, 405)


def test_uploads_are_bounded_and_only_the_ending_of_their_name_is_used(olga, clinic):
    place = begin(olga)
    assert upload(olga, place, "x" * (2 << 20)).status_code == 413
    for name in ("data.exe", "data.csv.gz", "data"):
        assert upload(olga, place, name=name).status_code == 400
    assert upload(olga, place, name="../../../evil.csv").status_code == 303
    folder = clinic.folder / ".sfumato" / "registered" / place.rsplit("/", 1)[1]
    assert sorted(path.name for path in folder.iterdir()) == ["draft.json", "source.csv"]
    assert (folder / "source.csv").stat().st_mode & 0o077 == 0
    assert upload(olga, place, b"\x00\xff" * 100, "data.parquet").status_code == 400


def write_parquet(table, **options):
    sink = io.BytesIO()
    pq.write_table(table, sink, compression="zstd", **options)
    return sink.getvalue()


def test_an_upload_that_grows_too_much_is_refused_and_an_earlier_one_stays(olga, clinic):
    place = begin(olga)
    assert upload(olga, place).status_code == 303
    texts = pa.table({"pid": [1, 2], "city": ["x" * 20_000_000, "Rome"]})
    rows = pa.table({"city": pa.DictionaryArray.from_arrays(pa.array([0] * 3_000_000, pa.int32()), ["Rome"])})
    hidden = pa.table({"city": ["Rome", "Romea"]})
    for content in (
        write_parquet(texts, use_dictionary=False),
        write_parquet(texts, dictionary_pagesize_limit=2**30),
        write_parquet(rows),
        write_parquet(hidden, use_dictionary=False, column_encoding={"city": "DELTA_BYTE_ARRAY"}),
    ):
        assert len(content) < 1 << 20, "it passes the limit of an upload"
        refused = upload(olga, place, content, "visits.parquet")
        assert refused.status_code == 400
        assert "when it is read" in refused.text
    folder = clinic.folder / ".sfumato" / "registered" / place.rsplit("/", 1)[1]
    assert (folder / "source.csv").read_text() == CSV
    assert "cost" in olga.get(f"{place}?step=people").text


@pytest.mark.parametrize("options", [
    {}, {"data_page_version": "2.0"}, {"use_dictionary": False, "column_encoding": {"city": "DELTA_LENGTH_BYTE_ARRAY"}},
])  # fmt: skip
def test_usual_parquet_files_are_taken(olga, options):
    place = begin(olga)
    table = pa.table({"pid": list(range(1000)), "city": ["Rome", "Oslo"] * 500})
    assert upload(olga, place, write_parquet(table, **options), "visits.parquet").status_code == 303
    assert "city" in olga.get(f"{place}?step=people").text


@pytest.mark.parametrize("path", ["/register", "/surveys", "/surveys/new"])
def test_these_pages_are_for_owners(sign_in, app, path):
    ann = sign_in("ann")
    assert ann.get(path).status_code == 403
    assert post(ann, path, dataset="a", table="b").status_code in (403, 405)
    stranger = TestClient(app)
    assert stranger.get(path, follow_redirects=False).headers["location"].startswith("/signin")


def test_an_analyst_reaches_no_draft_and_no_survey(olga, sign_in):
    place = register(olga)
    ann = sign_in("ann")
    assert ann.get(place).status_code == 403
    assert upload(ann, place).status_code == 403
    for step in ("people", "columns", "budget", "budget:preview", "review", "discard"):
        assert post(ann, f"{place}/{step}").status_code == 403
    assert ann.get("/v1/surveys").status_code == 403


def test_forms_without_the_token_are_refused(olga):
    place = begin(olga)
    for path in ("/register", f"{place}/people", f"{place}/discard", "/surveys/new", "/lab/attacks/differencing"):
        assert olga.post(path, data={"csrf": "0" * 64}, headers=OWN).status_code == 403
    assert (
        olga.post(f"{place}/source", data={"csrf": "x"}, files={"file": ("a.csv", CSV)}, headers=OWN).status_code == 403
    )


def test_names_and_texts_of_others_are_never_markup(olga, sign_in):
    place = begin(olga)
    header = CSV.replace("city", '"<img src=x onerror=alert(1)>"', 1)
    upload(olga, place, header)
    post(olga, f"{place}/people", unit="pid", max_rows="1", max_groups="1")
    for text in (olga.get(f"{place}?step=columns").text, olga.get(f"{place}?step=people").text):
        assert "<img" not in text
        assert "&lt;img" in text
    refused = post(olga, f"{place}/columns", **{"kind-1": HOSTILE})
    assert "<script>alert" not in refused.text
    assert "<script>alert" not in post(olga, "/register", dataset=HOSTILE, table=HOSTILE).text
    ann = sign_in("ann")
    for sql in (f'SELECT COUNT(*) AS "{HOSTILE.replace(chr(34), "")}" FROM people', f"SELECT '{HOSTILE}'"):
        asked = post(ann, "/datasets/clinic/ask", sql=sql, epsilon="0.1", action="ask")
        page = asked.text if asked.status_code != 303 else ann.get(asked.headers["location"]).text
        assert "<script>alert" not in page
        assert "<script>alert" not in ann.get("/").text
    forged = olga.get("/datasets/clinic", params={"done": "Call 555-1234 to keep your account", "seal": "0" * 16}).text
    assert "555-1234" not in forged, "a notice of somebody else is not shown"
    assert "<script>alert" not in TestClient(olga.app).get(f"/signin?after={HOSTILE}").text


def test_headers_cannot_be_injected(olga, sign_in):
    ann = sign_in("ann")
    asked = post(ann, "/datasets/clinic/ask", sql="SELECT COUNT(*) AS n FROM people", epsilon="0.1", action="ask")
    found = ann.get(f"{asked.headers['location']}/answer.json%0d%0aSet-Cookie:%20a=b")
    assert "set-cookie" not in found.headers
    for after in ("/\r\nSet-Cookie: a=b", "/\t/evil.test", "/\n/evil.test", "/%0d%0aSet-Cookie: a=b"):
        form = {"name": "olga", "password": "a long password of olga", "after": after}
        answered = TestClient(olga.app).post("/signin", data=form, headers=OWN, follow_redirects=False)
        assert "a=b" not in answered.headers["set-cookie"]
        assert answered.headers["location"] in ("/", "/%0d%0aSet-Cookie:%20a=b")
    done = post(olga, "/datasets/clinic/grants", user="a\r\nSet-Cookie: a=b", action="remove")
    assert "\n" not in done.headers["location"]


def test_signing_in_begins_a_new_session_whatever_cookie_came(app):
    client = TestClient(app)
    client.cookies.set("sfumato_session", "chosen-by-somebody-else")
    link = app.state.sessions.make_link("ann")
    answered = client.post(f"/signin/{link}", headers=OWN, follow_redirects=False)
    assert "chosen-by-somebody-else" not in answered.headers["set-cookie"]
    assert app.state.sessions.find("chosen-by-somebody-else") is None


def test_every_page_has_the_strict_policy_and_no_inline_code(olga):
    place = register(olga)
    made = post(olga, "/surveys/new", question="Pets?", kind="labels", labels="yes\nno", epsilon="1", action="make")
    pages = ["/", "/register", f"{place}?step=source", f"{place}?step=people", f"{place}?step=columns",
             f"{place}?step=budget", f"{place}?step=review", "/surveys", "/surveys/new",
             made.headers["location"], "/lab", "/datasets/clinic", "/datasets/clinic/ask", "/signin"]  # fmt: skip
    for page in pages:
        found = olga.get(page)
        assert found.headers["content-security-policy"] == POLICY, page
        assert "unsafe" not in POLICY
        assert not re.search(
            r"<script(?![^>]*\bsrc=)|\son[a-z]+=|style=\"|javascript:|https?://(?!testserver)", found.text
        ), page


def test_an_unknown_address_is_a_page_for_a_browser_and_a_problem_for_a_program(olga):
    shown = olga.get("/nosuch", headers={"accept": "text/html"})
    assert (shown.status_code, "There is nothing at this address." in shown.text) == (404, True)
    assert olga.get("/v1/nosuch", headers={"accept": "text/html"}).json()["code"] == "no-such-address"


def test_attempts_at_the_same_time_are_counted_before_they_are_checked(app, monkeypatch):
    from concurrent.futures import ThreadPoolExecutor

    from sfumato.errors import PermissionDenied
    from sfumato.service.sessions import MOST_FAILURES

    checked = []
    monkeypatch.setattr(Accounts, "check_password", lambda *_: checked.append(1))

    def try_one(_):
        with pytest.raises(PermissionDenied):
            app.state.sessions.sign_in("olga", "a wrong password")

    with ThreadPoolExecutor(12) as pool:
        list(pool.map(try_one, range(24)))
    assert len(checked) == MOST_FAILURES


# -- surveys -----------------------------------------------------------------------------------------------------------


def make_survey(olga, **more):
    form = {"question": "Pets?", "kind": "labels", "labels": "yes\nno", "epsilon": "2", "minimum": "2", "days": "10",
            "people": "100", "action": "make", **more}  # fmt: skip
    return post(olga, "/surveys/new", **form)


def test_an_owner_makes_a_survey_and_people_answer_it_without_signing_in(olga, app):
    compared = make_survey(olga, action="compare").text
    assert "margin" in compared
    made = make_survey(olga)
    name = re.fullmatch(r"/surveys/([0-9a-f]{32})\?.*", made.headers["location"])[1]
    person = TestClient(app)
    page = person.get(f"/surveys/collect/s/{name}")
    assert "Pets?" in page.text
    document = person.get(f"/surveys/collect/s/{name}/survey.json").content
    manifest = read_manifest(document)
    values = manifest.table.form.encode(manifest.table.randomise([0, 1, 1]))
    lines = [
        f'{{"survey":"{name}","period":0,"id":"{place:032x}","report":{value}}}' for place, value in enumerate(values)
    ]
    assert person.post("/surveys/collect/reports", content="\n".join(lines)).json()["accepted"] == 3
    assert person.post("/surveys/collect/reports", content="\n".join(lines)).json()["duplicate"] == 3
    assert "set-cookie" not in page.headers
    assert person.get("/surveys/collect/owner").status_code == 404
    assert person.get("/surveys/collect/metrics").status_code == 404
    shown = olga.get(f"/surveys/{name}").text
    assert "3 reports wait" in shown
    listed = olga.get("/v1/surveys").json()
    assert [one["id"] for one in listed] == [name]
    assert olga.get(f"/v1/surveys/{name}").json()["received"]["accepted"] == 3
    assert post(olga, f"/surveys/{name}/publish").status_code == 303
    assert "points answered “yes” (95 % confidence)" in olga.get(f"/surveys/{name}").text
    assert len(olga.get(f"/v1/surveys/{name}/results").json()["estimates"]) == 2


@pytest.mark.parametrize("wrong", [
    {"labels": "one"}, {"epsilon": "x"}, {"kind": "number", "lower": "a", "upper": "1"}, {"people": "-1"},
    {"kind": "nosuch"}, {"days": "0"}, {"question": ""}, {"minimum": "no"},
])  # fmt: skip
def test_a_survey_that_cannot_be_made_is_refused_beside_its_form(olga, wrong):
    refused = make_survey(olga, **wrong)
    assert refused.status_code in (400, 422)
    assert 'role="alert"' in refused.text
    assert olga.get("/v1/surveys").json() == []


# -- the lab -----------------------------------------------------------------------------------------------------------


def test_the_lab_shows_a_mechanism_and_runs_an_attack(sign_in):
    ann = sign_in("ann")
    page = ann.get("/lab?epsilon=0.5").text
    assert "differencing" in page
    assert ann.get("/lab/mechanism.svg?epsilon=0.5").text.startswith("<svg")
    assert json.loads(ann.get("/lab/mechanism.json?epsilon=2").text)["ratio"] == "7.39"
    run = post(ann, "/lab/attacks/differencing", epsilon="1")
    assert "Naive release" in run.text
    assert "data:image/svg+xml" in run.text
    for epsilon in ("0", "99", "x", "1e-999"):
        assert ann.get(f"/lab?epsilon={epsilon}").status_code == 400
        assert ann.get(f"/lab/mechanism.svg?epsilon={epsilon}").status_code == 400
    assert post(ann, "/lab/attacks/membership").status_code == 400
    assert post(ann, "/lab/attacks/__init__").status_code == 400
