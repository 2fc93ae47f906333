"""The page for people: addresses enter, HTML or the same as JSON leaves; mounted by the HTTP face."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Annotated, Any
from urllib.parse import parse_qsl

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import RedirectResponse

from dowse.errors import BadRequestError, DowseError, NotFoundError
from dowse.serve.http.context import Face, client_of, streamed
from dowse.serve.http.problems import RefusedError
from dowse.serve.jobs import OVER
from dowse.serve.page import views
from dowse.serve.page.address import Wanted, document_address, wanted_in_url
from dowse.serve.page.copy import Origin
from dowse.serve.page.document import Look, document_rows, document_view
from dowse.serve.page.hits import Editor
from dowse.serve.page.render import Templates, html, static
from dowse.serve.page.service_map import service_map
from dowse.serve.wire import result as wire
from dowse.serve.wire.result import Object

FORM = "application/x-www-form-urlencoded"
GOOD, BAD = 1.0, 0.0  # a thumb as a grade

Line = Annotated[int | None, Query(ge=1, le=10_000_000)]
Make = Callable[[], bytes]


@dataclass(frozen=True)
class Page:
    """The parts that the routes share."""

    face: Face
    templates: Templates = field(default_factory=Templates)

    @property
    def editor(self) -> Editor:
        options, backend = self.face.options, self.face.backend
        if not options.access.absolute_paths:
            return Editor()
        return Editor(options.editor, {each.name: each.root for each in backend.engine.sources()})

    def origin(self, request: Request) -> Origin:
        options = self.face.options
        place = {"index": str(self.face.backend.engine.path)} if options.access.absolute_paths else {}
        return Origin(str(request.base_url).rstrip("/"), needs_token=options.token is not None, **place)

    def wanted(self, request: Request) -> Wanted:
        return wanted_in_url(request.query_params.multi_items(), self.face.backend.engine.config)

    async def show(self, request: Request, template: str, make: Callable[[], dict[str, Any]]) -> Response:
        """A page, made in a thread of the room; what goes wrong is a page as well."""

        def work() -> bytes:
            return self.templates.page(template, **self._frame(request), **make())

        try:
            return html(await self.face.room.run(client_of(request), work))
        except DowseError as error:
            return self.trouble(request, self.face.backend.error(error))
        except RefusedError as error:
            row = {"title": error.status.phrase, "status": int(error.status), "detail": error.detail}
            found = self.trouble(request, row)
            if error.retry_after_s is not None:
                found.headers["Retry-After"] = str(error.retry_after_s)
            return found

    def trouble(self, request: Request, row: Object) -> Response:
        query = request.query_params.get("q", "")
        return html(self.templates.page("error.html", **self._frame(request), problem=row, query=query), row["status"])

    def _frame(self, request: Request) -> dict[str, Any]:
        query = f"?{request.url.query}" if request.url.query else ""
        path = request.url.path
        return {
            "path": path,
            "json_address": ("/index" if path == "/" else path) + ".json" + query,
            "may_write": self.face.options.access.write,
        }


def page_routes(face: Face) -> APIRouter:
    router = APIRouter(include_in_schema=False)
    page = Page(face)
    for add in (_search_routes, _document_routes, _service_routes, _status_routes, _write_routes):
        add(router, page)

    @router.get("/static/{name}")
    async def asset(name: str) -> Response:
        found = page.templates.assets.get(name)
        if found is None:
            raise NotFoundError(f"there is no file {name!r} here")
        return static(found)

    return router


# --- searching --------------------------------------------------------------------------------------


def _search_routes(router: APIRouter, page: Page) -> None:
    face = page.face

    @router.get("/")
    async def search(request: Request) -> Response:
        return await page.show(request, "search.html", lambda: _searched(page, request))

    @router.get("/index.json")
    async def search_json(request: Request) -> Response:
        return await face.answer(request, lambda: _search_rows(page, page.wanted(request)))

    @router.get("/search/events")
    async def search_events(request: Request) -> Response:
        """Parts of the search page as the answer grows, as events `first`, `order` and `done`, or `problem`."""
        return await streamed(face, request, lambda: _grown(page, request))


def _search_rows(page: Page, wanted: Wanted) -> Object:
    """The answer, its facets, and what became of the place that was asked about; without a question, the status."""
    backend = page.face.backend
    if wanted.asked is None:
        return {"status": backend.status()}
    row = backend.query(wanted.request, cursor=wanted.asked.cursor or "", facets=True)
    return row | {"why_not": backend.explain(wanted.request, wanted.target) if wanted.target else None}


def _searched(page: Page, request: Request) -> dict[str, Any]:
    backend, wanted = page.face.backend, page.wanted(request)
    rows = _search_rows(page, wanted)
    shown: dict[str, Any] = {"wanted": wanted, "form": views.form(wanted, backend), "status": rows.get("status")}
    if wanted.asked is None:
        return shown | {"answer": None, "around": None, "why_not": None}
    return shown | {
        "answer": views.answer(rows, wanted, page.editor),
        "around": views.around(rows, wanted, backend, page.origin(request)),
        "why_not": views.why_not(rows["why_not"], wanted) if rows["why_not"] else None,
    }


def _grown(page: Page, request: Request) -> Iterator[tuple[str, bytes]]:
    """The stream's own last event is left out: what follows it is the same result, with pages and facets."""
    try:
        wanted = page.wanted(request)
        with closing(page.face.backend.stream(wanted.request)) as growing:  # type: ignore[type-var]
            for event in growing:
                if event["event"] != views.SETTLED:
                    shown = views.answer(event["result"], wanted, page.editor, event["stage"])
                    yield event["event"], _parts(page, request, stage=event["stage"], wanted=wanted, answer=shown)
        found = _searched(page, request)
        yield views.SETTLED, _parts(page, request, stage="", **found)
    except DowseError as error:
        problem = page.face.backend.error(error)
        yield "problem", wire.encode({"parts": {"results": page.templates.text("_problem.html", problem=problem)}})


