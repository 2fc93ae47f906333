"""Reader of Slack exports: a chunk for each thread of a channel's day.

Messages without replies join their neighbours in time. Names come from the export's users.json and channels.json in
the folder above. A reply from another day is in that day's file: it becomes a chunk of its own, with the thread's id
and how the thread began, so that every document depends on its own bytes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from datetime import date, timedelta
from typing import Any

from dowse.errors import BadRequestError
from dowse.ingest.chunking.document import Heading, decode, file_name
from dowse.ingest.readers.conversation import Thread, Turn, build_threads
from dowse.ingest.readers.json import read_json
from dowse.ingest.readers.slack_messages import (
    Message,
    Workspace,
    first_text,
    items_of,
    looks_like_messages,
    messages_of,
    moment_of,
    object_of,
    people_of,
    person_name,
)
from dowse.ingest.sources.content import sibling_bytes
from dowse.ports import SourceFile
from dowse.types import CorpusType, Document

NEAR = timedelta(minutes=30)  # chosen: lone messages further apart seldom share a subject
LONGEST_OPENING_CHARS = 100  # chosen: enough to know the subject, too little to outrank the message itself
LONGEST_LABEL_CHARS = 60
MOST_LONE_CHARS = 1000  # chosen: about the target of a chunk; a longer one would mix unrelated subjects
_DAY = re.compile(r"(?:(?P<root>.*)/)?(?P<channel>[^/]+)/(?P<day>\d{4}-\d\d-\d\d)\.json")
_LISTS = ("channels.json", "groups.json", "dms.json", "mpims.json")
_PEOPLE = "users.json"
_LOG = "integration_logs.json"  # who installed which app: part of an export, without use in a search
_HOST = re.compile(r"https://((?!files\.|api\.|slack\.)[a-z0-9-]+(?:\.enterprise)?\.slack\.[a-z]{2,})/")


class SlackReader:
    """Reader of exports, as folders or archives. Other files with the name of a day are read as JSON."""

    name = "slack"

    def __init__(self) -> None:
        self.workspaces: dict[str, Workspace] = {}  # by the export's root; read once each

    def read(self, file: SourceFile) -> Document:
        text = decode(file.data)
        day = _DAY.fullmatch(file.path)
        items = items_of(text)
        if day and items is not None and looks_like_messages(items):
            workspace = self._workspace(file, day["root"])
            messages = messages_of(items, workspace)
            host = found[1] if (found := _HOST.search(text)) else None  # of a file or link of that day
            first = next((message.moment for message in messages if message.moment), None)
            threads = [_thread(file, day, group, host, workspace) for group in _groups(messages)]
            heading = Heading(f"#{day['channel']} {day['day']}", timestamp=first)
            return build_threads(file, CorpusType.CONVO_SLACK, heading, threads)
        if day and items == []:
            return build_threads(file, CorpusType.CONVO_SLACK, Heading(file.path), [])
        if items is not None and self._is_export(file):
            return _directory(file, [(item, lines) for item, lines in items if isinstance(item, dict)])
        return read_json(file)

    def _workspace(self, file: SourceFile, root: str | None) -> Workspace:
        key = f"{file.source}/{root or ''}"
        if key not in self.workspaces:
            entries = (entry for name in _LISTS for entry in _listed(file, _below(root, name)))
            named = [entry for entry in entries if isinstance(entry, dict) and isinstance(entry.get("id"), str)]
            channels = {entry["id"]: first_text(entry.get("name"), entry["id"]) for entry in named}
            ids = {name: each for each, name in channels.items()}
            self.workspaces[key] = Workspace(people_of(_listed(file, _below(root, _PEOPLE))), channels, ids)
        return self.workspaces[key]

    def _is_export(self, file: SourceFile) -> bool:
        """Tell whether the folder holds two lists of an export: users.json alone may be of any program."""
        folder, _, name = file.path.rpartition("/")
        other = _LISTS[0] if name == _PEOPLE else _PEOPLE
        return name in (*_LISTS, _PEOPLE, _LOG) and sibling_bytes(file, _below(folder, other)) is not None


def _listed(file: SourceFile, path: str) -> list[Any]:
    data = sibling_bytes(file, path)
    try:
        found = json.loads(decode(data)) if data else []
    except (ValueError, RecursionError, BadRequestError):
        return []  # reported when that file itself is read; names stay ids
    return found if isinstance(found, list) else []


def _below(folder: str | None, name: str) -> str:
    return f"{folder}/{name}" if folder else name


def _groups(messages: Sequence[Message]) -> list[list[Message]]:
    """Return threads, and runs of lone messages that are near in time, by their first message."""
    threads: dict[str, list[Message]] = {}
    for message in messages:
        threads.setdefault(message.thread_ts, []).append(message)
    groups: list[list[Message]] = []
    alone = False
    for message in messages:
        thread = threads[message.thread_ts]
        if thread[0] is not message:
            continue
        lone = len(thread) == 1 and message.opens
        if lone and alone and _near(groups[-1], message):
            groups[-1] = [*groups[-1], message]
        else:
            groups.append(thread)
        alone = lone
    return groups


def _near(run: Sequence[Message], message: Message) -> bool:
    chars = sum(len(each.text) for each in (*run, message))
    last = run[-1].moment
    return bool(last and message.moment and message.moment - last <= NEAR) and chars <= MOST_LONE_CHARS


def _thread(
    file: SourceFile, day: re.Match[str], group: Sequence[Message], host: str | None, workspace: Workspace
) -> Thread:
    channel, first = day["channel"], group[0]
    whole = first.opens
    root = first if whole else _root(file, day, first.thread_ts, workspace)
    stamp = first.moment.strftime("%Y-%m-%d %H:%M") if first.moment else day["day"]
    begun = root.text.splitlines()[0] if root else ""
    opening = f"{root.author}: {_short(begun, LONGEST_OPENING_CHARS)}" if root else ""
    return Thread(
        turns=tuple(Turn(_said(each), each.lines, each.author, each.moment) for each in group),
        prefix=(f"#{channel}", f"@{first.author}", stamp),
        opening=opening,
        whole=whole,
        section_path=_short(root.text, LONGEST_LABEL_CHARS) if root else None,
        channel=channel,
        thread_id=first.thread_ts,
        meta=_meta(group, host, workspace.ids.get(channel, channel)),
    )


def _said(message: Message) -> str:
    moment = message.moment.strftime("[%H:%M] ") if message.moment else ""
    return f"{moment}{message.author}: {message.text}"


def _meta(group: Sequence[Message], host: str | None, channel_id: str) -> tuple[tuple[str, str], ...]:
    people = ", ".join(dict.fromkeys(message.author for message in group))
    first = group[0]
    if host is None or not re.fullmatch(r"[CDG][A-Z0-9]{6,}", channel_id):
        return (("participants", people),)
    link = f"https://{host}/archives/{channel_id}/p{first.ts.replace('.', '')}"
    if not first.opens:
        link += f"?thread_ts={first.thread_ts}&cid={channel_id}"
    return (("participants", people), ("permalink", link))


def _root(file: SourceFile, day: re.Match[str], thread_ts: str, workspace: Workspace) -> Message | None:
    """Return the message that opened a thread on another day; file names follow the workspace's zone."""
    moment = moment_of(thread_ts)
    for name in _days(moment.date()) if moment else ():
        data = sibling_bytes(file, _below(day["root"], f"{day['channel']}/{name}.json"))
        try:
            items = (items_of(decode(data)) if data else None) or []
        except BadRequestError:
            continue  # reported when that file itself is read
        opening = [(item, lines) for item, lines in items if isinstance(item, dict) and item.get("ts") == thread_ts]
        for message in messages_of(opening, workspace):
            return message
    return None


