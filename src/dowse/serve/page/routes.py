"""Routes of the web page: each URL as HTML, and as JSON with the suffix `.json`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qsl

from msgspec import Struct, field
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from dowse.errors import BadRequestError, DowseError, NotFoundError
from dowse.serve.http.context import RequestContext
from dowse.serve.http.operations import plain_route, read_parameters
from dowse.serve.http.problems import RefusedError
from dowse.serve.page import views
from dowse.serve.page.address import PageQuery, chunk_address, parse_page_url
from dowse.serve.page.copy import ServerAddress
from dowse.serve.page.document import DocumentQuery, document_rows, document_view
from dowse.serve.page.hits import EditorLinks
from dowse.serve.page.render import Templates, html, static
from dowse.serve.page.service_map import service_map
from dowse.serve.page.why import Values
from dowse.serve.wire import result as wire
from dowse.serve.wire.result import Object

FORM = "application/x-www-form-urlencoded"
GOOD, BAD = 1.0, 0.0  # grades of the thumbs


class PageContext(Struct, frozen=True):
    """Components that the routes of the page share."""

    context: RequestContext
    templates: Templates = field(default_factory=Templates)

    @property
    def editor(self) -> EditorLinks:
        options, backend = self.context.options, self.context.backend
        if not options.access.absolute_paths:
            return EditorLinks()
        return EditorLinks(options.editor, {each.name: each.root for each in backend.engine.sources()})

    def server(self, request: Request) -> ServerAddress:
        options = self.context.options
        place = {"index": str(self.context.backend.engine.path)} if options.access.absolute_paths else {}
        return ServerAddress(str(request.base_url).rstrip("/"), needs_token=options.token is not None, **place)

    def query(self, request: Request) -> PageQuery:
        return parse_page_url(request.query_params.multi_items(), self.context.backend.engine.config)

    async def show(self, request: Request, template: str, make: Callable[[], Values]) -> Response:
        """Render a page in a thread; an error becomes a page, too."""

        def work() -> bytes:
            return self.templates.page(template, **self._frame(request), **make())

        try:
            return html(await self.context.run(request, work))
        except DowseError as error:
            return self.problem(request, self.context.backend.error(error))
        except RefusedError as error:
            response = self.problem(request, error.problem)
            if error.retry_after_s is not None:
                response.headers["Retry-After"] = str(error.retry_after_s)
            return response

    async def redirect(self, request: Request, work: Callable[[], str]) -> Response:
        """Redirect to the URL that the work returns."""
        try:
            return RedirectResponse(await self.context.run(request, work), HTTPStatus.SEE_OTHER)
        except DowseError as error:
            return self.problem(request, self.context.backend.error(error))

    def problem(self, request: Request, row: Object) -> Response:
        query = request.query_params.get("q", "")
        return html(self.templates.page("error.html", **self._frame(request), problem=row, text=query), row["status"])

    def _frame(self, request: Request) -> Values:
        query = f"?{request.url.query}" if request.url.query else ""
        path = request.url.path
        return {
            "path": path,
            "json_address": ("/index" if path == "/" else path) + ".json" + query,
            "may_write": self.context.options.access.write,
        }


def page_routes(context: RequestContext) -> list[Route]:
    page = PageContext(context)

    async def asset(request: Request) -> Response:
        name = request.path_params["name"]
        found = page.templates.assets.get(name)
        if found is None:
            raise NotFoundError(f"no static file {name!r}")
        return static(found)

    return [
        *_search_routes(page),
        *_document_routes(page),
        *_service_routes(page),
        *_status_routes(page),
        *_write_routes(page),
        plain_route("/static/{name}", asset),
    ]


def _search_routes(page: PageContext) -> list[Route]:
    async def search(request: Request) -> Response:
        return await page.show(request, "search.html", lambda: _searched(page, request))

    async def search_json(request: Request) -> Response:
        return await page.context.answer(request, lambda: _search_rows(page, page.query(request)))

    async def search_events(request: Request) -> Response:
        return await page.context.stream(request, lambda: _search_events(page, request))

    return [
        plain_route("/", search),
        plain_route("/index.json", search_json),
        plain_route("/search/events", search_events),
    ]


def _search_rows(page: PageContext, query: PageQuery) -> Object:
    """Return the result with facets and the explanation of `target`; without a query, the status."""
    backend = page.context.backend
    if query.parsed is None:
        return {"status": backend.status()}
    row = backend.query(query.request, cursor=query.parsed.cursor or "", facets=True)
    return row | {"why_not": backend.explain(query.request, query.target) if query.target else None}


def _searched(page: PageContext, request: Request) -> Values:
    backend, query = page.context.backend, page.query(request)
    rows = _search_rows(page, query)
    shown: Values = {"query": query, "form": views.search_form(query, backend), "status": rows.get("status")}
    if query.parsed is None:
        return shown | {"result": None, "sidebar": None, "explanation": None}
    return shown | {
        "result": views.result_view(rows, query, page.editor),
        "sidebar": views.sidebar(rows, query, backend, page.server(request)),
        "explanation": views.explanation(rows["why_not"], query) if rows["why_not"] else None,
    }


def _search_events(page: PageContext, request: Request) -> Iterator[tuple[str, bytes]]:
    """Yield parts of the page as events `first`, `order` and `done`, with pages and facets, or `problem`."""
    try:
        query = page.query(request)
        with closing(page.context.backend.stream(query.request)) as events:  # type: ignore[type-var]
            for event in events:
                if event["event"] != views.FINAL:
                    shown = views.result_view(event["result"], query, page.editor, event["stage"])
                    yield event["event"], _parts(page, stage=event["stage"], query=query, result=shown)
        yield views.FINAL, _parts(page, stage="", **_searched(page, request))
    except DowseError as error:
        problem = page.context.backend.error(error)
        yield "problem", wire.encode({"parts": {"results": page.templates.text("_problem.html", problem=problem)}})


def _parts(page: PageContext, *, stage: str, **values: Any) -> bytes:
    """Render parts of the page by the id of their element."""
    names = ["results"] if stage else ["results", "facets", "chips", "tools"]
    frame = {"may_write": page.context.options.access.write} | values
    parts = {name: page.templates.text(f"_{name}.html", **frame) for name in names}
    return wire.encode({"stage": stage, "parts": parts})


def _document_routes(page: PageContext) -> list[Route]:
    backend = page.context.backend

    async def document(request: Request) -> Response:
        wanted = read_parameters(request, DocumentQuery)

        def make() -> Values:
            return {"document": document_view(document_rows(backend, wanted), wanted, page.editor), "text": wanted.q}

        if wanted.path.endswith(".json") and not await page.context.run(
            request, lambda: _is_indexed(page, wanted.path)
        ):
            plain = replace(wanted, path=wanted.path.removesuffix(".json"))
            return await page.context.answer(request, lambda: document_rows(backend, plain))
        return await page.show(request, "document.html", make)

    async def chunk(request: Request) -> Response:
        """Redirect to the lines of the chunk in its document."""
        return await page.redirect(request, lambda: chunk_address(backend.chunk(request.path_params["id"])))

    return [plain_route("/documents/{path:path}", document), plain_route("/chunks/{id}", chunk)]


def _is_indexed(page: PageContext, path: str) -> bool:
    """Check for a file named something.json: its page is at that URL, and its JSON at something.json.json."""
    try:
        page.context.backend.document(path)
    except (NotFoundError, BadRequestError):
        return False
    return True


def _service_routes(page: PageContext) -> list[Route]:
    backend = page.context.backend

    def rows(name: str) -> Object:
        return backend.services() | {"chosen": backend.service(name) if name else None}

    def view(name: str) -> Values:
        found = rows(name)
        return {"map": service_map(found, found["chosen"]), "services": found, "chosen": found["chosen"]}

    return [
        *_pages(page, "/services", "services.html", rows, view),
        *_pages(page, "/services/{name:path}", "services.html", rows, view),  # a name may contain a slash
    ]


def _status_routes(page: PageContext) -> list[Route]:
    backend = page.context.backend

    def status(_name: str) -> Object:
        return {"status": backend.status(), "jobs": backend.jobs()["jobs"]}

    def jobs(_name: str) -> Object:
        return backend.jobs()

    return [
        *_pages(page, "/status", "status.html", status, status),
        *_pages(page, "/jobs", "jobs.html", jobs, jobs),
        *_pages(page, "/jobs/{name}", "job.html", backend.job, lambda name: {"job": backend.job(name)}),
    ]


def _pages(
    page: PageContext, path: str, template: str, rows: Callable[[str], Object], view: Callable[[str], Values]
) -> list[Route]:
    """Make the routes of a page and its JSON; the path may end with the name of a thing."""

    async def either(request: Request) -> Response:
        name = request.path_params.get("name", "")
        if request.scope["path"].endswith(".json"):
            return await page.context.answer(request, lambda: rows(name.removesuffix(".json")))
        return await page.show(request, template, lambda: view(name))

    return [plain_route(path, either)] + ([] if "{" in path else [plain_route(f"{path}.json", either)])


def _write_routes(page: PageContext) -> list[Route]:
    """Make the routes of forms, which work without JavaScript. They fail unless the operator allows writes."""
    backend = page.context.backend

    async def form(request: Request) -> dict[str, str]:
        body = await page.context.body(request, FORM)
        return dict(parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True))

    async def feedback(request: Request) -> Response:
        sent = await form(request)

        def work() -> str:
            grade = GOOD if sent.get("thumb") == "up" else BAD
            backend.feedback(sent.get("query", ""), sent.get("target", ""), grade)
            return local_url(sent.get("back", "/"))

        return await page.redirect(request, work)

    async def start(request: Request) -> Response:
        path = (await form(request)).get("path")
        return await page.redirect(request, lambda: f"/jobs/{backend.start_index([path] if path else [])['id']}")

    return [plain_route("/feedback", feedback, "POST"), plain_route("/jobs", start, "POST")]


def local_url(back: str) -> str:
    """Return a URL of this server: `//elsewhere` and `/\\elsewhere` would leave it."""
    return back if back.startswith("/") and back[1:2] not in ("/", "\\") and back.isprintable() else "/"
