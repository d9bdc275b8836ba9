"""The tables of the service's accounts: users, tokens, sessions, grants, requests, jobs, answers, the log."""

import sqlalchemy as sa

ACCOUNTS = sa.MetaData()

USERS = sa.Table(
    "service_users",
    ACCOUNTS,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("role", sa.Text, nullable=False),
    sa.Column("password", sa.Text, nullable=False),  # argon2; empty: no sign-in with a password
    sa.Column("active", sa.Boolean, nullable=False),
)
TOKENS = sa.Table(
    "service_tokens",
    ACCOUNTS,
    sa.Column("id", sa.Text, primary_key=True),  # public: to list and to revoke
    sa.Column("digest", sa.Text, nullable=False, unique=True),  # keyed hash of the secret part
    sa.Column("user", sa.Text, sa.ForeignKey("service_users.name"), nullable=False),
    sa.Column("label", sa.Text, nullable=False),
    sa.Column("created", sa.Text, nullable=False),
    sa.Column("expires", sa.Text, nullable=False),
    sa.Column("revoked", sa.Boolean, nullable=False),
)
GRANTS = sa.Table(
    "service_grants",
    ACCOUNTS,
    sa.Column("user", sa.Text, sa.ForeignKey("service_users.name"), primary_key=True),
    sa.Column("dataset", sa.Text, primary_key=True),
    sa.Column("epsilon", sa.Text, nullable=False),
    sa.Column("delta", sa.Text, nullable=False),
    sa.Column("per_query", sa.Text, nullable=False),  # empty: no limit on a single question
    sa.Column("per_query_delta", sa.Text, nullable=False, server_default=""),  # empty: the delta of the whole grant
    sa.Column("expires", sa.Text, nullable=False),  # empty: never
)
REQUESTS = sa.Table(
    "service_requests",
    ACCOUNTS,
    sa.Column("user", sa.Text, primary_key=True),
    sa.Column("key", sa.Text, primary_key=True),  # the Idempotency-Key
    sa.Column("digest", sa.Text, nullable=False),  # of the request that came with it
    sa.Column("failure", sa.Text, nullable=False),  # what a retry is told, if its charge was closed; else empty
    sa.Column("time", sa.Text, nullable=False),
    sa.Column("since", sa.Integer, nullable=False, server_default="0"),  # the ledger's last entry at the first attempt
    sa.Column("state", sa.Text, nullable=False, server_default=""),  # the declarations and the data at that time
    sa.Column("answer", sa.Text, nullable=False, server_default=""),  # as JSON, once there is one: released already
)
LOG = sa.Table(
    "service_log",
    ACCOUNTS,
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("time", sa.Text, nullable=False),
    sa.Column("user", sa.Text, nullable=False),
    sa.Column("action", sa.Text, nullable=False),
    sa.Column("dataset", sa.Text, nullable=False),
    sa.Column("detail", sa.Text, nullable=False),  # never a password, a token or a value from the data
)
SESSIONS = sa.Table(
    "service_sessions",
    ACCOUNTS,
    sa.Column("digest", sa.Text, primary_key=True),  # keyed hash of the secret of a cookie, or of a sign-in link
    sa.Column("user", sa.Text, sa.ForeignKey("service_users.name"), nullable=False),
    sa.Column("kind", sa.Text, nullable=False),  # session or link
    sa.Column("expires", sa.Text, nullable=False),
)
FAILED_SIGN_INS = sa.Table(
    "service_failed_sign_ins",
    ACCOUNTS,
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("who", sa.Text, nullable=False, index=True),  # keyed hash of the name that was tried
    sa.Column("time", sa.Text, nullable=False),
)
ANSWERS = sa.Table(
    "service_answers",
    ACCOUNTS,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("user", sa.Text, sa.ForeignKey("service_users.name"), nullable=False),
    sa.Column("dataset", sa.Text, nullable=False),
    sa.Column("asked", sa.Text, nullable=False),  # the question and its price, as JSON
    sa.Column("answer", sa.Text, nullable=False),  # as the API sends it: released already
    sa.Column("time", sa.Text, nullable=False),
)
STATE = sa.Table(
    "service_state",
    ACCOUNTS,
    sa.Column("single", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("grants_version", sa.Integer, nullable=False),  # rises when a grant changes, so that workers notice
    sa.Column("access_version", sa.Integer, nullable=False, server_default="1"),  # the same for users and tokens
)
DATASETS = sa.Table(
    "service_datasets",
    ACCOUNTS,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("folder", sa.Text, nullable=False),  # of a dataset that an owner registered on the pages
)
JOBS = sa.Table(
    "service_jobs",
    ACCOUNTS,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("user", sa.Text, sa.ForeignKey("service_users.name"), nullable=False),
    sa.Column("dataset", sa.Text, nullable=False),
    sa.Column("asked", sa.Text, nullable=False),  # the request, as JSON
    sa.Column("stage", sa.Text, nullable=False),  # waiting, running, done, failed or cancelled
    sa.Column("outcome", sa.Text, nullable=False),  # the answers or the problem document, as JSON
    sa.Column("key", sa.Text, nullable=False),  # its Idempotency-Key, under which it is started again
    sa.Column("time", sa.Text, nullable=False),
)


def add_missing_columns(connection: sa.Connection) -> None:
    """Bring tables of an earlier version up to date. Every new column has a default."""
    found = sa.inspect(connection)
    for table in ACCOUNTS.sorted_tables:
        known = {column["name"] for column in found.get_columns(table.name)}
        for column in table.columns:
            if column.name not in known:
                written = sa.schema.CreateColumn(column).compile(dialect=connection.dialect)
                connection.exec_driver_sql(f"ALTER TABLE {table.name} ADD COLUMN {written}")
