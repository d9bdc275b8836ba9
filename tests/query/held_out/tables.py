"""The tables of the held-out questions, made up: nobody has more rows than the catalogs declare, and no value is NULL.

Each catalog is next to this file. Plain results and answers without noise are then the same.
"""

from datetime import date, datetime, timedelta

import numpy as np
import pandas as pd


def _repeat(people, most, letter):
    """The ids of people who have 1 to `most` rows each."""
    return np.concatenate([[f"{letter}{person}"] * (1 + person % most) for person in range(people)])


class Maker:
    def __init__(self):
        self.rng = np.random.default_rng(11)

    def days(self, rows, first, days):
        return [first + timedelta(days=int(day)) for day in self.rng.integers(0, days, rows)]

    def moments(self, rows, first, days):
        return [first + timedelta(minutes=int(minute)) for minute in self.rng.integers(0, days * 1440, rows)]

    def whole(self, low, high, rows):
        return self.rng.integers(low, high, rows)

    def one_of(self, values, rows):
        return self.rng.choice(values, rows)

    def real(self, most, digits, rows):
        return np.round(self.rng.random(rows) * most, digits)

    def pums(self):
        rows = 400
        table = pd.DataFrame({
            "pid": [f"p{person}" for person in range(rows)], "age": self.whole(18, 95, rows),
            "sex": self.whole(0, 2, rows), "educ": self.whole(1, 17, rows), "race": self.whole(1, 7, rows),
            "income": self.whole(0, 400, rows) * 250, "married": self.whole(0, 2, rows),
            "latino": self.whole(0, 2, rows), "state": self.one_of(["CA", "NY", "TX"], rows),
        })  # fmt: skip
        return {"PUMS": table}

    def library(self):
        people = 200
        levels = ["up-to-high-school", "high-school-diploma", "some-college", "bachelors-degree", "masters-degree",
                  "doctorate-professional"]  # fmt: skip
        members = pd.DataFrame({
            "id": [f"m{person}" for person in range(people)], "age": self.whole(0, 90, people),
            "gender": self.one_of(["female", "male", "nonbinary"], people),
            "education_level": self.one_of(levels, people),
            "zip_code": self.one_of(["27510", "27514", "27701", "27705"], people),
            "books_borrowed": self.whole(0, 90, people), "date_joined": self.days(people, date(2018, 1, 1), 1400),
        })  # fmt: skip
        who = _repeat(people, 4, "m")
        checkouts = pd.DataFrame({
            "member_id": who, "checkout_date": self.days(len(who), date(2021, 1, 1), 365),
            "isbn": self.one_of(["i1", "i2", "i3", "i4", "i5"], len(who)),
            "genre": self.one_of(["Mystery", "Romance", "Sci-Fi", "History"], len(who)),
            "days_kept": self.whole(1, 40, len(who)),
        })  # fmt: skip
        books = pd.DataFrame({
            "isbn": ["i1", "i2", "i3", "i4", "i5"], "title": ["A", "B", "C", "D", "E"],
            "author": ["Ann", "Ann", "Bob", "Cid", "Cid"], "publication_year": [1950, 1990, 2000, 2010, 2020],
            "price": [10.5, 12.0, 7.25, 30.0, 15.0],
        })  # fmt: skip
        return {"members": members, "checkouts": checkouts, "books": books}

    def bigquery(self):
        who = _repeat(120, 3, "q")
        professors = pd.DataFrame({
            "id": who, "item": self.one_of(["pencil", "pen", "paper", "scissors"], len(who)),
            "quantity": self.whole(1, 60, len(who)),
        })  # fmt: skip
        students = pd.DataFrame({
            "id": [f"q{person}" for person in range(120)], "test_score": self.whole(0, 101, 120),
            "year": self.whole(1, 5, 120),
        })  # fmt: skip
        return {"professors": professors, "students": students}

    def web(self):
        people = 150
        users = pd.DataFrame({
            "user_id": [f"w{person}" for person in range(people)],
            "signup_at": self.moments(people, datetime(2024, 1, 1), 180),
            "country": self.one_of(["US", "DE", "IN"], people), "plan": self.one_of(["free", "pro"], people),
            "age": self.whole(13, 90, people),
        })  # fmt: skip
        who = _repeat(people, 5, "w")
        rows = len(who)
        events = pd.DataFrame({
            "user_id": who, "event_id": [f"e{row}" for row in range(rows)],
            "event_at": self.moments(rows - 20, datetime(2024, 1, 1), 360) + self.moments(20, datetime(2024, 3, 1), 2),
            "event_name": self.one_of(["view", "click", "purchase"], rows),
            "device": self.one_of(["mobile", "desktop", "tablet"], rows), "amount": self.whole(0, 200, rows),
            "RegionID": self.whole(1, 6, rows), "AdvEngineID": self.whole(0, 4, rows),
            "SearchPhrase": self.one_of(["", "cats", "dogs"], rows),
            "ResolutionWidth": self.one_of([1024, 1366, 1920], rows), "IsRefresh": self.whole(0, 2, rows),
        })  # fmt: skip
        campaigns = pd.DataFrame({
            "device": ["mobile", "desktop", "tablet"], "channel": ["app", "web", "web"], "cpm": [3, 5, 2],
        })  # fmt: skip
        return {"users": users, "events": events, "campaigns": campaigns}

    def taxi(self):
        who = _repeat(120, 4, "d")
        rows = len(who)
        begins = self.moments(rows, datetime(2023, 1, 1), 31)
        minutes = self.whole(2, 90, rows)
        trips = pd.DataFrame({
            "rider_id": who, "VendorID": self.whole(1, 3, rows), "tpep_pickup_datetime": begins,
            "tpep_dropoff_datetime": [
                begin + timedelta(minutes=int(more)) for begin, more in zip(begins, minutes, strict=True)
            ],
            "passenger_count": self.whole(1, 7, rows), "trip_distance": self.real(20, 1, rows),
            "payment_type": self.whole(1, 5, rows), "PULocationID": self.whole(1, 6, rows),
            "fare_amount": 3 + self.real(60, 2, rows), "tip_amount": self.real(12, 2, rows),
            "total_amount": 5 + self.real(80, 2, rows),
        })  # fmt: skip
        zones = pd.DataFrame({
            "LocationID": [1, 2, 3, 4, 5], "Borough": ["Manhattan", "Queens", "Brooklyn", "Bronx", "Manhattan"],
            "Zone": ["SoHo", "JFK", "DUMBO", "Hunts Point", "Harlem"],
        })  # fmt: skip
        return {"trips": trips, "zones": zones}

    def tpch(self):
        people = 120
        customer = pd.DataFrame({
            "c_custkey": [f"c{person}" for person in range(people)],
            "c_mktsegment": self.one_of(["AUTO", "BUILD", "HOUSE"], people),
            "c_nationkey": self.whole(0, 5, people), "c_acctbal": self.whole(-900, 9000, people),
        })  # fmt: skip
        who = _repeat(people, 4, "c")
        rows = len(who)
        orders = pd.DataFrame({
            "o_orderkey": [f"o{row}" for row in range(rows)], "o_custkey": who,
            "o_orderstatus": self.one_of(["F", "O", "P"], rows), "o_totalprice": self.whole(10, 5000, rows),
            "o_orderdate": self.days(rows, date(1995, 1, 1), 700),
            "o_orderpriority": self.one_of(["1-URGENT", "2-HIGH", "5-LOW"], rows),
        })  # fmt: skip
        keys = _repeat(rows, 3, "o")
        lines = len(keys)
        shipped = self.days(lines, date(1995, 2, 1), 700)
        later = self.whole(1, 30, lines)
        lineitem = pd.DataFrame({
            "o_orderkey": keys, "l_linenumber": [line for row in range(rows) for line in range(1, 2 + row % 3)],
            "l_quantity": self.whole(1, 51, lines), "l_extendedprice": self.whole(100, 9000, lines),
            "l_discount": self.whole(0, 11, lines) / 100, "l_returnflag": self.one_of(["A", "N", "R"], lines),
            "l_shipmode": self.one_of(["AIR", "RAIL", "TRUCK"], lines), "l_shipdate": shipped,
            "l_commitdate": self.days(lines, date(1995, 2, 1), 700),
            "l_receiptdate": [day + timedelta(days=int(more)) for day, more in zip(shipped, later, strict=True)],
        })  # fmt: skip
        nation = pd.DataFrame({
            "n_nationkey": range(5), "n_name": ["FRANCE", "GERMANY", "BRAZIL", "CHINA", "KENYA"],
            "n_region": ["EUROPE", "EUROPE", "AMERICA", "ASIA", "AFRICA"],
        })  # fmt: skip
        return {"customer": customer, "orders": orders, "lineitem": lineitem, "nation": nation}


WORLDS = {
    "pums": Maker.pums,
    "library": Maker.library,
    "bigquery": Maker.bigquery,
    "web": Maker.web,
    "taxi": Maker.taxi,
    "tpch": Maker.tpch,
}
