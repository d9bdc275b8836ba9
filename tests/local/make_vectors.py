"""What every client must do alike: `python tests/local/make_vectors.py` writes vectors.json; both test suites read it.

Everything here is a function of fixed bytes, so that making the file again gives the same file.
"""

import json
import sys
from copy import deepcopy
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from hashlib import sha256
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from scripted import Scripted

import sfumato as sf
from sfumato.errors import SfumatoError
from sfumato.kernel.exact import write_plain
from sfumato.local.mechanisms.coin_tables import UNITS, bound_ratio_loss
from sfumato.local.mechanisms.permanent_coins import PermanentCoins
from sfumato.local.mechanisms.two_stage import TwoStage
from sfumato.local.randomisers.category_tables import describe_category_table
from sfumato.local.randomisers.two_stage_randomisers import memoise
from sfumato.local.randomisers.word_bits import Words
from sfumato.local.survey.announcement import read_announcement
from sfumato.local.survey.canonical_json import NotCanonical, parse_canonical, write_canonical
from sfumato.local.survey.device import write_permanent_purpose
from sfumato.local.survey.domains import AnyWord, draw_report
from sfumato.local.survey.key_ring import TrustedKey, read_ring
from sfumato.local.survey.manifest import MOST_BYTES, identify, read_manifest
from sfumato.local.survey.new_survey import Renewal, SurveyKey, new_survey
from sfumato.local.survey.survey_refusals import REFUSALS

PLACE = Path(__file__).with_name("vectors.json")
BEGINS = datetime(2026, 1, 1, tzinfo=UTC)