def _days(day: date) -> list[str]:
    """Return the day itself, the next and the one before, which may be the same day in another zone."""
    near = (day.toordinal(), day.toordinal() + 1, day.toordinal() - 1)
    return [date.fromordinal(each).isoformat() for each in near if 0 < each <= date.max.toordinal()]


def _short(text: str, limit_chars: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= limit_chars else line[: limit_chars - 1].rstrip() + "…"


def _directory(file: SourceFile, items: Iterable[tuple[dict[str, Any], tuple[int, int]]]) -> Document:
    """Return the list of people or of channels as a document, without addresses."""
    name = file_name(file)
    people = name == _PEOPLE
    shown = _person if people else _channel
    turns = [Turn(text, lines) for item, lines in items if name != _LOG and (text := shown(item))]
    title = "People on Slack" if people else "Slack channels"
    thread = Thread(tuple(turns), prefix=(title,))
    return build_threads(file, CorpusType.CONVO_SLACK, Heading(title), [thread])


def _person(user: dict[str, Any]) -> str:
    profile = object_of(user.get("profile"))
    real, name = first_text(profile.get("real_name"), user.get("real_name")), person_name(user)
    called = f"{real} (@{name})" if real and real != name else name
    kind = "bot" if user.get("is_bot") else "has left" if user.get("deleted") else ""
    words = ", ".join(filter(None, (first_text(profile.get("title")), kind)))
    return _short(f"{called}: {words}" if words else called, 300) if name else ""


def _channel(channel: dict[str, Any]) -> str:
    name = first_text(channel.get("name"))
    words = " ".join(first_text(object_of(channel.get(key)).get("value")) for key in ("topic", "purpose")).strip()
    return _short(f"#{name}: {words}" if words else f"#{name}", 600) if name else ""
