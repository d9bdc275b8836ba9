"""The tables of questions that were collected from the tests and pages of other systems, made up.

Not all are as written there: constants are smaller, some ORDER BY have no ties or HAVING COUNT(*) > 0 was added,
columns were left out, and row expressions were put into aggregates. interview is partly from memory. In census every
combination of age and status occurs, so that no group is empty. Sources: census: Qrlew;
pums_tests: SmartNoise SQL; hits: ClickBench; chorus: Chorus; partners: the PostgreSQL and ZetaSQL examples of Google's
library, AWS Clean Rooms and Snowflake; interview: cohorts, funnels and retention as interview questions ask for them.
"""

from datetime import date, datetime, timedelta

import numpy as np
import pandas as pd
from tables import Maker


def _people(people, most):
    """The numbers of people who have 1 to `most` rows each."""
    return np.concatenate([[person] * (1 + person % most) for person in range(1, people + 1)])


def _weighted(make, values, rows):
    """Uneven weights, so that no two groups are equally large where a question orders them."""
    weights = np.arange(len(values), 0, -1) ** 1.5
    return make.rng.choice(values, rows, p=weights / weights.sum())


def _census(make):
    rows = 74 * 5 * 4
    index = np.arange(rows)
    countries = ["United-States", "Mexico", "Cuba", "Italy", "England", "Holand-Netherlands"]
    return {"census": pd.DataFrame({
        "pid": [f"p{person}" for person in index], "age": 17 + index % 74,
        "fnlwgt": make.whole(12000, 1500000, rows),
        "education": _weighted(make, ["HS-grad", "Some-college", "Bachelors", "Masters", "Doctorate"], rows),
        "education_num": make.whole(1, 17, rows),
        "marital_status": np.array(["Divorced", "Married-civ-spouse", "Never-married", "Separated", "Widowed"])[
            index // 74 % 5
        ],
        "sex": _weighted(make, ["Male", "Female"], rows),
        "capital_loss": _weighted(make, [0, 1902, 1977, 1887, 2415, 50], rows),
        "native_country": _weighted(make, countries, rows),
    })}  # fmt: skip


def _hits(make):
    who = _people(300, 8)
    rows = len(who)
    moments = make.moments(rows, datetime(2013, 7, 1), 31)
    hosts = ["news.com", "www.shop.org", "video.net", "games.io"]
    urls = [f"http://{host}/{page}" for host in hosts for page in ("a", "index.html", "news")]
    return {"hits": pd.DataFrame({
        "UserID": [f"u{person}" for person in who], "EventTime": moments, "EventDate": [one.date() for one in moments],
        "URL": _weighted(make, ["", *urls], rows),
        "Title": _weighted(make, ["Latest news", "", "sport today", "error 404", "funny video", "Maps"], rows),
        "Referer": _weighted(make, ["", *urls[::-1]], rows),
        "SearchPhrase": _weighted(make, ["", "cats", "dogs 2013", "dogs 14"], rows),
        "BrowserCountry": _weighted(make, ["US", "", "DE", "FR"], rows),
        "BrowserLanguage": _weighted(make, ["en", "de", "fr"], rows),
        "ClientTimeZone": _weighted(make, [-5, 0, 1, 3], rows), "RefererCategoryID": _weighted(make, [0, 1, 2], rows),
        "RegionID": _weighted(make, [1, 2, 3, 4, 5], rows), "SendTiming": make.whole(0, 2000, rows),
        "DNSTiming": make.whole(0, 900, rows), "ConnectTiming": make.whole(0, 1500, rows),
        "IsMobile": make.whole(0, 2, rows), "IsRefresh": make.whole(0, 2, rows),
        "AdvEngineID": _weighted(make, [0, 1, 2, 3], rows), "SearchEngineID": _weighted(make, [0, 1, 2], rows),
        "OS": _weighted(make, [1, 2, 3, 5], rows), "ResolutionWidth": _weighted(make, [1366, 1920, 320, 0], rows),
        "ResolutionHeight": _weighted(make, [768, 1080, 480], rows), "URLHash": make.whole(-999999, 999999, rows),
        "ClientIP": _weighted(make, [3221225985, 167772161, 2886729729], rows),
    })}  # fmt: skip


def _chorus(make):
    who, liked = _people(160, 4), _people(160, 3)
    orders = pd.DataFrame({
        "order_id": range(1, len(who) + 1), "customer_id": who,
        "order_date": make.days(len(who), date(2024, 1, 1), 14), "product_id": make.whole(1, 6, len(who)),
        "quantity": make.whole(1, 20, len(who)),
    })  # fmt: skip
    orders = pd.concat([orders, pd.DataFrame({
        "order_id": range(1000, 1080), "customer_id": range(1001, 1081), "order_date": [date(2024, 1, 3)] * 80,
        "product_id": [1] * 80, "quantity": [2] * 80,
    })])  # fmt: skip
    customers = pd.DataFrame({
        "customer_id": range(1, 161), "name": [f"n{person}" for person in range(160)],
        "address": make.whole(1, 10, 160),
    })  # fmt: skip
    recommendations = pd.DataFrame({"customer_id": liked, "product_id": make.whole(1, 6, len(liked))})
    products = pd.DataFrame({"product_id": range(1, 6), "name": list("abcde"), "price": [10, 20, 30, 40, 50]})
    return {"orders": orders, "customers": customers, "recommendations": recommendations, "products": products}


