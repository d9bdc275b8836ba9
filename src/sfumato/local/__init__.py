"""Surveys without a trusted curator: each person's own device randomises, and the collector learns the crowd."""

from sfumato.local.choice import Alternative, Choice, choose
from sfumato.local.device import Caps, Device, Report
from sfumato.local.estimates import Estimate
from sfumato.local.heavy_hitters import Found, HeavyHitters, heavy_hitters
from sfumato.local.mean_choice import MeanChoice, choose_mean
from sfumato.local.means import MeanEstimate, MeanRandomiser, mean_randomiser
from sfumato.local.memoised import Memoised, memoised
from sfumato.local.new_survey import Renewal, SurveyKey, new_survey
from sfumato.local.published import Described, rebuild
from sfumato.local.questions import QuestionEstimate, Questions, compare_questions, questions
from sfumato.local.randomisers import Randomiser, randomiser
from sfumato.local.shuffle import Shuffled, shuffled
from sfumato.local.survey import Survey
from sfumato.local.tally import Tally

__all__ = [
    "Alternative",
    "Caps",
    "Choice",
    "Described",
    "Device",
    "Estimate",
    "Found",
    "HeavyHitters",
    "MeanChoice",
    "MeanEstimate",
    "MeanRandomiser",
    "Memoised",
    "QuestionEstimate",
    "Questions",
    "Randomiser",
    "Renewal",
    "Report",
    "Shuffled",
    "Survey",
    "SurveyKey",
    "Tally",
    "choose",
    "choose_mean",
    "compare_questions",
    "heavy_hitters",
    "mean_randomiser",
    "memoised",
    "new_survey",
    "questions",
    "randomiser",
    "rebuild",
    "shuffled",
]
