"""The tables of two blind sets of questions, made up. Their author did not know the code; CHANGELOG.md has the score.

Columns have NULLs where the author's tables had them. Nobody has more rows than the catalogs declare. Weights are
uneven, so that no two groups are equally large where a question orders them.
"""

from datetime import date, datetime

import numpy as np
import pandas as pd

PEOPLE = 400


def _with_nulls(make, values, share):
    """`values`, of which this share is NULL."""
    series = pd.Series(values).convert_dtypes()
    return series.mask(make.rng.random(len(series)) < share)


def _weighted(make, weights, rows):
    total = sum(weights.values())
    return make.rng.choice(list(weights), rows, p=[weight / total for weight in weights.values()])


def _after(moments, make, most_minutes):
    """A moment up to `most_minutes` after each of `moments`, to the second."""
    return pd.Series(moments) + pd.to_timedelta(make.whole(60, most_minutes * 60, len(moments)), unit="s")


def _coin(make, share, rows):
    return make.rng.random(rows) < share


def _hospital(make):
    ids = np.array([f"p{person}" for person in range(PEOPLE)])
    names, surnames = make.one_of(["Ana", "Ben", "Cora"], PEOPLE), make.one_of(["Abel", "Costa", "Ito"], PEOPLE)
    patients = pd.DataFrame({
        "patient_id": ids, "sex": _weighted(make, {"F": 54, "M": 46}, PEOPLE),
        "birth_date": make.days(PEOPLE, date(1932, 1, 1), 32800),
        "zip3": _weighted(make, {"021": 5, "022": 4, "100": 3, "101": 4, "112": 2}, PEOPLE),
        "insurance": _weighted(make, {"private": 50, "public": 38, "none": 12}, PEOPLE),
        "smoker": _with_nulls(make, _coin(make, 0.24, PEOPLE), 0.05),
        "bmi": _with_nulls(make, 14 + make.real(24, 1, PEOPLE), 0.08),
        "full_name": [f"{name} {surname}" for name, surname in zip(names, surnames, strict=True)],
    })  # fmt: skip
    who = np.repeat(ids, make.whole(0, 7, PEOPLE))
    rows = len(who)
    admitted = make.moments(rows, datetime(2023, 1, 1), 730)
    departments = {"CARD": 20, "ORTH": 16, "NEUR": 12, "ONC": 9, "ER": 35, "PED": 6}
    diagnoses = {"I10": 20, "I48.0": 16, "S72.0": 13, "G40.9": 10, "C50.9": 7, "J18.9": 4}
    triage = make.whole(1, 6, rows)
    admissions = pd.DataFrame({
        "patient_id": who, "dept_code": _weighted(make, departments, rows), "admitted_at": admitted,
        "discharged_at": _with_nulls(make, _after(admitted, make, 25 * 1440), 0.04),
        "diagnosis": _weighted(make, diagnoses, rows), "triage": triage, "emergency": _coin(make, 0.45, rows),
        "charge": _with_nulls(make, (6 - triage) * 1500 + make.real(10000, 2, rows), 0.03),
    })  # fmt: skip
    who = np.repeat(ids, make.whole(0, 9, PEOPLE))
    rows = len(who)
    test = _weighted(make, {"HBA1C": 3, "LDL": 5, "CREAT": 2, "GLUC": 4}, rows)
    most = pd.Series(test).map({"HBA1C": 12, "LDL": 240, "CREAT": 2, "GLUC": 200})
    part = make.rng.random(rows)
    labs = pd.DataFrame({
        "patient_id": who, "test": test, "value": _with_nulls(make, (most * part).round(2), 0.03),
        "taken_on": make.days(rows, date(2023, 1, 1), 730),
        "flag": np.select([part > 0.7, part < 0.2], ["H", "L"], "N"),
    })  # fmt: skip
    listed = pd.DataFrame({
        "dept_code": ["CARD", "ORTH", "NEUR", "ONC", "ER", "PED"],
        "dept_name": ["Cardiology", "Orthopedics", "Neurology", "Oncology", "Emergency", "Pediatrics"],
        "building": ["Main", "Main", "West", "West", "Main", "Garden"], "beds": [42, 36, 28, 30, 24, 40],
    })  # fmt: skip
    return {"patients": patients, "admissions": admissions, "labs": labs, "departments": listed}


