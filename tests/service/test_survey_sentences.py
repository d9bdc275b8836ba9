"""Estimates of a survey in plain sentences."""

from types import SimpleNamespace

import pytest

from sfumato.local.collect.results import Line
from sfumato.service.survey_pages import write_sentence

SHARES = SimpleNamespace(kind="share", confidence=0.95)


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [
        (0.23, 0.27, "25 % ± 2 points answered “yes” (95 % confidence)."),
        (0.248, 0.252, "25.0 % ± 0.2 points answered “yes” (95 % confidence)."),
        (0.0, 0.9, "45 % ± 45 points answered “yes” (95 % confidence)."),
        (-0.32, 1.9, "Too few reports to say which share answered “yes”: any share is possible (95 % confidence)."),
    ],
)
def test_a_share_has_its_interval_or_says_that_reports_are_too_few(low, high, said):
    assert write_sentence(Line("yes", (low + high) / 2, low, high, 0.5, 0.01), SHARES) == said
