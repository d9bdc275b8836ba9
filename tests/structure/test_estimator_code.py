"""Stored scores of `bench/learn.py` are valid for the code that they were measured with, and for no other."""

import shutil
import sys
from functools import cache
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))
from peers.estimator_code import read_estimator_code

ROOT = Path(__file__).parents[2]
ESTIMATORS = ("KMeans", "HistogramDensity")


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    folder = tmp_path_factory.mktemp("source")
    for package in ("learning", "kernel"):
        shutil.copytree(ROOT / "src" / "sfumato" / package, folder / "sfumato" / package)
    return folder


def read_all(source):
    read_estimator_code.cache_clear()
    return {name: read_estimator_code(source, name) for name in ESTIMATORS}


@cache
def read_sound(source):
    return read_all(source)


def find_changed(source, path, text, becomes):
    before, file = read_sound(source), source / "sfumato" / path
    sound = file.read_text()
    assert text in sound
    file.write_text(sound.replace(text, becomes, 1))
    after = read_all(source)
    file.write_text(sound)
    return {name for name in ESTIMATORS if before[name] != after[name]}


def test_a_change_counts_for_the_estimators_that_use_it(source):
    everything = set(ESTIMATORS)
    assert find_changed(source, "learning/k_means.py", "return", "return  1,") == {"KMeans"}
    assert find_changed(source, "kernel/samplers.py", "len(units) + 1", "len(units)") == everything
    assert find_changed(source, "learning/block_sums.py", "1 << 17", "1 << 16") == everything
    assert find_changed(source, "learning/curator_statistics.py", "self._calls = 0", "self._calls = 1") == set()


def test_comments_and_docstrings_change_no_score(source):
    text = (source / "sfumato/learning/k_means.py").read_text()
    first = text.splitlines()[0]
    assert find_changed(source, "learning/k_means.py", first, '"""Other words.') == set()
    assert find_changed(source, "learning/k_means.py", "\nimport", "\n# why\nimport") == set()


def test_an_unknown_estimator_has_no_code(source):
    with pytest.raises(LookupError):
        read_estimator_code(source, "NoSuchEstimator")