def _shop(make):
    ids = np.array([f"c{person}" for person in range(PEOPLE)])
    domains = _weighted(make, {"gmail.com": 45, "outlook.com": 25, "proton.me": 15, "web.de": 8}, PEOPLE)
    customers = pd.DataFrame({
        "customer_id": ids, "signup_date": make.days(PEOPLE, date(2021, 1, 1), 1461),
        "country": _weighted(make, {"DE": 34, "FR": 25, "ES": 18, "IT": 13, "NL": 9}, PEOPLE),
        "segment": _weighted(make, {"consumer": 55, "corporate": 27, "home office": 18}, PEOPLE),
        "email": _with_nulls(make, [f"user{n}@{domain}" for n, domain in enumerate(domains)], 0.06),
        "birth_year": _with_nulls(make, make.whole(1942, 2007, PEOPLE), 0.07), "opt_in": _coin(make, 0.46, PEOPLE),
        "loyalty_points": make.whole(0, 4900, PEOPLE),
    })  # fmt: skip
    who = np.repeat(ids, make.whole(0, 13, PEOPLE))
    rows = len(who)
    order_ids = np.array([f"o{row}" for row in range(rows)])
    orders = pd.DataFrame({
        "order_id": order_ids, "customer_id": who, "ordered_at": make.moments(rows, datetime(2024, 1, 1), 366),
        "status": _weighted(make, {"completed": 70, "cancelled": 12, "returned": 10, "pending": 8}, rows),
        "channel": _weighted(make, {"web": 45, "app": 32, "store": 17, "phone": 6}, rows),
        "total": make.real(400, 2, rows), "discount_pct": _with_nulls(make, make.whole(0, 7, rows) * 5, 0.3),
        "coupon": _with_nulls(make, make.one_of(["SPRING10", "WELCOME", "VIP"], rows), 0.7),
    })  # fmt: skip
    lines = make.whole(1, 4, rows)
    skus = ["A100", "A200", "B100", "B200", "B300", "C100", "C200", "D100", "D200", "E100"]
    sku_weights = dict(zip(skus, [9, 5, 12, 7, 3, 6, 4, 9, 5, 6], strict=True))
    items = pd.DataFrame({
        "order_id": np.repeat(order_ids, lines), "customer_id": np.repeat(who, lines),
        "sku": _weighted(make, sku_weights, lines.sum()), "quantity": make.whole(1, 5, lines.sum()),
        "unit_price": make.real(299, 2, lines.sum()),
    })  # fmt: skip
    kinds = {"A": "kitchen", "B": "books", "C": "electronics", "D": "garden", "E": "toys"}
    products = pd.DataFrame({
        "sku": skus, "category": [kinds[sku[0]] for sku in skus],
        "brand": ["Nordal", "Casa", "Penna", "Penna", "Folio", "Voltix", "Voltix", "Nordal", "Casa", "Folio"],
        "list_price": [24.9, 59.0, 12.5, 18.0, 29.9, 149.0, 249.0, 35.0, 79.0, 22.0],
    })  # fmt: skip
    return {"customers": customers, "orders": orders, "order_items": items, "products": products}


def _school(make):
    ids = np.array([f"s{person}" for person in range(PEOPLE)])
    clubs = _weighted(make, {"chess": 6, "robotics": 20, "drama": 27, "soccer": 38}, PEOPLE)
    students = pd.DataFrame({
        "student_id": ids, "name": [f"Student {person}" for person in range(PEOPLE)],
        "grade_level": make.whole(9, 13, PEOPLE),
        "gender": _weighted(make, {"girl": 48, "boy": 46, "other": 6}, PEOPLE),
        "gpa": _with_nulls(make, 0.5 + make.real(3.5, 2, PEOPLE), 0.04),
        "borough": _weighted(make, {"Bronx": 30, "Queens": 28, "Brooklyn": 24, "Manhattan": 18}, PEOPLE),
        "club": _with_nulls(make, clubs, 0.45), "free_lunch": _coin(make, 0.4, PEOPLE),
    })  # fmt: skip
    sat = [(one, subject, term) for one in ids for subject in ("math", "reading", "science", "history")
           for term in ("fall", "spring")]  # fmt: skip
    scores = pd.DataFrame(sat, columns=["student_id", "subject", "term"])[_coin(make, 0.93, len(sat))]
    scores["score"] = _with_nulls(make, make.whole(30, 100, len(scores)), 0.05).array
    who = np.repeat(ids, make.whole(0, 15, PEOPLE))
    rows = len(who)
    weeks = pd.Timestamp("2023-09-04") + pd.to_timedelta(make.whole(0, 42, rows) * 7, unit="D")
    weekday = _weighted(make, {0: 30, 1: 20, 2: 12, 3: 16, 4: 25}, rows)
    absences = pd.DataFrame({
        "student_id": who, "day": (weeks + pd.to_timedelta(weekday, unit="D")).date,
        "reason": _weighted(make, {"sick": 50, "family": 18, "unexcused": 22, "other": 10}, rows),
        "hours_missed": make.one_of([1, 2, 3.5, 6, 7.5], rows),
    })  # fmt: skip
    subjects = pd.DataFrame({
        "subject": ["math", "science", "reading", "history"], "faculty": ["STEM", "STEM", "Humanities", "Humanities"],
        "pass_mark": [60, 60, 65, 62],
    })  # fmt: skip
    return {"students": students, "test_scores": scores, "absences": absences, "subjects": subjects}


