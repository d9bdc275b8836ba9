"""Charts of answers: their form follows the keys, they fit, and a notebook draws them without a network."""

import datetime
import json
import re

import numpy as np
import pandas as pd
import pytest

import sfumato as sf
from sfumato.answers.answer_chart import ChartData, choose_kind, draw_answer, find_step
from sfumato.drawing.plot import LETTER
from sfumato.errors import InvalidParameter

CITIES = [f"c{number:03}" for number in range(100)]
HOSPITALS = ["University hospital of Rome", "General hospital of Oslo"]


@pytest.fixture(scope="module")
def asked():
    index = np.arange(4_000)
    frame = pd.DataFrame(
        {
            "city": np.array(CITIES)[index % 100],
            "site": np.array(["north", "south", "east"])[index % 3],
            "sex": np.array(["f", "m"])[index % 2],
            "cost": (index * 7.0) % 500,
            "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(index % 366, unit="D"),
            "hospital": np.array(HOSPITALS)[index % 2],
        }
    )
    columns = {
        "city": sf.Category(CITIES), "site": sf.Category(["north", "south", "east"]), "sex": sf.Category(["f", "m"]),
        "cost": sf.Real(0, 500), "day": sf.Date("2024-01-01", "2024-12-31"), "hospital": sf.Category(HOSPITALS),
    }  # fmt: skip
    with sf.protect(frame, name="t", unit=sf.ROW, columns=columns, budget=sf.Budget(epsilon=1_000)) as curator:
        yield lambda sql, **options: curator.ask(sql, 1, **options)


def by(keys, measures="COUNT(*) AS n"):
    names = [key.split(" AS ")[-1] for key in re.split(r", (?![^(]*[)])", keys)]
    return f"SELECT {keys}, {measures} FROM t GROUP BY {', '.join(names)}"


def list_values(drawn):
    """What a chart of one measure draws."""
    (values,) = drawn["datasets"].values()
    return values


def marks(plot):
    drawn = plot.to_dict()
    return [layer["mark"]["type"] for layer in drawn.get("layer", [drawn])]


def data(answer):
    return ChartData(answer.rows, answer.intervals, answer.keys, "")


@pytest.mark.parametrize(
    ("keys", "kind", "drawn"),
    [
        ("site", "bars", ["bar", "rule"]), ("city", "lying", ["bar", "rule"]), ("hospital", "lying", ["bar", "rule"]),
        ("DATE_TRUNC('month', day) AS month", "series", ["rule", "line"]), ("day", "series", ["area", "line"]),
        ("HISTOGRAM(cost, 20) AS bin", "histogram", ["bar", "rule"]), ("site, sex", "bars", ["bar", "rule"]),
        ("city, sex", "lying", ["bar", "rule"]), ("DATE_TRUNC('month', day) AS month, sex", "series", ["rule", "line"]),
        ("site, sex, hospital", "lying", ["bar", "rule"]),
    ],
)  # fmt: skip
def test_the_form_follows_the_keys(asked, keys, kind, drawn):
    answer = asked(by(keys))
    assert choose_kind(data(answer)) == kind
    assert marks(answer.plot()) == drawn
    assert len(list_values(answer.plot().to_dict())) == len(answer.rows)


def test_dates_are_on_an_axis_of_time(asked):
    assert '"type": "temporal"' in json.dumps(asked(by("day")).plot().to_dict())
    assert '"type": "temporal"' not in json.dumps(asked(by("site")).plot().to_dict())


def test_a_second_key_has_colours_and_no_labels_of_its_own(asked):
    drawn = asked(by("site, sex")).plot().to_dict()
    bars = drawn["layer"][0]["encoding"]
    assert bars["color"]["title"] == "sex"
    assert bars["xOffset"]["field"] == "group"
    assert {value["label"] for value in list_values(drawn)} == {"north", "south", "east"}


def test_a_hundred_bars_have_a_sensible_size(asked):
    drawn = asked(by("city")).plot().to_dict()
    assert 900 <= drawn["height"] <= 1_000
    assert drawn["width"] <= 600


