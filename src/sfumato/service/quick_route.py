"""A route of the API that reads ordinary requests itself. FastAPI's own reading takes longer than some previews plan.

An ordinary request has a token, and a JSON body of the declared form. Every other request, and with it every refusal,
goes FastAPI's own way, which is also where the OpenAPI document comes from.
"""

import json
from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request, Response
from fastapi.routing import APIRoute
from pydantic import BaseModel, ValidationError

from sfumato.service.callers import find_by_token

MOST_LETTERS = 200  # of a header: longer ones go the usual way, where they may be refused
Handler = Callable[[Request], Coroutine[Any, Any, Response]]


class QuickRoute(APIRoute):
    """A route whose function takes `name` from the path, one body, headers and `user`, and returns a Response."""

    def get_route_handler(self) -> Handler:
        """What answers a request: FastAPI asks for it once."""
        usual, call = super().get_route_handler(), self.endpoint
        ((body, model),) = [
            (parameter.name, parameter.field_info.annotation) for parameter in self.dependant.body_params
        ]
        headers = {parameter.alias: (parameter.name, parameter.default) for parameter in self.dependant.header_params}

        async def handle(request: Request) -> Response:
            given = request.headers
            scheme, _, token = given.get("authorization", "").partition(" ")
            if scheme != "Bearer" or not token or given.get("content-type") != "application/json":
                return await usual(request)
            asked = _read_body(await request.body(), model)
            sent = {name: given.get(alias, default) for alias, (name, default) in headers.items()}
            if asked is None or any(alias in given and not 0 < len(given[alias]) <= MOST_LETTERS for alias in headers):
                return await usual(request)
            user = find_by_token(request, token)
            found: Response = await call(name=request.path_params["name"], user=user, **{body: asked}, **sent)
            return found

        return handle


def _read_body(content: bytes, model: Any) -> BaseModel | None:  # noqa: ANN401 - a class, as FastAPI holds it
    """The body of a request; None if it is not of this form."""
    try:
        found: BaseModel = model.model_validate(json.loads(content))
    except (ValidationError, ValueError, RecursionError):
        return None
    return found
