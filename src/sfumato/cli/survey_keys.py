# ruff: noqa: PLC0415 - a command imports the packages that only it needs
"""The keys that devices trust: several at a time, with a time of validity; add and revoke."""

from pathlib import Path
from typing import Annotated

import typer

from sfumato.cli.refusals import Usage, refusals
from sfumato.cli.show import AsJson, print_json, print_table, say


def keys(
    ring: Annotated[Path, typer.Argument(metavar="RING", help="The file of the signed list of trusted keys.")],
    *,
    key: Annotated[
        Path | None, typer.Option(help="Sign a new list with this key, which the present list trusts.", metavar="KEY")
    ] = None,
    trust: Annotated[list[str] | None, typer.Option(help="Add this public key.", metavar="K")] = None,
    revoke: Annotated[list[str] | None, typer.Option(help="Revoke this public key.", metavar="K")] = None,
    days: Annotated[int, typer.Option(help="A new key may sign for so many days from now.", metavar="N")] = 730,
    as_json: AsJson = False,
) -> None:
    """Show, begin or change a team's list of trusted keys. Devices take a new list that a key of the old one signed."""
    with refusals(as_json):
        from datetime import UTC, datetime, timedelta

        from sfumato.local.survey.key_ring import KeyRing, TrustedKey, read_ring
        from sfumato.local.survey.new_survey import SurveyKey

        present = read_ring(ring.read_bytes()) if ring.exists() else None
        if present is None and key is None:
            raise Usage(f"The file {ring} does not exist.", "Begin a list with your key: --key team.key.")
        if key is None and (trust or revoke):
            raise Usage("A changed list must be signed.", "Give a key of the present list: --key team.key.")
        found: KeyRing | None = present
        if key is not None:
            if present is not None and not key.is_file():
                raise Usage(f"The file {key} does not exist.", "Give a key of the present list.")
            signer, now = SurveyKey(key), datetime.now(UTC).replace(microsecond=0)
            until = now + timedelta(days=days)
            known = {trusted.public_key: trusted for trusted in present.keys} if present else {}
            for name in (*([] if present else [signer.public_key]), *(trust or ())):
                known[name] = TrustedKey(name, now, until)
            for name in revoke or ():
                if name not in known:
                    raise Usage("A key to revoke is not in the list.", "To see it: sfumato survey keys RING.")
                known[name] = TrustedKey(name, known[name].begins, known[name].ends, revoked=True)
            data = signer.sign_ring(present.serial + 1 if present else 0, list(known.values()))
            found = present.update(data) if present else read_ring(data)
            fresh = ring.with_name(f"{ring.name}.new")
            fresh.write_bytes(data)
            fresh.replace(ring)
        assert found is not None  # noqa: S101 - one of the two branches made it
        if as_json:
            print_json(
                {
                    "serial": found.serial,
                    "keys": [
                        {
                            "public_key": one.public_key,
                            "from": f"{one.begins:%Y-%m-%d}",
                            "until": f"{one.ends:%Y-%m-%d}",
                            "revoked": one.revoked,
                        }
                        for one in found.keys
                    ],
                }
            )
            return
        rows = [
            [
                trusted.public_key,
                f"{trusted.begins:%Y-%m-%d}",
                f"{trusted.ends:%Y-%m-%d}",
                "revoked" if trusted.revoked else "trusted",
            ]
            for trusted in found.keys
        ]
        print_table(["public key", "signs from", "until", ""], rows)
        say(f"List number {found.serial} in {ring}. Devices that have an earlier one take it if they trust its signer.")
