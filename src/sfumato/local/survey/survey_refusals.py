"""Why a survey, an announcement or a list of keys is refused. A message never quotes the refused document."""

from sfumato.errors import CatalogError

REFUSALS = {
    "survey-size": ("The survey is larger than 4 MiB.", "Ask for a shorter survey."),
    "survey-form": (
        "This is not a signed survey in canonical JSON (RFC 8785).",
        "Load the file exactly as it was published; any change of its format breaks the signature.",
    ),
    "survey-version": (
        "This survey has another format version.",
        "This program reads versions 1 to 3. Update it, or ask for a survey of an older version.",
    ),
    "survey-signature": (
        "The signature does not match the survey.",
        "The survey was changed after it was signed. Do not answer it; fetch it again from the team that asks.",
    ),
    "survey-key": (
        "The survey is signed with another key than the one that you gave.",
        "Do not answer it, or check the key with the team that asks.",
    ),
    "survey-id": ("The survey's id does not match its content.", "The document is wrong. Do not answer it."),
    "survey-field": (
        "A field of the survey is missing, unknown or invalid.",
        "docs/local.md lists the fields of a survey.",
    ),
    "survey-limits": (
        "The survey has more answers than a device can check within a second.",
        "At most 100,000 labels are possible, 16,384 if a report has one bit for each, or 4,096 characters of words.",
    ),
    "survey-ring": (
        "The list of trusted keys is invalid, older than the present one, or not signed by one of its keys.",
        "Nothing was changed. Get the list from the team that asks.",
    ),
    "survey-table": (
        "The survey's table is invalid.",
        "Every probability must be above zero, the truth must be most likely, and the table must fit the answers.",
    ),
    "survey-epsilon": (
        "The survey's table costs more epsilon than the survey states.",
        "This follows from the table's own integers. Do not answer it.",
    ),
    "survey-delta": (
        "The survey's table has a greater delta than the survey states.",
        "This follows from the table's own integers. Do not answer it.",
    ),
    "survey-cap": (
        "One answer to this survey costs more epsilon than your own cap.",
        "Nothing was sent, and no budget was spent.",
    ),
    "survey-early": ("The survey has not begun.", "Nothing was sent, and no budget was spent."),
    "survey-over": ("The survey has ended.", "Nothing was sent, and no budget was spent."),
    "survey-past": (
        "The device has already reported for later periods, and its record of this period was removed.",
        "Nothing was sent, and no budget was spent. Check the device's clock.",
    ),
    "survey-announcement": (
        "The period was not announced by the team that asks.",
        "Pass the announcement of the period, signed with the survey's key.",
    ),
}


def build_refusal(code: str) -> CatalogError:
    return CatalogError(code, *REFUSALS[code])
