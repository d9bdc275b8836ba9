"""Trusted keys expire, are revoked and are replaced; limits within which a survey loads fast."""

import json
from dataclasses import replace
from datetime import timedelta

import pytest
from make_vectors import BEGINS, PLACE, FixedKey
from typer.testing import CliRunner

from sfumato.cli.main import app
from sfumato.errors import CatalogError, InvalidParameter
from sfumato.local.survey.key_ring import KeyRing, TrustedKey, read_ring
from sfumato.local.survey.manifest import MOST_LABELS, MOST_ROW_BITS, read_manifest
from sfumato.local.survey.new_survey import new_survey
from sfumato.local.survey.signed_survey import Survey

KEY, OTHER = FixedKey(), FixedKey("other key")
DAY = timedelta(days=1)


def trusted(key=KEY, begins=BEGINS, ends=BEGINS + DAY, **changes):
    return TrustedKey(key.public_key, begins, ends, **changes)


@pytest.mark.parametrize(
    ("keys", "taken"),
    [
        ([trusted()], True),
        ([trusted(OTHER), trusted()], True),
        ([trusted(OTHER)], False),
        ([trusted(revoked=True)], False),
        ([trusted(begins=BEGINS + DAY / 2)], False),
        ([trusted(begins=BEGINS - DAY, ends=BEGINS)], False),
    ],
)
def test_a_survey_needs_a_key_that_may_have_signed_it(keys, taken, tmp_path):
    path = tmp_path / "s.json"
    path.write_bytes(new_survey("Which?", labels=["a", "b"], epsilon=1, key=KEY, begins=BEGINS).manifest.to_bytes())
    ring = KeyRing(0, tuple(keys))
    if taken:
        Survey.load(path, trusted=ring)
        return
    with pytest.raises(CatalogError) as caught:
        Survey.load(path, trusted=ring)
    assert caught.value.code == "survey-key"


def test_rings_are_replaced_as_the_vectors_say():
    """The JavaScript client reads the same vectors."""
    for vector in json.loads(PLACE.read_text())["rings"]:
        ring = read_ring(vector["ring"].encode())
        if vector["code"] is None:
            assert ring.update(vector["text"].encode()).serial == vector["serial"]
        else:
            with pytest.raises(CatalogError) as caught:
                ring.update(vector["text"].encode())
            assert caught.value.code == vector["code"]


def test_a_key_has_a_time():
    with pytest.raises(InvalidParameter):
        trusted(ends=BEGINS)
    with pytest.raises(InvalidParameter):
        replace(trusted(), begins=BEGINS.replace(tzinfo=None))


def test_keys_are_rotated_from_the_command_line(tmp_path):
    def run(*arguments, code=0):
        done = CliRunner().invoke(app, ["survey", "keys", str(tmp_path / "ring.json"), *arguments, "--json"])
        assert done.exit_code == code, done.output
        return json.loads(done.stdout) if code == 0 else None

    run(code=2)
    begun = run("--key", str(tmp_path / "first.key"))
    (first,) = [key["public_key"] for key in begun["keys"]]
    second = FixedKey("stranger").public_key
    assert len(run("--key", str(tmp_path / "first.key"), "--trust", second)["keys"]) == 2
    assert run()["serial"] == 1
    run("--revoke", first, code=2)
    run("--key", str(tmp_path / "first.key"), "--revoke", first, code=4)  # it cannot sign its own revocation
    assert run()["serial"] == 1


def test_surveys_have_limits_within_which_they_load_fast():
    many = [f"{number:x}" for number in range(MOST_LABELS)]
    survey = new_survey("Which?", labels=many, epsilon=1, key=KEY)  # no row of bits, although it has less error
    assert survey.table.form.bits <= MOST_ROW_BITS
    assert read_manifest(survey.manifest.to_bytes()).digest == survey.manifest.digest
    for labels, mechanism in (([*many, "more"], None), (many[: MOST_ROW_BITS + 1], "oue")):
        with pytest.raises(CatalogError) as caught:
            new_survey("Which?", labels=labels, epsilon=1, key=KEY, mechanism=mechanism)
        assert caught.value.code == "survey-limits"
