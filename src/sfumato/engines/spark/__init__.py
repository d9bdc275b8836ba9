"""Spark: the prepared tables are where a cluster reads them, and plans run there."""

import os
import re
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.catalog.catalog_errors import build_catalog_error
from sfumato.engines.callable_package import CallablePackage
from sfumato.errors import CatalogError, InvalidParameter, describe_kind
from sfumato.extras import imported

if TYPE_CHECKING:
    from sfumato.engines.spark.spark_backend import SparkBackend

PREPARED = re.compile(r"[?&]prepared=([^&]*)")


def choose(session: object = None, *, prepared: str | None = None) -> "SparkBackend":
    """Spark as the engine of `sf.open` and `sf.protect`.

    `session` is a SparkSession, classic or Connect. Without it: the active session, or a new one with Spark's own
    settings. `prepared` is the path below which prepared tables are stored, for example "s3://bucket/prepared". Without
    it, a frame's table is cached in the cluster, and the tables of a folder are stored in the folder.
    """
    if prepared is not None and (not isinstance(prepared, str) or not prepared):
        raise InvalidParameter("prepared", "must be a path", describe_kind(prepared), 'For example "s3://bucket/path".')
    imported("pyspark", "spark")
    from sfumato.engines.spark.spark_backend import SparkBackend  # noqa: PLC0415 - an extra

    return SparkBackend(open_session(None) if session is None else session, prepared)


def read_declared(declared: str) -> "SparkBackend":
    """What a catalog declares: "spark", "spark://host:7077" or "sc://host:15002"; ?prepared=path may follow."""
    found = PREPARED.search(declared)
    address = PREPARED.sub("", declared)
    imported("pyspark", "spark")
    from sfumato.engines.spark.spark_backend import SparkBackend  # noqa: PLC0415 - an extra

    return SparkBackend(open_session(None if address == "spark" else address), None if found is None else found[1])


def open_session(address: str | None) -> Any:  # noqa: ANN401 - a SparkSession, classic or Connect
    """The active session; or one at an address, or with Spark's own settings. The refusal says what is missing."""
    sessions = imported("pyspark.sql", "spark").SparkSession
    failed: CatalogError | None = None
    try:
        active = sessions.getActiveSession() if address is None else None
        if active is not None:
            return active
        building = sessions.builder.appName("sfumato")
        if address is not None:
            building = building.remote(address) if address.startswith("sc://") else building.master(address)
        return building.getOrCreate()
    except Exception:  # its text may hold a token of the address
        failed = _explain(address)
    raise failed


def _explain(address: str | None) -> CatalogError:
    home = os.environ.get("JAVA_HOME")
    has_java = shutil.which("java") or (home and (Path(home) / "bin" / "java").exists())
    if not has_java and not (address or "").startswith("sc://"):
        hint = "Install it, for example: apt-get install openjdk-17-jre-headless. Or set JAVA_HOME."
        return build_catalog_error("Spark needs Java 17 or newer, which was not found.", hint)
    hint = "Check that the cluster runs and can be reached; or open a session and pass it: sf.engines.spark(session)."
    return build_catalog_error("The Spark session could not be opened.", hint)


sys.modules[__name__].__class__ = CallablePackage
