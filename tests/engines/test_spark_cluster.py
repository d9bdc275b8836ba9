"""A cluster that loses an executor, and Spark Connect: the integers stay the same. Each test has a Spark of its own."""

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from spark_session import require_java

HERE = Path(__file__).parent
# a process of its own: a Spark context has one master
BEGIN = """
import os, sys, signal, time, warnings
warnings.simplefilter("ignore")
sys.path[:0] = {paths}
from hostile_clinic import list_tables, open_clinic
from spark_session import SETTINGS, to_spark
from by_cell import list_by_cell
from sfumato.engines.reference.reference_engine import ReferenceEngine
from sfumato.engines.spark.spark_engine import SparkEngine
from sfumato.query.bind import bind
from sfumato.query.parse import parse
from pyspark.sql import SparkSession
import sfumato as sf

QUESTIONS = [
    "SELECT city, COUNT(*) AS n, SUM(income) AS s, AVG(age) AS a FROM patients GROUP BY city",
    "SELECT kind, COUNT(*) AS n, COUNT(DISTINCT pid) AS people, SUM(cost) AS s FROM visits GROUP BY kind",
    "SELECT p.city, COUNT(*) AS n, MEDIAN(v.cost) AS m FROM patients p JOIN visits v ON p.pid = v.pid GROUP BY p.city",
]
STATE = dict(people=40, crowd=120)

def compare(session):
    clinic = open_clinic(**STATE)
    frames = {{n: (t, session.createDataFrame(*to_spark(rows))) for n, (t, rows) in list_tables(**STATE).items()}}
    engine = SparkEngine.of_tables(session, frames)
    reference = ReferenceEngine(clinic.held)
    for between in (lambda: None, {between}):
        for text in QUESTIONS:
            plan = clinic.curator.desk.plan(bind(parse(text), clinic.curator.dataset), sf.PureDP(1)).plan
            engine.check(plan)
            between()
            assert list_by_cell(engine.aggregate(plan), plan) == list_by_cell(reference.aggregate(plan), plan), text
    engine.close()
"""
KILL = """
def list_executors():
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            command = open(f"/proc/{{pid}}/cmdline").read()
            parent = open(f"/proc/{{pid}}/environ").read()
        except OSError:
            continue
        if "CoarseGrainedExecutorBackend" in command and "SFUMATO_TEST_CLUSTER={token}" in parent:
            found.append(int(pid))
    return found

killed = []
def kill_one():
    deadline = time.time() + 120
    while not list_executors() and time.time() < deadline:
        time.sleep(0.2)
    pid = list_executors()[0]
    os.kill(pid, signal.SIGKILL)
    killed.append(pid)
"""


def run(script, **environment):
    require_java()
    settings = {**os.environ, **environment, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env=settings, check=False, timeout=1_800
    )
    assert done.returncode == 0, done.stderr[-3_000:]
    return done.stdout


@pytest.mark.slow
def test_a_lost_executor_changes_nothing():
    """An executor is killed before each question: what it cached and shuffled is made again."""
    token = str(os.getpid())
    paths = json.dumps([str(HERE), str(HERE.parent)])
    kill = textwrap.dedent(KILL.format(token=token))
    script = (
        BEGIN.format(paths=paths, between="kill_one")
        + kill
        + textwrap.dedent("""
        SETTINGS["spark.executorEnv.SFUMATO_TEST_CLUSTER"] = "TOKEN"
        SETTINGS["spark.executorEnv.PYTHONPATH"] = os.pathsep.join(sys.path)
        building = SparkSession.builder.master("local-cluster[2,1,1024]")
        for name, value in SETTINGS.items():
            building = building.config(name, value)
        session = building.getOrCreate()
        compare(session)
        print("killed", len(killed))
        session.stop()
    """).replace("TOKEN", token)
    )
    assert "killed 3" in run(script, SFUMATO_TEST_CLUSTER=token)


@pytest.mark.slow
def test_spark_connect_gives_the_same_integers():
    paths = json.dumps([str(HERE), str(HERE.parent)])
    script = BEGIN.format(paths=paths, between="(lambda: None)") + textwrap.dedent("""
        building = SparkSession.builder.remote("local[2]")
        for name in ("spark.sql.shuffle.partitions", "spark.sql.execution.arrow.maxRecordsPerBatch"):
            building = building.config(name, SETTINGS[name])
        session = building.getOrCreate()
        assert type(session).__module__.startswith("pyspark.sql.connect")
        compare(session)
        print("connected")
        session.stop()
    """)
    assert "connected" in run(script)
