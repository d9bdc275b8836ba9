"""Both sides of the pages about migration run: ours here, the peer's in an environment of its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from page_snippets import read_blocks, run_python

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "docs" / "how-to" / "migrate"
PEERS = {  # page -> the title of the peer's snippets, and what to install
    "opendp.md": ("OpenDP", ("opendp[polars]==0.16.0",)),
    "diffprivlib.md": ("diffprivlib", ("diffprivlib==0.6.6", "scikit-learn<1.8", "pandas")),
    "tumult.md": ("Tumult Analytics", ("tmlt.analytics==0.21.0",)),
    "smartnoise.md": ("SmartNoise SQL", ("smartnoise-sql==1.0.10",)),
}


def list_snippets(page, *titles):
    return [block.text for block in read_blocks(PAGES / page) if block.title in titles]


@pytest.mark.parametrize("page", PEERS)
def test_our_side_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {}
    snippets = list_snippets(page, "people.csv", "Sfumato")
    assert len(snippets) >= 3
    for snippet in snippets:
        run_python(snippet, names, page)


def test_every_snippet_has_a_side():
    for page, (title, _) in PEERS.items():
        assert {block.title for block in read_blocks(PAGES / page)} == {"people.csv", "Sfumato", title}


@pytest.mark.slow
@pytest.mark.parametrize("page", PEERS)
def test_the_peers_side_runs(page, tmp_path):
    """The peers want other versions of numpy and pandas than we do. Their environments are kept."""
    title, wanted = PEERS[page]
    place = Path(os.environ.get("SFUMATO_PEERS") or ROOT / ".venv" / "peers-of-pages") / Path(page).stem
    python = place / "bin" / "python"
    if not (place / "installed").exists():
        subprocess.run([sys.executable, "-m", "venv", place], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *wanted], check=True)
        (place / "installed").touch()
    program = tmp_path / "peer.py"
    program.write_text("\n".join(list_snippets(page, "people.csv", title)))
    own = {"PYSPARK_PYTHON": str(python), "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_LOCAL_HOSTNAME": "localhost"}
    done = subprocess.run(
        [python, program], cwd=tmp_path, env={**os.environ, **own}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
