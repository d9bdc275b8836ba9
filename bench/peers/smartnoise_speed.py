"""smartnoise-sql on the tasks of bench/peers/compare.py, over a pandas frame."""

import sys
import warnings

import pandas as pd
from snsql import Privacy, from_df
from speed import MOST_ROWS, run

warnings.filterwarnings("ignore")
ROWS = pd.read_parquet(sys.argv[1])
VALUE = {"type": "float", "lower": 0.0, "upper": 1.0, "nullable": False}
GROUPED = "SELECT k, COUNT(*) AS n, SUM(x) AS s, AVG(x) AS a FROM db.t GROUP BY k"


def ask(question: str, columns: dict[str, object], **table: object) -> object:
    described = {"": {"db": {"t": {**table, "rows": len(ROWS), **columns}}}}
    names = [name for name in columns if name in ROWS]
    reader = from_df(ROWS[names], privacy=Privacy(epsilon=1.0, delta=1e-6), metadata=described)
    return reader.execute(question)


run(
    {
        "grouped": lambda: ask(GROUPED, {"k": {"type": "string"}, "x": VALUE}, row_privacy=True, censor_dims=False),
        "person": lambda: ask(
            GROUPED,
            {"p": {"type": "int", "private_id": True}, "k": {"type": "string"}, "x": VALUE},
            max_ids=MOST_ROWS,
            censor_dims=False,
        ),
        "median": "no median",
        "keys": lambda: ask(
            "SELECT item, COUNT(DISTINCT p) AS n FROM db.t GROUP BY item",
            {"p": {"type": "int", "private_id": True}, "item": {"type": "string"}},
            max_ids=MOST_ROWS,
            censor_dims=True,
        ),
        "noise": "its mechanisms are opendp's",
    }
)
