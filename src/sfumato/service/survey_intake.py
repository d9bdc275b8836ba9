"""The intake of a survey server: reports, one or many at a time, and withdrawals."""

import json
import re

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from sfumato.errors import InvalidParameter, QueryError
from sfumato.local.collect.received_counts import ReceivedCounts
from sfumato.local.collect.report_files import read_lines, refuse_repeated_names
from sfumato.service.request_limits import NotGzip, TooLarge, decompress, read_body
from sfumato.service.survey_board import OPEN, RETRY_SECONDS, SurveyBoard, get_board, refuse

_SURVEY = re.compile(rb'"survey"\s*:\s*"([0-9a-f]{32})"')
_PREFLIGHT = {
    **OPEN,
    "Access-Control-Allow-Methods": "GET, POST",
    "Access-Control-Allow-Headers": "Content-Type, Content-Encoding",
    "Access-Control-Max-Age": "86400",
}
_STATUS = {"malformed": 400, "foreign": 404, "untimely": 409, "conflict": 409, "withdrawn": 410}


async def _read_request(request: Request) -> bytes | Response:
    """The body of a request within the limits, or the refusal."""
    board = get_board(request)
    limits = board.settings
    if not board.rate.allows(request.client.host if request.client else ""):
        later = {"Retry-After": RETRY_SECONDS}
        return refuse(429, "too-many-requests", "Too many requests from this address. Send again later.", **later)
    try:
        body = await read_body(request.stream(), limits.most_bytes)
        match request.headers.get("content-encoding", "identity").lower():
            case "identity":
                return body
            case "gzip":
                return await run_in_threadpool(decompress, body, limits.most_decoded_bytes)
            case _:
                return refuse(415, "encoding", "The body may be compressed with gzip only.")
    except TooLarge:
        return refuse(413, "too-large", "The request is larger than this server accepts. Send fewer reports at once.")
    except NotGzip:
        return refuse(400, "encoding", "The body is not gzip.")


async def take_reports(request: Request) -> Response:
    """Take one report, or a batch with one report on each line."""
    if request.method == "OPTIONS":
        return Response(status_code=204, headers=_PREFLIGHT)
    body = await _read_request(request)
    if isinstance(body, Response):
        return body
    board = get_board(request)
    lines = [line for line in body.split(b"\n") if line.strip()]
    if not lines:
        return refuse(400, "empty", "The body has no report.")
    if len(lines) > board.settings.most_reports:
        return refuse(413, "too-large", "Too many reports in one request. Send fewer at once.")
    received = ReceivedCounts()
    for survey, own in _sort_by_survey(lines, board).items():
        queue = board.queues[survey]
        batch = await run_in_threadpool(read_lines, queue.collector.manifest, own)
        received += await queue.add(batch)
    counts = received.to_dict()
    if len(lines) == 1 and not (received.accepted or received.duplicate):
        (fate,) = (name for name, count in counts.items() if count)
        return refuse(_STATUS[fate], fate, "The report was not counted.")
    return JSONResponse(counts, headers=OPEN)


def _sort_by_survey(lines: list[bytes], board: SurveyBoard) -> dict[str, list[bytes]]:
    """The lines of each survey. A line that names no survey of this server goes to the first, which counts it."""
    first = next(iter(board.queues))
    if len(board.queues) == 1:
        return {first: lines}
    sorted_lines: dict[str, list[bytes]] = {}
    for line in lines:
        found = _SURVEY.search(line)
        name = found[1].decode() if found else first
        sorted_lines.setdefault(name if name in board.queues else first, []).append(line)
    return sorted_lines


async def withdraw_report(request: Request) -> Response:  # noqa: PLR0911 - one return for each refusal
    """Take a report back by its id, which only its device and the collector know."""
    if request.method == "OPTIONS":
        return Response(status_code=204, headers=_PREFLIGHT)
    body = await _read_request(request)
    if isinstance(body, Response):
        return body
    try:
        asked = json.loads(body, object_pairs_hook=refuse_repeated_names)
    except (ValueError, RecursionError):
        asked = None
    match asked:
        case {"survey": str(survey), "id": str(name), **rest} if not rest and survey in get_board(request).queues:
            collector = get_board(request).queues[survey].collector
        case _:
            return refuse(400, "malformed", "A withdrawal has the survey and the id of a report.")
    try:
        done = await run_in_threadpool(collector.withdraw, name)
    except InvalidParameter:
        return refuse(400, "malformed", "A withdrawal has the survey and the id of a report.")
    except QueryError:
        later = {"Retry-After": RETRY_SECONDS}
        return refuse(
            503, "too-many-withdrawals", "Too many unknown reports were withdrawn. Send it again later.", **later
        )
    if not done:
        return refuse(409, "published", "The batch that contains the report is published.")
    return JSONResponse({"withdrawn": True}, headers=OPEN)
