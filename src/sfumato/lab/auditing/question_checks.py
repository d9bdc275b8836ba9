"""What is checked once for a question, and not for each pair: noise, sensitivities, releases, and the ledger."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from itertools import chain

from sfumato.answering.desk import DEFAULT_ANALYST, Desk
from sfumato.catalog.dataset import Table
from sfumato.errors import CatalogError, SfumatoError
from sfumato.kernel.certify import BinChoice, Certificate
from sfumato.kernel.mechanisms import GaussianNoise, LaplaceNoise
from sfumato.lab.auditing.asked_answers import check_asked
from sfumato.lab.auditing.audit_stage import Setting, Stage, plan_question
from sfumato.lab.auditing.choice_sampling import check_choosers
from sfumato.lab.auditing.independent_sensitivities import check_sensitivities
from sfumato.lab.auditing.joint_releases import check_joint_sums
from sfumato.lab.auditing.ledger_probes import check_ledger, check_permission
from sfumato.lab.auditing.noise_distribution import check_samplers
from sfumato.lab.auditing.oracle_answers import check_oracle
from sfumato.lab.auditing.owner_releases import check_owner_releases
from sfumato.lab.auditing.pair_maker import DatasetPair
from sfumato.lab.auditing.pinned_tables import check_public_numbers, read_pinned
from sfumato.lab.auditing.plain_reading import PinnedTables
from sfumato.lab.auditing.plan_probes import check_refusals
from sfumato.lab.auditing.several_releases import check_together
from sfumato.lab.auditing.throwaway_desk import PinnedRows
from sfumato.lab.auditing.upgraded_answers import check_upgrade
from sfumato.lab.auditing.watched_counts import check_watch
from sfumato.lab.auditing.wide_releases import check_wide_release, give_integers

SMALL_RELEASE = 60  # undeclared keys of a charge that is probed


def check_question(stage: Stage, pair: DatasetPair, setting: Setting) -> tuple[str, ...]:
    """The faults that need no pair: see the functions that are called. A refused question has none.

    Each release of a question of several is checked by itself, and then the whole.
    """
    parts = setting.split(stage)
    if len(parts) > 1:
        found = [fault for part in parts for fault in _check_release(stage, pair, part)]
        return (*dict.fromkeys(found), *_check_several(stage, pair, setting))
    return _check_release(stage, pair, setting)


def _check_several(stage: Stage, pair: DatasetPair, setting: Setting) -> Iterator[str]:
    with PinnedRows() as rows, suppress(CatalogError):  # a refused load: the replays show it
        setting = replace(setting, pinned=rows)
        yield from _run("several releases", lambda: check_together(stage, pair, setting))
        with setting.open(stage.dataset, pair.first) as desk:
            complete = setting.complete(stage.query)
            yield from _run("permissions", lambda: check_permission(desk, stage.sql, complete))
            if setting.with_others:
                yield from _check_others(stage, setting, desk, read_pinned(rows.load(pair.first)))


def _check_release(stage: Stage, pair: DatasetPair, setting: Setting) -> tuple[str, ...]:
    with PinnedRows() as rows:
        try:
            pinned = read_pinned(rows.load(pair.first))
        except CatalogError:  # the replays show the same refusal
            return ()
        with replace(setting, pinned=rows).open(stage.dataset, pair.first) as desk:
            try:
                certificate = plan_question(desk, stage.sql, setting).certificate
                desk.ledger.quote(DEFAULT_ANALYST, certificate)
            except SfumatoError:  # here too
                return ()
            tables = {name: table for name, (table, _) in pair.first.items()}
            return tuple(
                chain(
                    _run("the noise", lambda: _check_noise(certificate, setting)),
                    _run("sensitivities", lambda: check_sensitivities(certificate, tables, pinned)),
                    _run("a wide release", lambda: check_wide_release(desk, certificate.plans[0])),
                    _run("the ledger", lambda: _check_ledger(desk, certificate)),
                    _run("the plan", lambda: _check_plan(desk, certificate, setting, tables)),
                    _run("public numbers", lambda: check_public_numbers(pair.first)),
                    _check_whole(stage, pair, replace(setting, pinned=rows), desk, pinned)
                    if setting.part is None
                    else (),
                )
            )


def _check_whole(stage: Stage, pair: DatasetPair, setting: Setting, desk: Desk, pinned: PinnedTables) -> Iterator[str]:
    """The question as users ask it. Its upgrades and watches are those of one release."""
    tables = {name: table for name, (table, _) in pair.first.items()}
    complete = setting.complete(stage.query)
    yield from _run("a complete answer", lambda: check_asked(desk, stage.sql, complete))
    yield from _run("an upgrade", lambda: check_upgrade(stage, pair, setting))
    yield from _run("a watch", lambda: check_watch(desk, stage.sql, tables, pinned))
    yield from _run("permissions", lambda: check_permission(desk, stage.sql, complete))
    if setting.with_others:
        yield from _check_others(stage, setting, desk, pinned)


def _check_others(stage: Stage, setting: Setting, desk: Desk, pinned: PinnedTables) -> Iterator[str]:
    """Other releases of the tables of a question. They do not depend on the question itself."""
    yield from _run("an oracle", lambda: _check_oracle(stage, desk, pinned))
    yield from _run("joint sums", lambda: check_joint_sums(stage, setting))
    yield from _run("a purchase", lambda: check_owner_releases(stage, setting))


def _run(what: str, check: Callable[[], Iterator[str]]) -> Iterator[str]:
    """The faults that a check finds. A refusal inside it is one: correct code never gets there."""
    try:
        yield from check()
    except SfumatoError as error:
        yield f"Checking {what} was refused: {type(error).__name__}: {error.message}"


def _check_oracle(stage: Stage, desk: Desk, pinned: PinnedTables) -> Iterator[str]:
    """An oracle is about a table whose rows are people."""
    if stage.unit.per_row:
        yield from check_oracle(desk, desk.dataset.table(stage.unit.table), pinned)


def _check_noise(certificate: Certificate, setting: Setting) -> Iterator[str]:
    """Draw the certified noise many times, and compare its distribution with the certified one.

    The replays show that released integers are exact ones plus draws of these samplers.
    """
    noises = [measured.noise for measured in certificate.measurements]
    added = [noise for noise in noises if isinstance(noise, LaplaceNoise | GaussianNoise)]
    yield from check_samplers(added, setting.tested)
    yield from check_choosers([noise for noise in noises if isinstance(noise, BinChoice)])


def _check_plan(desk: Desk, certificate: Certificate, setting: Setting, tables: Mapping[str, Table]) -> Iterator[str]:
    """The plain engine has no check: it is not given false plans."""
    if setting.engine == "duckdb" and setting.wrap is None:
        yield from check_refusals(desk.engine, certificate.plans[0], tables)


def _check_ledger(desk: Desk, certificate: Certificate) -> Iterator[str]:
    (plan,) = certificate.plans
    keys = None if certificate.cells is not None else tuple(
        tuple(f"key {place}" for _ in plan.keys) for place in range(SMALL_RELEASE)
    )  # fmt: skip
    given = give_integers(certificate, certificate.cells or SMALL_RELEASE, keys)
    return check_ledger(desk, plan, given)
