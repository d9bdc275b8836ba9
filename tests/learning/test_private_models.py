"""The example of fitting models through the curator runs, and spends what it says."""

import runpy
from pathlib import Path

EXAMPLE = Path(__file__).parents[2] / "examples" / "private_models.py"


def test_the_example_runs(capsys):
    runpy.run_path(str(EXAMPLE), run_name="__main__")
    printed = capsys.readouterr().out
    assert "Spent: ε = 2.5" in printed
    assert "Cost by age" in printed
