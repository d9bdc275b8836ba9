"""A Spark session of our own beside the owner's, so that no setting of the owner's session changes a query."""

from typing import Any

from sfumato.catalog.catalog_errors import build_catalog_error

Session = Any  # a SparkSession, classic or Connect: their classes have no common base in every version
SETTINGS = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.caseSensitive": "false",
    "spark.sql.groupByAliases": "true",
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.decimalOperations.allowPrecisionLoss": "true",
    "spark.sql.legacy.literal.pickMinimumPrecision": "true",
    "spark.sql.optimizer.maxIterations": "200",  # of nested expressions; a plan that is cut off is slow, not wrong
}
TAKEN_OVER = ("spark.sql.shuffle.partitions", "spark.sql.adaptive.enabled")


def check_session(session: Session) -> Session:
    """The session, or a refusal of what is none."""
    if hasattr(session, "sql") and hasattr(session, "createDataFrame") and hasattr(session, "conf"):
        return session
    hint = "For example: SparkSession.builder.getOrCreate(), or .remote('sc://host') for Spark Connect."
    raise build_catalog_error("This is not a Spark session.", hint)


def open_own_session(session: Session) -> Session:
    """A new session of the same application, with our settings. It sees no temporary view of the owner's.

    Spark Connect before 4.3 has no new sessions: the owner's own session is used, if it has these settings.
    """
    try:
        own = session.newSession()
    except (AttributeError, NotImplementedError, RuntimeError):
        for name, value in SETTINGS.items():
            if str(session.conf.get(name, value)).lower() != value.lower():
                hint = f'Set it: spark.conf.set("{name}", "{value}"). Or use PySpark 4.3 or newer.'
                raise build_catalog_error(f"The Spark session has another {name} than {value}.", hint) from None
        return session
    for name in TAKEN_OVER:
        own.conf.set(name, session.conf.get(name))
    for name, value in SETTINGS.items():
        own.conf.set(name, value)
    return own