def test_several_measures_are_below_each_other(asked):
    answer = asked(by("site", "COUNT(*) AS n, AVG(cost) AS cost, SUM(cost) AS total"))
    drawn = answer.plot().to_dict()
    assert [one["title"]["text"] for one in drawn["vconcat"]] == ["n by site", "cost by site", "total by site"]
    assert drawn["title"]["text"] == "n, cost, total by site"
    assert "95 % confidence intervals" in drawn["title"]["subtitle"][0]  # once, and not for each of them
    assert not any(one["title"].get("subtitle") for one in drawn["vconcat"])
    assert answer.plot("cost").to_dict()["title"]["text"] == "cost by site"
    assert len(answer.plot(["n", "total"]).to_dict()["vconcat"]) == 2
    for wrong in ("site", "x", [], [3]):
        with pytest.raises(InvalidParameter, match="column"):
            answer.plot(wrong)


def test_one_number_is_a_dot_with_its_interval(asked):
    (chart,) = asked("SELECT COUNT(*) AS n FROM t").plot().to_dict()["vconcat"]
    assert [layer["mark"]["type"] for layer in chart["layer"]] == ["rule", "point"]


def test_quantiles_of_one_row_share_an_axis(asked):
    sql = "SELECT QUANTILE(cost, 0.25) AS low, MEDIAN(cost) AS middle, QUANTILE(cost, 0.9) AS high FROM t"
    bare = asked(sql).plot().to_dict()
    assert "No interval in value: low, middle, high." in " ".join(bare["title"]["subtitle"])
    assert "Intervals cover" not in " ".join(bare["title"]["subtitle"])
    assert [one["mark"]["type"] for one in bare["vconcat"]] == ["point"] * 3
    drawn = asked(sql, interval_share=0.5).plot().to_dict()
    domains = [one["layer"][1]["encoding"]["x"]["scale"]["domain"] for one in drawn["vconcat"]]
    assert domains[0] == domains[1] == domains[2]


@pytest.mark.parametrize("keys", ["site", "city", "day", "site, sex", "HISTOGRAM(cost, 20) AS bin"])
def test_the_caption_is_as_wide_as_the_chart(asked, keys):
    drawn = asked(by(keys)).plot().to_dict()
    assert max(map(len, drawn["title"]["subtitle"])) <= drawn["width"] / LETTER


def test_a_notebook_draws_it_without_a_network(asked):
    bundle = asked(by("site")).plot()._repr_mimebundle_()
    assert set(bundle) == {"image/svg+xml", "text/plain"}
    addresses = re.findall(r"https?://[^\"' )]+", bundle["image/svg+xml"])
    assert set(addresses) <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}
    assert "<script" not in bundle["image/svg+xml"]


def test_ends_without_limit_are_cut():
    rows = [{"k": "a", "n": 5}, {"k": "b", "n": 9}, {"k": None, "n": float("nan")}]
    ends = [{"n": (-float("inf"), 7.0)}, {"n": (8.0, float("inf"))}, {}]
    drawn = draw_answer(ChartData(rows, ends, ("k",), "words"), ["n"]).to_dict()
    values = list_values(drawn)
    assert [(value["low"], value["high"]) for value in values] == [(5, 7.0), (8.0, 9)]
    json.dumps(values, allow_nan=False)


@pytest.mark.parametrize(
    ("values", "step"),
    [
        ([0, 25, 50], 25), ([0.0, 0.5, 1.0], 0.5), ([2019, 2020, 2021], None), ([0, 25], None), ([0, 25, 60], None),
        (["a", "b", "c"], None), ([True, False, True], None), ([datetime.date(2024, 1, 1)] * 3, None),
    ],
)  # fmt: skip
def test_bins_are_numbers_at_equal_distances(values, step):
    assert find_step(values) == step


def test_a_saved_page_needs_no_network(asked, tmp_path):
    asked(by("site")).plot().save(str(tmp_path / "n.html"))
    page = (tmp_path / "n.html").read_text()
    assert not re.search(r"<(?:script|link)[^>]+(?:src|href)=", page)
    assert "vegaEmbed(" in page
