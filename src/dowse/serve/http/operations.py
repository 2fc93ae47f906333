"""Operations of the API: routes with typed parameters, and the OpenAPI document made of them."""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable, Iterable
from functools import wraps
from http import HTTPStatus
from typing import Any, TypeVar

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

import dowse
from dowse.serve.http.context import RequestContext
from dowse.serve.http.openapi import JSON, Schema, components, ref, struct_schema
from dowse.serve.http.problems import MEDIA_TYPE, RefusedError
from dowse.serve.wire.result import Object

Endpoint = Callable[[Request], Awaitable[Response]]
T = TypeVar("T")
Work = Callable[..., Object]


class Operation(msgspec.Struct, frozen=True, kw_only=True):
    """Route of the API with its part of the OpenAPI document."""

    path: str
    tag: str
    endpoint: Endpoint  # its name and docstring become summary and description
    method: str = "GET"
    answer: str | Schema  # name of a component, or a schema
    status: int = 200
    media_type: str = JSON
    parameters: tuple[Schema, ...] = ()
    body: Schema | None = None
    body_type: str = JSON

    @property
    def route(self) -> Route:
        return plain_route(self.path, self.endpoint, self.method)

    def described(self) -> Schema:
        name = self.endpoint.__name__
        answer = ref(self.answer) if isinstance(self.answer, str) else self.answer
        content = {self.media_type: {"schema": answer}}
        problem = {"description": "A problem (RFC 9457).", "content": {MEDIA_TYPE: {"schema": ref("ProblemDetails")}}}
        found: Schema = {
            "tags": [self.tag],
            "summary": name.replace("_", " ").title(),
            "description": inspect.getdoc(self.endpoint),
            "operationId": re.sub(r"\W", "_", name + self.public_path) + f"_{self.method.lower()}",
            "responses": {
                # The empty JSON entry of streams and metrics is as in earlier documents: the schema stays equal.
                str(self.status): {"description": "The answer.", "content": {JSON: {"schema": {}}} | content},
                "4XX": problem,
                "5XX": problem,
            },
        }
        if self.parameters:
            found["parameters"] = list(self.parameters)
        if self.body is not None:
            found["requestBody"] = {"required": True, "content": {self.body_type: {"schema": self.body}}}
        return found

    @property
    def public_path(self) -> str:
        return self.path.replace(":path}", "}")


def plain_route(path: str, endpoint: Endpoint, method: str = "GET") -> Route:
    """Make a route for one method. Starlette adds HEAD to GET, which would run a whole query for no body."""
    route = Route(path, endpoint, methods=[method])
    route.methods = {method}
    return route


def document(operations: Iterable[Operation]) -> Schema:
    paths: Schema = {}
    for each in operations:
        paths.setdefault(each.public_path, {})[each.method.lower()] = each.described()
    about = "One search over everything an engineering team has written."
    return {
        "openapi": "3.1.0",
        "info": {"title": "Dowse", "description": about, "version": dowse.__version__},
        "paths": paths,
        "components": {
            "schemas": components(),
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{}, {"token": []}],
    }


class Operations:
    """Collector of the operations of one tag."""

    def __init__(self, context: RequestContext, tag: str) -> None:
        self.found: list[Operation] = []
        self._context = context
        self._tag = tag

    def add(self, path: str, answer: str | Schema, **more: Any) -> Callable[[Endpoint], Endpoint]:
        """Register an endpoint that reads the request itself."""

        def register(endpoint: Endpoint) -> Endpoint:
            self.found.append(Operation(path=path, tag=self._tag, endpoint=endpoint, answer=answer, **more))
            return endpoint

        return register

    def get(self, path: str, answer: str | Schema) -> Callable[[Work], Work]:
        """Register a function of typed parameters that returns a JSON object; it runs in a thread."""

        def register(work: Work) -> Work:
            kind = _parameters_struct(work)

            @wraps(work)
            async def endpoint(request: Request) -> Response:
                given = msgspec.structs.asdict(read_parameters(request, kind))
                return await self._context.answer(request, lambda: work(**given))

            self.add(path, answer, parameters=_described_parameters(kind, path))(endpoint)
            return work

        return register


def _parameters_struct(work: Work) -> type[msgspec.Struct]:
    """Make a Struct of the parameters of a function, for validation and schema."""
    rows = inspect.signature(work, eval_str=True).parameters.values()
    optional = [(each.name, each.annotation, each.default) for each in rows if each.default is not each.empty]
    required = [(each.name, each.annotation) for each in rows if each.default is each.empty]
    return msgspec.defstruct(work.__name__, [*required, *optional], frozen=True)


def read_parameters(request: Request, kind: type[T]) -> T:
    """Read the parameters of path and query string. The last of a repeated one counts, or all where it is a tuple."""
    given: dict[str, Any] = {**request.query_params, **request.path_params}
    for field in msgspec.structs.fields(kind):  # type: ignore[arg-type]
        if field.default == () and field.name in given:
            given[field.name] = request.query_params.getlist(field.name)
    try:
        return msgspec.convert(given, kind, strict=False)
    except msgspec.ValidationError as err:
        problem, _, name = str(err).replace("`", "").partition(" - at $.")
        detail = f"{name or 'invalid request'}: {problem}; GET /openapi.json lists the parameters"
        raise RefusedError(HTTPStatus.BAD_REQUEST, detail) from err


def _described_parameters(kind: type[msgspec.Struct], path: str) -> tuple[Schema, ...]:
    """Describe parameters; those that the path names are parts of it."""
    whole, found = struct_schema(kind), []
    for name, schema in whole["properties"].items():
        row = {"name": name, "in": "path" if f"{{{name}" in path else "query", "required": name in whole["required"]}
        row |= {"description": schema["description"]} if "description" in schema else {}
        kept = {key: value for key, value in schema.items() if (key, value) != ("default", None)}
        found.append(row | {"schema": kept | {"title": name.title()}})
    return tuple(found)
