"""A first use of an installed Sfumato, for one extra or none. It runs in an environment without the tests' packages.

Usage: python smoke_test.py EXTRA ..., where the extras are those that are installed.
"""

import csv
import importlib
import re
import socket
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

import sfumato as sf

ROWS = [{"id": f"p{number}", "age": 20 + number % 60, "pay": 10.5 * number} for number in range(400)]
COLUMNS = {"id": sf.Id(), "age": sf.Integer(0, 120), "pay": sf.Real(0, 5_000)}
COMMANDS = ((["--help"], 0), (["demo", "--no-plot"], 0), (["ask", "--nonsense"], 2), (["epsilon", "1"], 0))
SQL = "SELECT COUNT(*) AS n, AVG(age) AS age, SUM(pay / 2) AS pay FROM people WHERE age BETWEEN 30 AND 60"


def protect(data):
    return sf.protect(data, name="people", unit="id", columns=COLUMNS, budget=sf.Budget(epsilon=1_000))


def ask(data):
    with protect(data) as people:
        answer = people.ask(SQL, epsilon=100)
        assert abs(answer.rows[0]["n"] - sum(30 <= row["age"] <= 60 for row in ROWS)) <= 2
        assert answer.intervals[0]["age"][0] <= answer.rows[0]["age"] <= answer.intervals[0]["age"][1]
        return answer


def check_core(folder, commands):
    """A CSV file, a chart, and the command line."""
    path = folder / "people.csv"
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(ROWS[0]))
        writer.writeheader()
        writer.writerows(ROWS)
    answer = ask(path)
    assert answer.plot().svg().startswith("<svg")
    assert "n" in repr(answer)
    answer.plot("n").save(str(folder / "n.png"))
    for arguments, code in COMMANDS if commands else ():
        done = subprocess.run(
            [sys.executable, "-W", "error::DeprecationWarning:sfumato", "-m", "sfumato", *arguments],
            capture_output=True, text=True, check=False, cwd=folder,
        )  # fmt: skip
        assert done.returncode == code, (arguments, done.stdout, done.stderr)
        assert "Traceback" not in done.stderr, done.stderr
    assert (Path(sf.__file__).parent / "py.typed").exists()


def check_pandas(_):
    import pandas as pd

    assert list(ask(pd.DataFrame(ROWS)).to_pandas(intervals=True).columns)[:3] == ["n", "n_low", "n_high"]


def check_polars(_):
    import polars as pl

    assert ask(pl.DataFrame(ROWS)).to_polars().shape == (1, 3)


def check_spark(_):
    """A session needs Java, which no package brings; the engine's own tests have one."""
    importlib.import_module("pyspark.sql")
    importlib.import_module("sfumato.engines.spark")


def check_postgres(folder):
    """No server is needed to refuse one that is not there."""
    engine = sf.engines.postgres("postgresql://nobody@127.0.0.1:1/nothing")
    with (folder / "catalog.toml").open("w") as file:
        file.write('[dataset]\nname = "c"\n[budget]\nepsilon = "1"\ndelta = "0"\n[tables.people]\n')
        file.write(
            'source = "people.csv"\nunit_column = "id"\ncolumns.age = { type = "integer", lower = 0, upper = 9 }\n'
        )
    try:
        sf.open(folder, engine=engine)
    except sf.errors.SfumatoError as error:
        assert not isinstance(error, sf.errors.MissingExtra), error
    else:
        raise AssertionError("a server that is not there was opened")


def check_learn(_):
    import numpy as np

    features = np.column_stack([np.linspace(-1, 1, 2_000), np.tile([0.5, -0.5], 1_000)])
    labels = (features[:, 0] > 0).astype(int)
    model = sf.learning.LogisticRegression(epsilon=10, bounds=(-1, 1), classes=[0, 1])
    assert model.fit(features, labels).score(features, labels) > 0.8


def check_serve(folder):
    """The service starts, and answers a question of its analyst."""
    importlib.import_module("sfumato.service.survey_app")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-u", "-m", "sfumato", "serve", "--demo", "--port", str(port)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=folder) as server:
        try:
            told = []
            for line in server.stdout:
                told.append(line)
                if found := re.search(r"sf\.connect\(['\"](.+?)['\"], ['\"](.+?)['\"]\)", line):
                    break
            else:
                raise AssertionError("".join(told))
            clinic = _connect(*found.groups())
            assert clinic.ask(f"SELECT COUNT(*) AS n FROM {next(iter(clinic.tables))}", epsilon="0.1").rows[0]["n"]
        finally:
            server.terminate()


def _connect(address, token):
    """Connect, as soon as the server listens."""
    for _ in range(120):
        try:
            return sf.connect(address, token)
        except (sf.errors.SfumatoError, OSError) as error:
            refused = error
            time.sleep(0.5)
    raise refused


MISSING = {
    "pandas": lambda folder: ask(folder / "people.csv").to_pandas(),
    "polars": lambda folder: ask(folder / "people.csv").to_polars(),
    "learn": lambda _: sf.learning.LogisticRegression(epsilon=1),
    "postgres": lambda _: sf.engines.postgres("postgresql://nobody@127.0.0.1:1/nothing"),
}
CHECKS = {
    "pandas": check_pandas, "polars": check_polars, "spark": check_spark, "postgres": check_postgres,
    "learn": check_learn, "serve": check_serve,
}  # fmt: skip
PACKAGES = {"pandas": "pandas", "polars": "polars", "learn": "sklearn", "postgres": "psycopg"}


def check_missing(name, folder):
    """Without its extra, a function says which one it needs."""
    try:
        MISSING[name](folder)
    except sf.errors.MissingExtra as error:
        assert f"sfumato[{name}]" in str(error), error
    else:
        raise AssertionError(f"{name} is not installed, and was not missed")


def main(extras):
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        check_core(folder, commands=not extras)
        for extra in extras:
            CHECKS[extra](folder)
        for name, package in PACKAGES.items():
            if find_spec(package) is None:
                check_missing(name, folder)
    print(f"sfumato {sf.__version__} works: {', '.join(extras) or 'without extras'}")


if __name__ == "__main__":
    main(sys.argv[1:])
