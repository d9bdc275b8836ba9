"""Both clients judge the same hostile surveys alike: altered at random, most signed again, some cut or mixed."""

import copy
import random
from collections import Counter

import pytest
from make_vectors import FixedKey, whole_surveys
from test_javascript import run

from sfumato.errors import CatalogError
from sfumato.kernel.exact import write_plain
from sfumato.local.survey.manifest import identify, read_manifest

KEY = FixedKey()
SURVEYS = [dict(survey.manifest.statement) for _, survey in whole_surveys(KEY)]
NUMBERS = (0, 1, -1, 2, 3, 2**31, 2**32 - 1, 2**32, 2**53 - 1, -(2**53 - 1))
TEXTS = (
    "", "0", "1", "-0", "1e-5", "0.9999999", "1.0000001", "1e999", "1e-999", "00", "0x1", "1.", "\u0661", "a" * 401,
    "\u2028", "\U0001f600", "\uffff", "https://x", "https://x y", "http://x", "2026-02-30T00:00:00Z",
    "2026-01-01T24:00:00Z",
    "2026-01-01T00:00:60Z", "2199-12-31T23:59:59Z", "__proto__", "constructor", "rr", "krr", "oue", "sue", "olh",
    "hadamard", "subset", "duchi", "piecewise", "hybrid", "laplace", "questions", "pem", "categories", "numbers",
    "gaussian", "words", "0.00001",
)  # fmt: skip
VALUES = (None, True, False, *NUMBERS, *TEXTS, [], {}, [1], {"a": 1})
NAMES = ("x", "__proto__", "k", "coins", "epsilon", "\U0001f600", "\ufb33", "constructor")
VERDICTS = """
import { readFileSync } from "node:fs";
import { readManifest } from "./src/manifest.js";
import { fromHex } from "./src/randomness.js";
for (const line of readFileSync(process.argv[1], "utf8").trim().split("\\n")) {
  const verdict = await readManifest(fromHex(line)).then(
    (found) => `taken ${found.table.epsilon.text} ${found.price.text} ${found.priceDelta.text} ${found.digest}`,
    (error) => error.code ?? `crashed: ${error.stack}`,
  );
  console.log(verdict);
}
"""


def places(value, path=()):
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, part in inner:
        yield (*path, name)
        yield from places(part, (*path, name))


def alter(statement, dice):
    *above, name = dice.choice(list(places(statement)))
    parent = statement
    for step in above:
        parent = parent[step]
    old, what = parent[name], dice.random()
    if what < 0.35 and type(old) is int:
        parent[name] = dice.choice(
            [old + 1, old - 1, 2 * old, old // 2, -old, 2**32 - old, old + dice.randrange(10**6)]
        )
    elif what < 0.65:
        parent[name] = copy.deepcopy(dice.choice(VALUES))
    elif what < 0.75:
        del parent[name]
    elif what < 0.85 and isinstance(parent, dict):
        parent[dice.choice(NAMES)] = copy.deepcopy(dice.choice(VALUES))
    elif isinstance(parent, list):
        parent.append(copy.deepcopy(old))
    else:
        field = dice.choice(["mechanism", "domain", "memoise", "epsilon", "period_days", "version"])
        statement[field] = copy.deepcopy(dice.choice(SURVEYS).get(field))


def mixed(data, dice):
    place = dice.randrange(len(data))
    byte = dice.choice([b"", bytes([dice.randrange(256)]), b" ", b"\\", b'"', b"0", b".", b"\xef\xbb\xbf", b"\xc0"])
    return data[:place] + byte + data[place + dice.randrange(2) :]


def documents(seed, count):
    dice = random.Random(seed)
    for _ in range(count):
        statement = copy.deepcopy(dice.choice(SURVEYS))
        for _ in range(dice.choice([0, 1, 1, 1, 2, 3])):
            alter(statement, dice)
        try:
            if dice.random() < 0.9:
                statement["id"] = identify(statement)
            data = KEY.sign(statement)
        except ValueError:  # a number that no canonical text has
            continue
        yield mixed(data, dice) if dice.random() < 0.2 else data


def verdict(data):
    try:
        found = read_manifest(data)
    except CatalogError as refused:
        return refused.code
    losses = (found.table.epsilon, found.price, found.price_delta)
    return f"taken {' '.join(write_plain(loss) for loss in losses)} {found.digest}"


@pytest.mark.parametrize("seed", [1, 2])
def test_the_same_surveys_are_taken_and_refused(seed, tmp_path):
    all_of_them = list(documents(seed, 1500))
    (tmp_path / "documents").write_text("\n".join(data.hex() for data in all_of_them))
    done = run("--input-type=module", "-e", VERDICTS, str(tmp_path / "documents"))
    assert done.returncode == 0, done.stderr
    ours, theirs = [verdict(data) for data in all_of_them], done.stdout.splitlines()
    assert len(ours) == len(theirs)
    for data, first, second in zip(all_of_them, ours, theirs, strict=True):
        assert first == second, data
    counts = Counter(line.split()[0] for line in ours)
    assert counts["taken"] > 100
    assert counts.keys() >= {
        f"survey-{kind}" for kind in ("form", "version", "signature", "id", "field", "table", "epsilon")
    }