def _parts(page: Page, request: Request, *, stage: str, **values: Any) -> bytes:
    """By the id of an element, what shall stand in it."""
    names = ["results"] if stage else ["results", "facets", "chips", "tools"]
    frame = {"may_write": page.face.options.access.write} | values
    parts = {name: page.templates.text(f"_{name}.html", **frame) for name in names}
    return wire.encode({"stage": stage, "parts": parts})


# --- looking ----------------------------------------------------------------------------------------


def _document_routes(router: APIRouter, page: Page) -> None:
    backend = page.face.backend

    @router.get("/documents/{path:path}")
    async def document(request: Request, path: str, q: str = "", first: Line = None, last: Line = None) -> Response:
        look = Look(q, first, last)

        def make() -> dict[str, Any]:
            return {"document": document_view(document_rows(backend, path, look), look, page.editor), "query": q}

        plain = path.removesuffix(".json")
        if plain != path and not await page.face.room.run(client_of(request), lambda: _is_indexed(page, path)):
            return await page.face.answer(request, lambda: document_rows(backend, plain, look))
        return await page.show(request, "document.html", make)

    @router.get("/chunks/{id}")
    async def chunk(request: Request, id: str) -> Response:
        """Chunks are shown where they stand."""

        def place() -> str:
            row = backend.chunk(id)
            first = row["start_line"]
            return document_address(row["source_uri"], "", (first, row["end_line"] or first) if first else None)

        try:
            return RedirectResponse(await page.face.room.run(client_of(request), place), HTTPStatus.SEE_OTHER)
        except DowseError as error:
            return page.trouble(request, backend.error(error))


def _is_indexed(page: Page, path: str) -> bool:
    """A file may itself be called something.json; then that is the page, and its JSON is at something.json.json."""
    try:
        page.face.backend.document(path)
    except (NotFoundError, BadRequestError):
        return False
    return True


def _service_routes(router: APIRouter, page: Page) -> None:
    backend = page.face.backend

    def rows(name: str = "") -> Object:
        return backend.services() | {"chosen": backend.service(name) if name else None}

    def view(name: str = "") -> dict[str, Any]:
        found = rows(name)
        return {"map": service_map(found, found["chosen"]), "services": found, "chosen": found["chosen"]}

    @router.get("/services.json")
    async def services_json(request: Request) -> Response:
        return await page.face.answer(request, rows)

    @router.get("/services")
    async def services(request: Request) -> Response:
        return await page.show(request, "services.html", view)

    @router.get("/services/{name:path}")  # a name may hold a slash
    async def service(request: Request, name: str) -> Response:
        plain = name.removesuffix(".json")
        if plain != name:
            return await page.face.answer(request, lambda: rows(plain))
        return await page.show(request, "services.html", lambda: view(name))


def _status_routes(router: APIRouter, page: Page) -> None:
    backend = page.face.backend

    def status_rows() -> Object:
        return {"status": backend.status(), "jobs": backend.jobs()["jobs"]}

    @router.get("/status.json")
    async def status_json(request: Request) -> Response:
        return await page.face.answer(request, status_rows)

    @router.get("/status")
    async def status(request: Request) -> Response:
        return await page.show(request, "status.html", lambda: status_rows() | {"over": OVER})

    @router.get("/jobs.json")
    async def jobs_json(request: Request) -> Response:
        return await page.face.answer(request, backend.jobs)

    @router.get("/jobs")
    async def jobs(request: Request) -> Response:
        return await page.show(request, "jobs.html", lambda: backend.jobs() | {"over": OVER})

    @router.get("/jobs/{name}")
    async def job(request: Request, name: str) -> Response:
        plain = name.removesuffix(".json")
        if plain != name:
            return await page.face.answer(request, lambda: backend.job(plain))
        return await page.show(request, "job.html", lambda: {"job": backend.job(name), "over": OVER})


# --- writing ----------------------------------------------------------------------------------------


def _write_routes(router: APIRouter, page: Page) -> None:
    """Forms, so that they work without script; refused unless the operator allows it."""
    face = page.face

    async def done(request: Request, work: Callable[[dict[str, str]], str]) -> Response:
        """The work's answer is where to go next."""
        try:
            sent = dict(parse_qsl((await face.body(request, FORM)).decode("utf-8", "replace"), keep_blank_values=True))
            place = await face.room.run(client_of(request), lambda: work(sent))
        except DowseError as error:
            return page.trouble(request, face.backend.error(error))
        return RedirectResponse(place, HTTPStatus.SEE_OTHER)

    @router.post("/feedback")
    async def feedback(request: Request) -> Response:
        def work(sent: dict[str, str]) -> str:
            grade = GOOD if sent.get("thumb") == "up" else BAD
            face.backend.feedback(sent.get("query", ""), sent.get("target", ""), grade)
            return own_place(sent.get("back", "/"))

        return await done(request, work)

    @router.post("/jobs")
    async def start(request: Request) -> Response:
        def work(sent: dict[str, str]) -> str:
            paths = [sent["path"]] if sent.get("path") else []
            return f"/jobs/{face.backend.start_index(paths)['id']}"

        return await done(request, work)


def own_place(back: str) -> str:
    """An address of this server and no other: `//elsewhere` and `/\\elsewhere` lead away."""
    return back if back.startswith("/") and back[1:2] not in ("/", "\\") and back.isprintable() else "/"
