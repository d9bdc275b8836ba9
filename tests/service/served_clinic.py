"""A clinic behind a service, for these tests: an owner, two analysts, and their tokens."""

from dataclasses import dataclass
from pathlib import Path

from sfumato.service.accounts import Accounts
from sfumato.service.api_tokens import Tokens

CATALOG = """
[dataset]
name = "clinic"
{ledger}
[budget]
epsilon = "3"
delta = "1e-6"
[tables.people]
source = "secret-place.csv"
unit_column = "person_id"
columns.person_id = {{ type = "id" }}
columns.age = {{ type = "integer", lower = 0, upper = 120 }}
columns.city = {{ type = "category", values = ["Rome", "Oslo"] }}
columns.job = {{ type = "text" }}
columns.born = {{ type = "date", lower = "1900-01-01", upper = "2020-12-31" }}
"""
COUNT = "SELECT COUNT(*) AS n FROM people"
BY_CITY = "SELECT city, COUNT(*) AS n, AVG(age) AS age FROM people GROUP BY city"


@dataclass(frozen=True)
class Clinic:
    folder: Path
    accounts: Path
    tokens: dict[str, str]


def make_clinic(folder: Path, epsilon: str = "1", ledger: str = "") -> Clinic:
    folder.mkdir()
    rows = [f"{i},{20 + i % 60},{'Rome' if i % 3 else 'Oslo'},job{i % 5},19{10 + i % 80}-05-01" for i in range(400)]
    (folder / "secret-place.csv").write_text("\n".join(["person_id,age,city,job,born", *rows]) + "\n")
    (folder / "catalog.toml").write_text(CATALOG.format(ledger=f'ledger = "{ledger}"' if ledger else ""))
    path = folder / ".sfumato" / "accounts.db"
    accounts = Accounts(path)
    accounts.add_user("olga", "owner", "a long password of olga")
    for name in ("ann", "bob"):
        accounts.add_user(name)
        accounts.set_grant(name, "clinic", epsilon)
    tokens = {name: Tokens(accounts).make(name) for name in ("olga", "ann", "bob")}
    accounts.close()
    return Clinic(folder, path, tokens)