def some_bytes(name, count):
    """Fixed bytes that look random."""
    blocks = (sha256(f"{name} {index}".encode()).digest() for index in range(-(-count // 32)))
    return b"".join(blocks)[:count]


class FixedKey(SurveyKey):
    """A key for tests only: its secret is public."""

    def __init__(self, name="key"):
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
        from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

        self._key = Ed25519PrivateKey.from_private_bytes(some_bytes(name, 32))
        self.public_key = self._key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw).hex()


def words(*values):
    return b"".join(int(value).to_bytes(4, "little") for value in values)


def tables():
    yield sf.local.randomiser("rr", epsilon=1)
    yield sf.local.randomiser("rr", truth=Fraction(3, 4))
    for name in ("krr", "subset", "oue", "sue", "olh", "hadamard"):
        for k, epsilon in ((2, "0.5"), (3, 1), (7, "0.1"), (17, 3), (100, 1)):
            yield sf.local.randomiser(name, k=k, epsilon=epsilon)
    yield sf.local.randomiser("krr", k=70_000, epsilon=2)
    yield sf.local.randomiser("olh", k=1 << 20, epsilon=6)
    for name in ("duchi", "piecewise", "hybrid", "laplace"):
        for epsilon in ("0.5", 2):
            yield sf.local.mean_randomiser(name, lower="-2.5", upper="7.25", epsilon=epsilon)
    for method in ("split", "sample"):
        for count in (1, 5, 12):
            yield sf.local.questions(count, epsilon=1, method=method)
    for epsilon, delta in ((4, "1e-3"), ("0.7", "0.05")):
        yield sf.local.mean_randomiser("gaussian", lower="-2.5", upper="7.25", epsilon=epsilon, delta=delta)
    yield sf.local.heavy_hitters(4, 2, alphabet="abcdefghijklmnopqrstuvwxyz")
    yield sf.local.heavy_hitters(1, "0.3")  # one group, two hashes
    yield sf.local.heavy_hitters(7, 5, step=5)


def answers(table):
    match table:
        case sf.local.Randomiser():
            return sorted({0, 1, table.k // 2, table.k - 1})
        case sf.local.MeanRandomiser():
            return [0, 1, UNITS // 3, UNITS // 2, UNITS - 1, UNITS]
        case sf.local.HeavyHitters():
            texts = ("a", "work", "b" * table.words.length)
            return [AnyWord(table.words).read(text, table) for text in texts]
        case _:
            full = (1 << table.count) - 1
            return [value.to_bytes(-(-table.count // 8), "little").hex() for value in sorted({0, 1, full // 3, full})]


def scripts(table, name):
    """More bytes than any report reads. Some begin so that words tie, or must be drawn again."""
    size = 16 + 8 * getattr(table, "k", 16) + getattr(table.form, "bytes", 0)
    yield some_bytes(f"{name} first", size)
    yield some_bytes(f"{name} second", size)
    yield bytes(size // 2) + some_bytes(f"{name} low", size)
    yield b"\xff" * min(size // 2, 64) + some_bytes(f"{name} high", size)
    if isinstance(table, sf.local.Randomiser) and table.name == "subset":
        chosen, places = table.mechanism.size, table.k - 1
        ascending = list(range(10, 10 + places))
        for low, high in ((0, places), (chosen - 2, chosen), (chosen - 1, chosen + 1)):  # all tie, or at one border
            tied = [7 if low <= place < high and low >= 0 else word for place, word in enumerate(ascending)]
            least = [word - 8 if place < low else word for place, word in enumerate(tied)]
            yield words(UNITS - 1, *least) + some_bytes(f"{name} tied", size)


def a_report(table, answer, script):
    source = Scripted(script)
    try:
        report = draw_report(table, answer, source)
    except Exception as error:
        if type(error).__name__ == "Exhausted":
            return None
        raise
    used = len(script) - source.left.size
    return {"answer": answer, "script": script[:used].hex(), "report": report}


def reports():
    for index, table in enumerate(tables()):
        drawn = [
            a_report(table, answer, script)
            for answer in answers(table)
            for number, script in enumerate(scripts(table, f"report {index}"))
            if number < 2 or getattr(table, "k", 0) < 50 or answer == 0
        ]
        yield {
            "description": table.describe(),
            "epsilon": write_plain(table.epsilon),
            "delta": write_plain(getattr(table, "delta", Decimal(0))),
            "draws": [draw for draw in drawn if draw is not None],
        }


def word_bits():
    for length, alphabet in ((4, "abcdefghijklmnopqrstuvwxyz"), (3, ""), (5, "é√x\U0001f600"), (2, "ab")):
        for word in ("a", "ab", "abcdefgh", "é√x", "\U0001f600x", "", "a\0b", "A", "münch", "é"):
            made = Words(length, alphabet)
            try:
                bits = AnyWord(made).read(word, None)
            except SfumatoError:
                bits = None
            yield {"length": length, "alphabet": alphabet, "word": word, "bits": bits}


def stages():
    for name, k in (("rr", 2), ("krr", 5), ("oue", 9), ("sue", 9)):
        table = memoise(name, k=k, longitudinal_epsilon=sf.PureDP(2).epsilon, epsilon=sf.PureDP("0.7").epsilon)
        staged = table.mechanism
        assert isinstance(staged, TwoStage)
        draws = []
        for number in range(4):
            script = some_bytes(f"{name} again {number}", 8 * k)
            kept = staged.permanent.draw(np.array([number % k]), Scripted(some_bytes(f"{name} {number}", 8 * k)))
            source = Scripted(script)
            again = table.form.encode(staged.draw_again(kept, source))[0]
            used = len(script) - source.left.size
            draws.append({"kept": table.form.encode(kept)[0], "script": script[:used].hex(), "report": again})
        yield {
            "permanent": describe_category_table(staged.permanent),
            "instantaneous": describe_category_table(staged.instantaneous),
            "epsilon": write_plain(table.epsilon),
            "longitudinal_epsilon": write_plain(bound_ratio_loss(staged.permanent.ratio)),
            "draws": draws,
        }


def memos():
    secret = some_bytes("secret", 32)
    for index, table in enumerate(tables()):
        digest = sha256(f"survey {index}".encode()).hexdigest()
        for renewal in (0, 3):
            answer = answers(table)[-1]
            report = draw_report(
                table, answer, PermanentCoins(secret, write_permanent_purpose(digest, renewal, answer))
            )
            yield {
                "secret": secret.hex(), "digest": digest, "renewal": renewal, "answer": answer,
                "description": table.describe(), "report": report,
            }  # fmt: skip


def losses():
    ratios = [(1, 1), (3, 1), (1, 3), (2**32 - 1, 1), (1, 2**32 - 1), (2**31 + 1, 2**31 - 1), (10, 7)]
    ratios += [(3**40, 2**40), (10**30 + 1, 10**30), (7**200, 5), (2**32 - 1, 2**32 - 2)]
    for numerator, denominator in ratios:
        loss = bound_ratio_loss(Fraction(numerator, denominator))
        yield {"numerator": str(numerator), "denominator": str(denominator), "epsilon": write_plain(loss)}


def positions():
    for lower, upper in (("0", "10"), ("-2.5", "7.25"), ("1e-9", "3e-9"), ("-1e+25", "1e+25"), ("0.1", "0.3")):
        made = sf.local.mean_randomiser("duchi", lower=lower, upper=upper, epsilon=1)
        low, high = float(lower), float(upper)
        for value in (low, high, low - 1, high + 1, (low + high) / 2, low + (high - low) / 3, low + (high - low) * 0.7):
            yield {"lower": lower, "upper": upper, "value": value, "position": int(made.positions(value)[0][0])}


def texts():
    """JSON documents, and whether each is the canonical text of its content."""
    for text in (
        "{}", "[]", "0", "-1", "9007199254740991", "null", "true", '""', '"é"', '"\\n"', '"\\u0007"', '"\\u001f"',
        '{"a":1,"b":[1,2,{"c":null}]}', '{"10":0,"9":1}', '{"\U0001f600":1,"\ufb33":2}', '"\u2028\x7f"',
        "9007199254740992", "-0", "1.0", "1e2", "1.5", "NaN", "Infinity", " 1", "1 ", "[1, 2]", '{"b":1,"a":2}',
        '{"a":1,"a":1}', '{"a":1,"a":2}', '"\\u00e9"', '"\\/"', '"\\ud83d\\ude00"', '"\\ud800"', '"\\u000A"', "{", "",
        '{"\ufb33":2,"\U0001f600":1}', "\ufeff1", '"\t"', "[" * 40 + "]" * 40, "1" * 400, "[01]", "tru", '"a\x00"',
        '{"__proto__":1}', '{"a":{"__proto__":{"b":1}}}', "[" * 15 + "]" * 15, "'a'", "// 1\n1", "[1,]",
    ):  # fmt: skip
        data = text.encode("utf-8", "surrogatepass")
        yield {"hex": data.hex(), "canonical": is_canonical(data)}
    for data in (b"\xff", b'"\xed\xa0\x80"', b'"\xc3"', b"\x00"):
        yield {"hex": data.hex(), "canonical": is_canonical(data)}


def is_canonical(data):
    try:
        parse_canonical(data)
    except NotCanonical:
        return False
    return True


def whole_surveys(key):
    yield "categories", new_survey("Which?", epsilon=1, key=key, labels=list("abcdef"), begins=BEGINS)
    yield "yes or no", new_survey("Do you?", epsilon="0.5", key=key, labels=["no", "yes"], begins=BEGINS)
    yield "numbers", new_survey("How long?", epsilon=2, key=key, bounds=(0, 24), begins=BEGINS)
    yield "questions", new_survey("Which of these?", epsilon=1, key=key, questions=["ä", "b", "c"], begins=BEGINS)
    yield "words", new_survey("Which word?", epsilon=2, key=key, words=6, alphabet="abcdefgh", begins=BEGINS)
    yield "bytes", new_survey("Which word?", epsilon=1, key=key, words=9, begins=BEGINS)
    yield (
        "delta",
        new_survey("How long?", epsilon=4, delta="0.01", key=key, bounds=(0, 24), mechanism="gaussian", begins=BEGINS),
    )
    yield (
        "two stages, k-ary",
        new_survey(
            "Which?", epsilon=1, key=key, labels=list("abcd"), period_days=7, renewal=Renewal(2, 10), begins=BEGINS
        ),
    )
    yield (
        "two stages, rows",
        new_survey(
            "Which of many?", epsilon=1, key=key, labels=[f"site {site}" for site in range(40)], mechanism="sue",
            period_days=1, renewal=Renewal(3, 30), lifetime_epsilon=6, begins=BEGINS,
        ),
    )  # fmt: skip
    yield (
        "repeated",
        new_survey(
            "How long?", epsilon=1, key=key, bounds=("-1.5", 8), period_days=7, renewal=Renewal(1, 4), begins=BEGINS
        ),
    )
    yield (
        "weekly",
        new_survey(
            "Which?", epsilon="0.5", key=key, labels=list("abc"), period_days=7, lifetime_epsilon=3, begins=BEGINS
        ),
    )


def signed(key, statement, renamed=True):
    if renamed:
        statement["id"] = identify(statement)
    return key.sign(statement)


def changed(statement, **changes):
    after = deepcopy(statement)
    after.update(changes)
    return after


def altered(key):
    """Surveys that must be refused, and some that must not, by name."""
    surveys = {name: json.loads(survey.manifest.to_bytes())["survey"] for name, survey in whole_surveys(key)}
    documents = {name: survey.manifest.to_bytes() for name, survey in whole_surveys(key)}
    plain_one, staged = surveys["categories"], surveys["two stages, k-ary"]
    text = documents["categories"]
    yield from documents.items()
    yield "without the last line end", text[:-1]
    yield "two line ends", text + b"\n"
    yield "spaces", json.dumps(json.loads(text)).encode()
    yield "empty", b""
    yield "not an object", b"[]\n"
    yield "unsigned", write_canonical({"survey": plain_one})
    yield "huge", text[:-1] + b" " * MOST_BYTES
    yield "not text", b"\xff\xfe" + text
    yield "more around it", write_canonical({**json.loads(text), "more": 1})
    for name in ("public_key", "signature"):
        around = json.loads(text)
        yield f"{name}: upper case", write_canonical({**around, name: around[name].upper()})
        yield (
            f"{name}: one digit",
            write_canonical({**around, name: ("0" if around[name][0] != "0" else "1") + around[name][1:]}),
        )
        yield f"{name}: short", write_canonical({**around, name: around[name][:-2]})
        yield f"{name}: a number", write_canonical({**around, name: 1})
    yield "question altered", text.replace(b"Which?", b"Whose?")
    coins = plain_one["mechanism"]["coins"]
    name = next(iter(coins))
    yield "table altered", text.replace(str(coins[name]).encode(), str(coins[name] + 1).encode())
    for version in (0, 2, 3, 4, "1", None, True):
        yield f"version {version!r}", signed(key, changed(plain_one, version=version))
    yield "another format", signed(key, changed(plain_one, format="survey"))
    yield "another id", signed(key, changed(plain_one, id="0" * 32), renamed=False)
    yield "an id that is a number", signed(key, changed(plain_one, id=1), renamed=False)
    bolder = deepcopy(plain_one)
    bolder["mechanism"]["coins"][name] += 1 << 20
    yield "a bolder table, signed", signed(key, bolder)
    yield "a bolder table, stated", signed(key, changed(bolder, epsilon="1.01", lifetime_epsilon="1.01"))
    shyer = deepcopy(plain_one)
    shyer["mechanism"]["coins"][name] -= 1 << 20
    yield "a shyer table", signed(key, shyer)
    for label, coin in (
        ("zero", 0),
        ("all", UNITS),
        ("negative", -1),
        ("true", True),
        ("text", "1"),
        ("nothing", None),
    ):
        broken = deepcopy(plain_one)
        broken["mechanism"]["coins"][name] = coin
        yield f"a coin of {label}", signed(key, broken)
    for field in sorted(plain_one):
        less = {other: value for other, value in plain_one.items() if other != field}
        yield f"without {field}", signed(key, less, renamed=field != "id")
    yield "an unknown field", signed(key, changed(plain_one, note="hello"))
    wrong = {
        "question": ["", 1, None, "x" * 4001, "é" * 2001],
        "epsilon": ["0", "-1", "1.", ".5", "one", 1, None, "", "1e", "٣", "1_0", " 1", "0x1", "1e0001", "1e-400"],
        "lifetime_epsilon": ["0", "0.5", 1, "nan", "inf"],
        "period_days": [-1, 3661, "1", None, True],
        "minimum_batch": [0, -1, "1", None, 10**9 + 1, True],
        "endpoint": ["http://example.org", "ftp://x", "https://", "https://a b", 1, None, "https://" + "x" * 2001],
        "created": ["2026-13-01T00:00:00Z", "2026-01-01", "2026-02-30T00:00:00Z", "1999-01-01T00:00:00Z", 0,
                    "2026-01-01T24:00:00Z", "2026-01-01T00:00:60Z", "2026-01-01T00:00:00+0", "2027-01-01T00:00:00Z"],
        "expires": ["2025-01-01T00:00:00Z", "2026-01-01T00:00:00Z", None],
        "memoise": [1, {}, [], "no", False, {"periods": 1, "epsilon": "1", "instantaneous": None}],
        "domain": [None, {}, [], {"kind": "categories"}, {"kind": "categories", "labels": list("abcde")},
                   {"kind": "categories", "labels": list("abcdea")}, {"kind": "categories", "labels": "abcdef"},
                   {"kind": "categories", "labels": ["a", "b", "c", "d", "e", ""]},
                   {"kind": "categories", "labels": ["a", "b", "c", "d", "e", 1]},
                   {"kind": "questions", "labels": list("abcdef")}, {"kind": "words", "labels": list("abcdef")},
                   {"kind": "categories", "labels": list("abcdef"), "more": 1},
                   {"kind": "numbers", "lower": "0", "upper": "1"}, {"kind": "numbers", "lower": 0, "upper": 1}],
        "mechanism": [None, [], {}, "krr", {"mechanism": "krr"}, {"mechanism": "pem"}, {"mechanism": "toString"},
                      {"mechanism": "__proto__"}, {"mechanism": 1},
                      {"mechanism": "krr", "k": 6, "coins": {"keep": 1 << 31}, "epsilon": "1"},
                      {"mechanism": "krr", "k": 6, "coins": {"keep": 1 << 31, "drop": 1}},
                      {"mechanism": "krr", "k": 6, "coins": {"keep": 1 << 29}},
                      {"mechanism": "rr", "k": 6, "coins": {"keep": 1 << 31}},
                      {"mechanism": "krr", "k": 7, "coins": {"keep": 1 << 30}},
                      {"mechanism": "krr", "k": 6, "coins": {"keep": 1 << 30}},
                      {"mechanism": "krr", "k": "6", "coins": {"keep": 1 << 30}},
                      {"mechanism": "oue", "k": 6, "coins": {"one": 1 << 31, "zero": 1 << 31}},
                      {"mechanism": "oue", "k": 6, "coins": {"one": 1 << 31, "zero": 1 << 30}},
                      {"mechanism": "subset", "k": 6, "size": 6, "coins": {"include": 1 << 31}},
                      {"mechanism": "subset", "k": 6, "size": 3, "coins": {"include": 1 << 31}},
                      {"mechanism": "subset", "k": 6, "size": 2, "coins": {"include": 1 << 31}},
                      {"mechanism": "olh", "k": 6, "hash_bits": 2, "polynomial": 9, "coins": {"keep": 1 << 31}},
                      {"mechanism": "olh", "k": 6, "hash_bits": 2, "polynomial": -11, "coins": {"keep": 1 << 31}},
                      {"mechanism": "olh", "k": 6, "hash_bits": 2, "polynomial": 11, "coins": {"keep": 1 << 31}},
                      {"mechanism": "olh", "k": 6, "hash_bits": 2, "polynomial": 13, "coins": {"keep": 1 << 31}},
                      {"mechanism": "olh", "k": 6, "hash_bits": 2, "polynomial": 11, "coins": {"keep": 1 << 30}},
                      {"mechanism": "olh", "k": 6, "hash_bits": 21, "polynomial": 11, "coins": {"keep": 1 << 31}},
                      {"mechanism": "hadamard", "k": 6, "coins": {"keep": 1 << 31}},
                      {"mechanism": "hadamard", "k": 6, "coins": {"keep": 3 << 30}},
                      {"mechanism": "duchi", "lower": "0", "upper": "1", "coins": {"keep": 3 << 30}},
                      {"mechanism": "krr", "k": 6, "coins": {"keep": 1 << 30}, "lower": 1}],
    }  # fmt: skip
    for field, values in wrong.items():
        for number, value in enumerate(values):
            stated = {} if field in ("epsilon", "lifetime_epsilon") else {"epsilon": "3", "lifetime_epsilon": "3"}
            yield f"{field} {number}", signed(key, changed(plain_one, **{**stated, field: value}))
    for number, memo in enumerate(
        [
            {**staged["memoise"], "periods": 0}, {**staged["memoise"], "periods": "1"},
            {**staged["memoise"], "epsilon": "1.9"}, {**staged["memoise"], "more": 1}, {**staged["memoise"]},
            {**staged["memoise"], "instantaneous": {"mechanism": "krr", "k": 5, "coins": {"keep": 1 << 31}}},
            {**staged["memoise"], "instantaneous": {"mechanism": "sue", "k": 4, "coins": {"one": 9, "zero": 1}}},
            {**staged["memoise"], "instantaneous": {"mechanism": "hadamard", "k": 4, "coins": {"keep": 3 << 30}}},
            {**staged["memoise"], "instantaneous": {"mechanism": "krr", "k": 4, "coins": {"keep": 1 << 31}}},
            {**staged["memoise"], "instantaneous": {"mechanism": "krr", "k": 4, "coins": {"keep": UNITS - 1}}},
            {**staged["memoise"], "instantaneous": None}, {**staged["memoise"], "instantaneous": 1},
            {**staged["memoise"], "instantaneous": {}},
        ]
    ):  # fmt: skip
        yield f"memoise {number} of two stages", signed(key, changed(staged, memoise=memo))
    yield "memoised, but once", signed(key, changed(staged, period_days=0))
    yield from word_surveys(key, surveys["words"])
    yield from delta_surveys(key, surveys["delta"], plain_one)
    numbers = surveys["numbers"]
    for number, mechanism in enumerate(mean_descriptions(numbers["mechanism"])):
        yield f"mean {number}", signed(key, changed(numbers, mechanism=mechanism, epsilon="9", lifetime_epsilon="9"))
    questions = surveys["questions"]
    for number, change in enumerate(
        [
            {"method": "all"}, {"count": 2}, {"count": 0}, {"coins": {"keep": 1 << 31}}, {"method": "split"},
            {"coins": {"keep": UNITS - 1}}, {"count": 1 << 13},
        ]
    ):  # fmt: skip
        yield (
            f"question {number}",
            signed(key, changed(questions, mechanism={**questions["mechanism"], **change}, epsilon="9",
                                lifetime_epsilon="9")),
        )  # fmt: skip

    many = {"mechanism": "questions", "method": "split", "count": 200, "coins": {"keep": (1 << 31) + 12 * 1000}}
    labels = {"kind": "questions", "labels": [str(number) for number in range(200)]}
    yield "many questions", signed(key, changed(questions, domain=labels, mechanism=many))


def word_surveys(key, asked):
    """Alterations of a survey of words."""
    table, domain = asked["mechanism"], asked["domain"]
    for number, change in enumerate(
        [
            {"length": 5}, {"length": "6"}, {"length": True}, {"alphabet": "abcdefg"}, {"alphabet": 1}, {"lengths": []},
            {"lengths": [24]}, {"lengths": [16, 23]}, {"lengths": [16, 16, 24]}, {"lengths": [12, "24"]},
            {"lengths": [4, 24]}, {"lengths": [3, 24]}, {"lengths": [True, 20, 24]}, {"lengths": [12, 24]},
            {"lengths": 24}, {"hash_bits": 0}, {"hash_bits": 9}, {"hash_bits": "3"}, {"hash_bits": 1},
            {"coins": {"keep": 1}}, {"coins": {"keep": UNITS}}, {"coins": {"keep": UNITS - 1}}, {"coins": {}},
            {"hash_bits": True}, {"more": 1}, {"lengths": [1 << 52, 24]},
        ]
    ):  # fmt: skip
        altered = changed(asked, mechanism={**table, **change}, epsilon="9", lifetime_epsilon="9")
        yield f"prefixes {number}", signed(key, altered)
    for number, change in enumerate(
        [
            {"length": 5}, {"length": 0}, {"length": 513}, {"length": "6"}, {"length": True}, {"alphabet": "abcdefgg"},
            {"alphabet": "".join(chr(300 + place) for place in range(5000))}, {"alphabet": None}, {"more": 1},
            {"length": 512}, {"alphabet": "abcdefghi"}, {"alphabet": "abcdefg\U0001f600"}, {"alphabet": ""},
        ]
    ):  # fmt: skip
        yield f"words {number}", signed(key, changed(asked, domain={**domain, **change}))
    yield "words in version 1", signed(key, changed(asked, version=1))


# of an epsilon of 4 or a little less: a loss that is written with more than 60 decimals could not be stored
SPELLINGS = (
    "4.", " 4", "4 ", "+4", "4E0", "4e0", "40e-1", "0.4e1", "0.4e+1", "04", ".4e1", "4_0e-1", "-4", "4e0.5", "", "e1",
    f"3.{'9' * 60}", f"3.{'9' * 61}", f"3{'9' * 39}e-39", f"3{'9' * 39}e-99", f"39.{'9' * 59}e-1", f"39.{'9' * 60}e-1",
    f"399.{'9' * 60}e-2", f"40.{'0' * 60}e-1", f"0.{'0' * 58}40e59", f"4{'0' * 39}e-39", f"4{'0' * 40}e-40",
    "\u0664", "4e00", "4e0000", "4e-999", "4e999",
)  # fmt: skip


def delta_surveys(key, asked, pure):
    """Alterations of a survey with a delta."""
    noise = asked["mechanism"]["noise"]
    for number, change in enumerate(
        [
            {"noise": [noise[0] + 1, *noise[1:]]}, {"noise": [noise[0] + 2 * noise[-1], *noise[1:-1]]},
            {"noise": noise[:1]}, {"noise": [UNITS]}, {"noise": [*noise, 0]},
            {"noise": [str(noise[0]), *noise[1:]]}, {"noise": "noise"},
            {"noise": [UNITS - 2 * 8193] + [1] * 8193}, {"noise": [UNITS - 2 * 5] + [1] * 5}, {"steps": 3},
            {"steps": 8},
            {"steps": 64}, {"steps": "16"}, {"steps": True}, {"epsilon": "0"}, {"epsilon": "65"}, {"epsilon": 1},
            {"epsilon": "4.5"}, {"epsilon": "3"}, {"epsilon": "4.0"}, {"more": 1}, {"lower": "1"},
            *({"epsilon": spelled} for spelled in SPELLINGS),
            {"noise": [noise[0] + noise[1], noise[1] // 2 + 1, *noise[2:]]},
        ]
    ):  # fmt: skip
        yield f"noise {number}", signed(key, changed(asked, mechanism={**asked["mechanism"], **change}))
    for field in ("delta", "lifetime_delta"):
        for number, value in enumerate(["0.001", "0", "-1", "1", "0.99", 1, None, "x", "0.0100"]):
            yield f"{field} {number}", signed(key, changed(asked, **{field: value}))
        less = {name: value for name, value in asked.items() if name != field}
        yield f"without {field}", signed(key, less)
    bare = {name: value for name, value in asked.items() if name not in ("delta", "lifetime_delta")}
    for version in (1, 2, 3):
        yield f"noise in version {version} without delta", signed(key, changed(bare, version=version))
    yield "a delta in version 2", signed(key, changed(asked, version=2))
    yield "pure in version 3", signed(key, changed(pure, version=3, delta="0.1", lifetime_delta="0.1"))


def mean_descriptions(hybrid):
    bounds = {"lower": "0", "upper": "24"}
    yield {**hybrid, "lower": "1"}
    yield {**hybrid, "lower": "0.0"}
    yield {**hybrid, "upper": 24}
    yield {**hybrid, "steps": 1000}
    yield {**hybrid, "steps": 1 << 17}
    yield {**hybrid, "width": 0}
    yield {**hybrid, "width": 4096}
    yield {**hybrid, "coins": {**hybrid["coins"], "piecewise": UNITS + 1}}
    yield {**hybrid, "coins": {**hybrid["coins"], "piecewise": UNITS}}
    yield {**hybrid, "coins": {**hybrid["coins"], "piecewise": 0}}
    yield {**hybrid, "coins": {**hybrid["coins"], "keep": 1 << 31}}
    yield {"mechanism": "duchi", **bounds, "coins": {"keep": 3 << 30}}
    yield {"mechanism": "duchi", **bounds, "coins": {"keep": 1 << 30}}
    yield {"mechanism": "piecewise", **bounds, "steps": 64, "width": 16, "coins": {"inside": 1 << 31}}
    yield {"mechanism": "piecewise", **bounds, "steps": 64, "width": 16, "coins": {"inside": 1 << 29}}
    for rows in (
        [[1 << 31, 1 << 31], [1 << 31, 1 << 31]], [[3 << 30, 1 << 30], [1 << 30, 3 << 30]], [[3 << 30, 1 << 30]],
        [[UNITS, 0], [0, UNITS]], [[3 << 30, 1], [1 << 30, 3 << 30]], [[3 << 30, 1 << 30], [1 << 30, 3 << 30], []],
        [[1, UNITS - 1], [UNITS - 1, 1]], "rows", [1, 2], [[3 << 30, 1 << 30], [1 << 30, "3"]],
        [[1 << 30] * 4] * 4, [[(1 << 27)] * 32] * 34,
        [[2 << 30, 1 << 30, 1 << 30], [1 << 30, 2 << 30, 1 << 30], [3 << 29, 3 << 29, 1 << 30]],
        [[2 << 30, 1 << 30, 1 << 30], [1 << 30, 2 << 30, 1 << 30], [1 << 30, 1 << 30, 2 << 30]],
    ):  # fmt: skip
        yield {"mechanism": "laplace", **bounds, "table": rows}


def manifests(key):
    for name, data in altered(key):
        try:
            found, code = read_manifest(data), None
        except SfumatoError as error:
            found, code = None, error.code
        document = {"spaces": len(data)} if len(data) > 1 << 16 else written(data)
        about = {} if found is None else {
            "id": found.id, "digest": found.digest, "epsilon": write_plain(found.table.epsilon),
            "longitudinal_epsilon": write_plain(found.price), "periods": found.periods,
        }  # fmt: skip
        yield {"name": name, **document, "code": code, **about}


def announcements(key):
    """Announcements of the weekly survey, whole and altered, with the refusal's code or the announced period."""
    survey = dict(whole_surveys(key))["weekly"]
    week = timedelta(days=7)
    whole = key.announce(survey.manifest, survey.manifest.created + 3 * week)
    other = key.announce(dict(whole_surveys(key))["categories"].manifest, survey.manifest.created)
    document = json.loads(whole)
    said = document["announcement"]

    def changed(**fields):
        signer, signature = key._sign_statement({**said, **fields})
        return write_canonical({"announcement": {**said, **fields}, "public_key": signer, "signature": signature})

    for data in (
        whole, whole.rstrip(), whole.replace(b'"period":3', b'"period":4'), other, b"{}", b"x", b" " + whole,
        changed(period=4), changed(period="3"), changed(at="2099-01-01T00:00:00Z"), changed(at=3), changed(version=2),
        changed(version=True), changed(more=1), changed(format="other"), changed(survey="0" * 32),
        whole.replace(b'"public_key":"', b'"public_key":"00'), changed(period=3),
        write_canonical({**document, "signature": "00" * 64}), write_canonical({**document, "more": 1}),
        write_canonical({**document, "announcement": 1}), write_canonical([1]),
    ):  # fmt: skip
        try:
            period, code = read_announcement(data, survey.manifest).period, None
        except SfumatoError as error:
            period, code = None, error.code
        yield {"text": data.decode(), "code": code, "period": period}


def rings(key):
    """Updates of a ring with two keys, whole and altered: the refusal's code, or the serial number of the new ring."""
    begins, ends = BEGINS, BEGINS + timedelta(days=400)
    other, stranger = FixedKey("other key"), FixedKey("stranger")
    trusted = [TrustedKey(signer.public_key, begins, ends) for signer in (key, other)]
    ring = key.sign_ring(3, trusted)
    gone = [TrustedKey(key.public_key, begins, ends, revoked=True), trusted[1]]
    new = [trusted[0], TrustedKey(stranger.public_key, begins, ends)]
    whole = other.sign_ring(4, gone)

    def changed(**fields):
        said = {**json.loads(whole)["ring"], **fields}
        signer, signature = other._sign_statement(said)
        return write_canonical({"ring": said, "public_key": signer, "signature": signature})

    one = json.loads(whole)["ring"]["keys"][0]
    for data in (
        whole, other.sign_ring(3, gone), other.sign_ring(2, gone), key.sign_ring(4, gone), stranger.sign_ring(9, new),
        key.sign_ring(9, new), whole.replace(b'"serial":4', b'"serial":5'), changed(serial="4"), changed(serial=-1),
        changed(keys=[]), changed(keys=[one, one]), changed(keys=[1]), changed(keys=[{**one, "from": one["until"]}]),
        changed(keys=[{**one, "revoked": 1}]), changed(keys=[{**one, "public_key": "AB" * 32}]), changed(version=2),
        changed(version=True), changed(more=1), changed(format="x"), b"{}", b"x", b" " * 70_000,
        changed(keys=[one] * 65),
    ):  # fmt: skip
        try:
            serial, code = read_ring(ring).update(data).serial, None
        except SfumatoError as error:
            serial, code = None, error.code
        yield {"ring": ring.decode(), "text": data.decode(), "code": code, "serial": serial}


def written(data):
    try:
        return {"text": data.decode()}
    except UnicodeDecodeError:
        return {"hex": data.hex()}


def vectors():
    key = FixedKey()
    return {
        "canonical": list(texts()),
        "losses": list(losses()),
        "positions": list(positions()),
        "reports": list(reports()),
        "words": list(word_bits()),
        "stages": list(stages()),
        "memos": list(memos()),
        "public_key": key.public_key,
        "manifests": list(manifests(key)),
        "announcements": list(announcements(key)),
        "rings": list(rings(key)),
        "refusals": {code: list(words) for code, words in REFUSALS.items()},
    }


def text():
    """One line for each vector, so that a diff shows which one changed."""
    parts = []
    for name, value in vectors().items():
        if isinstance(value, list):
            lines = ",\n".join(json.dumps(item, separators=(",", ":")) for item in value)
            parts.append(f"{json.dumps(name)}: [\n{lines}\n]")
        else:
            parts.append(f"{json.dumps(name)}: {json.dumps(value, separators=(',', ':'))}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


if __name__ == "__main__":
    PLACE.write_text(text())
