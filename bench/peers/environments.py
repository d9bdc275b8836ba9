"""The peers' own environments. They need other versions of numpy, pandas, polars and scikit-learn than Sfumato does.

An environment is made when it is first needed, in `.venv/peers`. docs/decisions/005-dependencies.md says why each peer
cannot share ours. `SFUMATO_BENCH_PEERS` names another folder for them.
"""

import os
import subprocess
import sys
from pathlib import Path

from rich.console import Console

ROOT = Path(__file__).resolve().parents[2]
PLACE = Path(os.environ.get("SFUMATO_BENCH_PEERS") or ROOT / ".venv" / "peers")
PEERS = {
    "opendp": ("opendp[polars]==0.16.0",),
    "diffprivlib": ("diffprivlib==0.6.6", "scikit-learn<1.8", "pandas", "pyarrow"),
    "tmlt": ("tmlt.analytics==0.21.0",),
    "pipelinedp": ("pipeline-dp==0.3.1", "pandas", "pyarrow"),
    "smartnoise": ("smartnoise-sql==1.0.10", "pyarrow"),
    "pydp": ("python-dp==1.1.5", "pandas", "pyarrow"),
    "interpret": ("interpret-core==0.7.8",),
}


def find_python(name: str) -> Path:
    """The Python of the peer's environment. Install the peer if it is not there yet."""
    place = PLACE / name
    done, wanted = place / "installed", "\n".join(PEERS[name])
    if not done.exists() or done.read_text() != wanted:
        Console(stderr=True).print(f"Installing {', '.join(PEERS[name])} into {place}")
        install = [place / "bin" / "python", "-m", "pip", "install", "--quiet", *PEERS[name]]
        for command in ([sys.executable, "-m", "venv", place], install):
            subprocess.run(command, check=True, capture_output=True, text=True)
        done.write_text(wanted)
    return place / "bin" / "python"