def _bank(make):
    ids = np.array([f"c{person}" for person in range(PEOPLE)])
    jobs = _weighted(make, {"Teacher": 12, "Nurse": 11, "Engineer": 25, "Clerk": 20, "Retired": 20}, PEOPLE)
    clients = pd.DataFrame({
        "client_id": ids, "dob": make.days(PEOPLE, date(1938, 1, 1), 24800),
        "joined": make.days(PEOPLE, date(2014, 1, 1), 3652),
        "gender": _weighted(make, {"female": 51, "male": 49}, PEOPLE),
        "income": _with_nulls(make, 4000 + make.real(90000, 2, PEOPLE), 0.09),
        "branch_id": _weighted(make, {"B01": 32, "B02": 24, "B03": 19, "B04": 15, "B05": 10}, PEOPLE),
        "risk": _weighted(make, {"low": 55, "medium": 30, "high": 15}, PEOPLE),
        "occupation": _with_nulls(make, jobs, 0.09), "has_mortgage": _coin(make, 0.33, PEOPLE),
        "phone": [f"+49 30 {number:06d}" for number in make.whole(0, 10**6, PEOPLE)],
    })  # fmt: skip
    who = np.repeat(ids, make.whole(0, 21, PEOPLE))
    rows = len(who)
    kind = _weighted(make, {"card": 48, "transfer": 18, "atm": 15, "salary": 5, "fee": 6}, rows)
    merchants = _weighted(make, {"grocery": 36, "fuel": 18, "travel": 8, "restaurant": 20, "online shop": 18}, rows)
    amount = np.where(kind == "salary", 1200 + make.real(5000, 2, rows), make.real(900, 2, rows) - 800)
    transactions = pd.DataFrame({
        "client_id": who, "posted_on": make.days(rows, date(2024, 1, 1), 366), "amount": amount.round(2), "kind": kind,
        "merchant": pd.Series(merchants).where(kind == "card", None),
        "is_online": pd.Series(merchants == "online shop").astype("boolean").mask(kind != "card"),
    })  # fmt: skip
    who = np.repeat(ids, make.whole(0, 4, PEOPLE))
    rows = len(who)
    term = make.whole(1, 7, rows) * 12
    loans = pd.DataFrame({
        "client_id": who, "principal": 500 + make.real(45000, 2, rows), "rate": term / 8 + make.real(12, 2, rows),
        "term_months": term,
        "status": _weighted(make, {"current": 50, "late": 15, "default": 12, "paid": 30}, rows),
        "issued": make.days(rows, date(2020, 1, 1), 1827),
    })  # fmt: skip
    branches = pd.DataFrame({
        "branch_id": ["B01", "B02", "B03", "B04", "B05"], "city": ["Berlin", "Hamburg", "Munich", "Leipzig", "Kiel"],
        "region": ["East", "North", "South", "East", "North"],
        "opened": [date(1991, 5, 2), date(1985, 3, 1), date(1998, 9, 14), date(2006, 1, 9), date(2015, 10, 1)],
    })  # fmt: skip
    return {"clients": clients, "transactions": transactions, "loans": loans, "branches": branches}


