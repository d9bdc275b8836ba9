"""What a prompt and a notebook show of a survey and of its results."""

import re

import pytest
from make_vectors import FixedKey, whole_surveys
from test_collector import some

from sfumato.drawing.plot import LETTER, Plot
from sfumato.local.collect.estimate_chart import WIDTH
from sfumato.local.collect.results import make_results
from sfumato.local.randomisers.heavy_hitters import HeavyHitters
from sfumato.local.survey.signed_survey import Survey
from sfumato.local.survey.survey_words import describe_answers, format_epsilon

SURVEYS = {name: survey.manifest for name, survey in whole_surveys(FixedKey())}
COUNTED = [name for name, manifest in SURVEYS.items() if not isinstance(manifest.table, HeavyHitters)]


def without_style(made):
    assert "http" not in made
    assert "<script" not in made
    return re.sub(r"<style>.*?</style>", "", made, flags=re.DOTALL)


@pytest.mark.parametrize("name", SURVEYS)
def test_a_survey_shows_its_question_answers_and_losses(name):
    survey = Survey(SURVEYS[name])
    facts = [survey.question, describe_answers(survey.domain).split(",")[0], f"ε = {format_epsilon(survey.epsilon)}"]
    facts += [f"ε = {format_epsilon(survey.longitudinal_epsilon)}", survey.id]
    facts += [f"δ = {format_epsilon(survey.delta)}"] if survey.delta else []
    for shown in (repr(survey), without_style(survey._repr_html_())):
        assert all(fact in shown for fact in facts)
        assert not re.search(r"\d\.\d{7}", shown)  # no loss has more than six digits


@pytest.mark.parametrize("name", COUNTED)
def test_results_are_a_table_with_intervals_and_a_chart(name):
    manifest = SURVEYS[name]
    found = make_results(manifest, 0, manifest.table.tally(some(manifest, 4000)[2]))
    for shown in (repr(found), without_style(found._repr_html_())):
        assert all(line.label in shown for line in found.lines)
        assert f"ε = {format_epsilon(found.local_epsilon)} per report" in shown
    plot = found.plot()
    assert isinstance(plot, Plot)
    assert set(plot._repr_mimebundle_()) == {"image/svg+xml", "text/plain"}  # a notebook needs no network
    drawn = plot.to_dict()
    assert [layer["mark"]["type"] for layer in drawn["layer"]][1:] == ["rule", "point"]
    (values,) = drawn["datasets"].values()
    assert [(value["low"], value["high"]) for value in values] == [(line.low, line.high) for line in found.lines]
    assert all(len(line) * LETTER <= WIDTH for line in drawn["title"]["subtitle"])


def test_a_long_question_is_wrapped():
    manifest = SURVEYS[COUNTED[0]]
    found = make_results(manifest, 0, manifest.table.tally(some(manifest, 4000)[2]))
    object.__setattr__(found, "question", "Which of these do you use on the computer " * 4)
    lines = found.plot().to_dict()["title"]["text"]
    assert len(lines) > 1
    assert " ".join(lines) == found.question.strip()