def _partners(make):
    who, visitors, shown = _people(200, 4), _people(150, 3), _people(120, 4)
    money = make.whole(1, 90, len(visitors))
    week = pd.DataFrame({
        "VisitorId": visitors, "Day": [1 + (person + place) % 7 for place, person in enumerate(visitors)],
        "Time spent (minutes)": make.whole(5, 180, len(visitors)), "Money spent (euros)": money,
    })  # fmt: skip
    week = week.drop_duplicates(["VisitorId", "Day"])
    sales = 60
    return {
        "FruitEaten": pd.DataFrame({"uid": who, "fruit": _weighted(make, ["apple", "pear", "fig"], len(who))}),
        "week_data": week,
        "socialco_impressions": pd.DataFrame({
            "user_id": shown, "campaign_id": _weighted(make, ["c1", "c2", "c3"], len(shown)),
            "timestamp": make.moments(len(shown), datetime(2024, 1, 1), 89),
        }),
        "socialco_users": pd.DataFrame({
            "user_id": range(1, 121), "emailsha256": [f"e{person}" for person in range(1, 121)],
            "phonesha256": [f"t{person}" for person in range(1, 121)],
        }),
        "athletic_brand_sales": pd.DataFrame({
            "sale_id": range(sales), "sale_price": make.whole(1, 500, sales),
            "emailsha256": [f"e{2 * sale}" for sale in range(sales)],
            "phonesha256": [f"t{3 * sale}" for sale in range(sales)],
            "timestamp": make.moments(sales, datetime(2024, 1, 1), 89),
        }),
        "t1": pd.DataFrame({
            "uid": range(150), "age": make.whole(0, 110, 150), "score": _weighted(make, ["low", "mid", "high"], 150),
        }),
    }  # fmt: skip


def _interview(make):
    people = 150

    def days(rows, first, length):
        return make.days(rows, first, length)

    def repeated(most, **columns):
        who = _people(people, most)
        return pd.DataFrame({"user_id": who} | {name: values(len(who)) for name, values in columns.items()})

    def of(*values):
        return lambda rows: _weighted(make, list(values), rows)

    def between(first, length):
        return lambda rows: make.days(rows, first, length)

    def numbers(low, high):
        return lambda rows: make.whole(low, high, rows)

    ids = np.arange(1, people + 1)
    activity = repeated(5, activity_date=between(date(2022, 1, 1), 181))
    follow = activity.groupby("user_id").activity_date.min().iloc[::3] + timedelta(days=1)
    follow = follow[[person % 5 < 4 for person in follow.index]].reset_index()
    orders = repeated(3, order_date=between(date(2022, 1, 1), 120))
    orders["customer_pref_delivery_date"] = [
        day + timedelta(days=int(more))
        for day, more in zip(orders.order_date, make.whole(0, 3, len(orders)), strict=True)
    ]
    spend = repeated(4, product=of("refrigerator", "vacuum", "wireless headset", "washing machine"),
                     spend=numbers(0, 500), transaction_date=between(date(2021, 6, 1), 570))  # fmt: skip
    spend["category"] = np.where(spend["product"].isin(["vacuum", "wireless headset"]), "electronics", "appliance")
    transactions = repeated(
        4, country=of("US", "DE"), state=of("approved", "declined"), amount=lambda rows: make.whole(0, 5000, rows),
        trans_date=between(date(2022, 1, 1), 59),
    )  # fmt: skip
    transactions["id"] = range(len(transactions))
    tweets = repeated(5, tweet_date=between(date(2021, 6, 1), 570))
    tweets["tweet_id"] = range(len(tweets))
    texted = _people(people, 3)
    return {
        "users": pd.DataFrame({"user_id": ids, "signup_date": days(people, date(2022, 1, 1), 90)}),
        "activity": pd.concat([activity, follow]),
        "user_actions": repeated(
            5, event_date=between(date(2022, 5, 1), 120), event_type=of("sign-in", "like", "comment")
        ),
        "tweets": tweets,
        "events": repeated(5, app_id=of(1, 2, 3), event_type=of("impression", "click"),
                           timestamp=lambda rows: make.moments(rows, datetime(2021, 9, 1), 600)),
        "viewership": repeated(3, device_type=of("laptop", "tablet", "phone")),
        "reviews": repeated(4, product_id=of(1, 2, 3), stars=of(5, 4, 3, 2, 1),
                            submit_date=between(date(2022, 1, 1), 365)),
        "activities": repeated(4, activity_type=of("send", "open", "chat"),
                               time_spent=lambda rows: make.real(90, 2, rows)),
        "age_breakdown": pd.DataFrame({"user_id": ids, "age_bucket": of("21-25", "26-30", "31-35")(people)}),
        "product_spend": spend, "transactions": transactions, "delivery": orders,
        "emails": pd.DataFrame({"user_id": ids, "email_id": ids + 5000}),
        "texts": pd.DataFrame({
            "email_id": texted + 5000, "signup_action": of("Confirmed", "Not Confirmed")(len(texted)),
        }),
        "accounts": pd.DataFrame({"user_id": ids, "income": make.whole(5000, 120000, people)}),
        "register": repeated(3, contest_id=of(207, 208, 209, 210, 215)),
        "queries": repeated(3, query_name=of("Dog", "Cat"), position=numbers(1, 500), rating=of(5, 1, 4, 3)),
        "courses": repeated(2, **{"class": of("Math", "English", "Biology", "Computer")}),
        "customer_visits": repeated(3, visited_on=between(date(2022, 1, 1), 31), amount=numbers(1, 200)),
    }  # fmt: skip


COLLECTED_WORLDS = {
    "census": _census,
    "pums_tests": Maker.pums,
    "hits": _hits,
    "chorus": _chorus,
    "partners": _partners,
    "interview": _interview,
}
