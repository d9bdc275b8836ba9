"""Surveys without a trusted curator: each person's own device randomises, and the collector learns the crowd."""

from sfumato.local.collect.shuffle import ShuffleBound, bound_shuffling
from sfumato.local.mechanisms.two_stage import TwoStage
from sfumato.local.randomisers.answer_grids import CrossTab, NumberBins
from sfumato.local.randomisers.category_choice import Alternative, Choice, choose
from sfumato.local.randomisers.category_randomisers import Randomiser, randomiser
from sfumato.local.randomisers.heavy_hitters import FrequentWord, HeavyHitters, heavy_hitters
from sfumato.local.randomisers.mean_choice import MeanChoice, choose_mean
from sfumato.local.randomisers.mean_randomisers import MeanEstimate, MeanRandomiser, mean_randomiser
from sfumato.local.randomisers.published import AnyRandomiser, rebuild
from sfumato.local.randomisers.questions import QuestionEstimate, Questions, compare_questions, questions
from sfumato.local.randomisers.share_estimates import Estimate
from sfumato.local.randomisers.tally import Tally
from sfumato.local.randomisers.two_stage_randomisers import memoise
from sfumato.local.survey.device import Caps, Device, Report
from sfumato.local.survey.key_ring import KeyRing, TrustedKey, read_ring
from sfumato.local.survey.new_survey import Renewal, SurveyKey, new_survey
from sfumato.local.survey.signed_survey import Survey

__all__ = [
    "Alternative",
    "AnyRandomiser",
    "Caps",
    "Choice",
    "CrossTab",
    "Device",
    "Estimate",
    "FrequentWord",
    "HeavyHitters",
    "KeyRing",
    "MeanChoice",
    "MeanEstimate",
    "MeanRandomiser",
    "NumberBins",
    "QuestionEstimate",
    "Questions",
    "Randomiser",
    "Renewal",
    "Report",
    "ShuffleBound",
    "Survey",
    "SurveyKey",
    "Tally",
    "TrustedKey",
    "TwoStage",
    "bound_shuffling",
    "choose",
    "choose_mean",
    "compare_questions",
    "heavy_hitters",
    "mean_randomiser",
    "memoise",
    "new_survey",
    "questions",
    "randomiser",
    "read_ring",
    "rebuild",
]
