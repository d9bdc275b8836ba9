"""The figures of docs/lessons.md. Run this file to write them again."""

from pathlib import Path

import sfumato as sf

FOLDER = Path(__file__).parents[2] / "docs" / "figures"
FIGURES = {
    "lesson-mechanism.svg": lambda: sf.lab.mechanism(1, 1).figure,
    "lesson-epsilon.svg": lambda: sf.lab.epsilon(1).figure,
    "lesson-neighbours.svg": lambda: sf.lab.neighbours("maximum").figure,
    "lesson-poll.svg": lambda: sf.lab.randomized_response(seed=1).figure,
}

if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, make in FIGURES.items():
        make().save(FOLDER / name)