def _transit(make):
    ids = np.array([f"R{person:04d}" for person in range(PEOPLE)])
    riders = pd.DataFrame({
        "rider_id": ids, "age": _with_nulls(make, make.whole(12, 91, PEOPLE), 0.05),
        "pass_type": _weighted(make, {"adult": 58, "student": 27, "senior": 15}, PEOPLE),
        "home_zone": make.whole(1, 5, PEOPLE), "low_income": _coin(make, 0.28, PEOPLE),
        "registered_at": make.moments(PEOPLE, datetime(2020, 1, 1), 1880),
    })  # fmt: skip
    who = np.repeat(ids, make.whole(0, 21, PEOPLE))
    rows = len(who)
    stations = ["Central", "Harbor", "Museum", "Airport", "Park", "Stadium", "Union", "Mill"]
    station_weights = dict(zip(stations, [26, 12, 10, 8, 11, 9, 18, 6], strict=True))
    tap_in = _after(make.moments(rows, datetime(2025, 3, 1), 92), make, 2)
    comments = ["late", "Crowded!", "clean", "friendly driver", "too expensive"]
    rides = pd.DataFrame({
        "rider_id": who, "tap_in": tap_in, "tap_out": _with_nulls(make, _after(tap_in, make, 90), 0.06),
        "origin": _weighted(make, station_weights, rows), "destination": _weighted(make, station_weights, rows),
        "line": _weighted(make, {"red": 45, "blue": 35, "green": 20}, rows), "fare": make.real(11, 2, rows),
        "distance_km": make.real(38, 1, rows),
    })  # fmt: skip
    asked = ids[_coin(make, 0.6, PEOPLE)]
    survey = pd.DataFrame({
        "rider_id": asked, "rating": make.whole(1, 6, len(asked)),
        "comment": _with_nulls(make, make.one_of(comments, len(asked)), 0.3),
    })  # fmt: skip
    listed = pd.DataFrame({
        "station": stations, "zone": [1, 2, 1, 4, 2, 3, 1, 3],
        "step_free": [True, False, True, True, False, True, True, False],
    })  # fmt: skip
    return {"riders": riders, "rides": rides, "survey": survey, "stations": listed}


def _telecom(make):
    ids = np.array([f"t{person}" for person in range(PEOPLE)])
    plan = _weighted(make, {"basic": 34, "plus": 30, "max": 16, "prepaid": 20}, PEOPLE)
    devices = make.one_of(["iPhone 14", "iPhone 15", "Galaxy S23", "Pixel 8"], PEOPLE)
    fee = pd.Series(plan).map({"basic": 19, "plus": 35, "max": 59, "prepaid": 10})
    subscribers = pd.DataFrame({
        "subscriber_id": ids, "plan": plan, "region": _weighted(make, {"Nord": 40, "Sud": 33, "Est": 27}, PEOPLE),
        "activated": make.days(PEOPLE, date(2016, 1, 1), 3287), "tenure_months": make.whole(0, 108, PEOPLE),
        "monthly_fee": fee + make.one_of([-5, 0, 4.99, 12], PEOPLE), "churned": _coin(make, 0.2, PEOPLE),
        "device": _with_nulls(make, devices, 0.1),
        "msisdn": [f"06{number:08d}" for number in make.whole(0, 10**8, PEOPLE)],
    })  # fmt: skip
    months = make.whole(1, 13, PEOPLE)
    rows = months.sum()
    most = np.repeat(pd.Series(plan).map({"basic": 15, "plus": 40, "max": 140, "prepaid": 8}).to_numpy(), months)
    usage = pd.DataFrame({
        "subscriber_id": np.repeat(ids, months),
        "month": [date(2024, month, 1) for last in months for month in range(1, last + 1)],
        "data_gb": _with_nulls(make, (most * make.rng.random(rows)).round(2), 0.02),
        "voice_minutes": make.whole(0, 1900, rows), "sms": make.whole(0, 490, rows), "roaming": _coin(make, 0.2, rows),
    })  # fmt: skip
    who = np.repeat(ids, np.maximum(make.whole(-3, 6, PEOPLE), 0))
    rows = len(who)
    opened = make.moments(rows, datetime(2024, 1, 1), 360)
    tickets = pd.DataFrame({
        "subscriber_id": who, "opened_at": opened,
        "closed_at": _with_nulls(make, _after(opened, make, 3 * 1440), 0.08),
        "topic": _weighted(make, {"billing": 38, "network": 30, "device": 14, "contract": 18}, rows),
        "priority": make.whole(1, 5, rows), "csat": _with_nulls(make, make.whole(1, 11, rows), 0.35),
    })  # fmt: skip
    plans = pd.DataFrame({
        "plan": ["basic", "plus", "max", "prepaid"], "price": [19.0, 35.0, 59.0, 10.0], "cap_gb": [10, 30, 100, 5],
    })  # fmt: skip
    return {"subscribers": subscribers, "usage": usage, "tickets": tickets, "plans": plans}


BLIND_WORLDS = {
    "hospital": _hospital,
    "shop": _shop,
    "school": _school,
    "bank": _bank,
    "transit": _transit,
    "telecom": _telecom,
}
