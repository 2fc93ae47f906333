"""A file of a Slack export goes in; a Document with a chunk for each thread of that channel and day comes out.

Messages that nobody answered join their neighbours in time. Names come from the export's users.json and channels.json,
which are looked for beside the file. A reply that came on another day stands in that day's file: it becomes a chunk of
its own, with the thread's id and how the thread began, so that every document depends on its own bytes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Any

from dowse.errors import BadRequestError
from dowse.ingest.chunking.document import Heading, decode
from dowse.ingest.readers.conversation import Thread, Turn, build_threads
from dowse.ingest.readers.slack_messages import (
    Message,
    Workspace,
    items_of,
    looks_like_messages,
    messages_of,
    moment_of,
    people_of,
    person_name,
)
from dowse.ingest.sources.beside import beside
from dowse.ports import Reader, SourceFile
from dowse.types import CorpusType, Document

NEAR = timedelta(minutes=30)  # chosen: lone messages further apart are seldom about the same
LONGEST_OPENING_CHARS = 100  # chosen: enough to know the matter, too little to outrank the message itself
LONGEST_LABEL_CHARS = 60
MOST_LONE_CHARS = 1000  # chosen: about the target of a chunk; beyond it unrelated matters would blur each other
_DAY = re.compile(r"(?:(?P<root>.*)/)?(?P<channel>[^/]+)/(?P<day>\d{4}-\d\d-\d\d)\.json")
_LISTS = ("channels.json", "groups.json", "dms.json", "mpims.json")
_PEOPLE = "users.json"
_LOG = "integration_logs.json"  # who installed which app: of an export, and not worth finding
_HOST = re.compile(r"https://((?!files\.|api\.|slack\.)[a-z0-9-]+(?:\.enterprise)?\.slack\.[a-z]{2,})/")


@dataclass(frozen=True)
class SlackReader:
    """Reads exports as folders and as archives. JSON that only has the name of a day goes to another reader."""

    otherwise: Callable[[], Reader]  # for JSON that is no part of an export
    name: str = "slack"
    workspaces: dict[str, Workspace] = field(default_factory=dict)  # by the export's root; read once each

    def read(self, file: SourceFile) -> Document:
        text = decode(file.data)
        day = _DAY.fullmatch(file.path)
        items = items_of(text)
        if day and items is not None and looks_like_messages(items):
            workspace = self._workspace(file, day["root"])
            return _channel_day(file, day, messages_of(items, workspace), _host(text), workspace)
        if day and items == []:
            return build_threads(file, CorpusType.CONVO_SLACK, Heading(file.path), [])
        if items is not None and self._is_export(file):
            return _directory(file, [(item, lines) for item, lines in items if isinstance(item, dict)])
        return self.otherwise().read(file)

    def _workspace(self, file: SourceFile, root: str | None) -> Workspace:
        key = f"{file.source}/{root or ''}"
        if key not in self.workspaces:
            self.workspaces[key] = _workspace(file, root)
        return self.workspaces[key]

    def _is_export(self, file: SourceFile) -> bool:
        """Whether one of the lists of an export stands beside the other: users.json alone may be anyone's."""
        folder, _, name = file.path.rpartition("/")
        other = _LISTS[0] if name == _PEOPLE else _PEOPLE
        return name in (*_LISTS, _PEOPLE, _LOG) and beside(file, _below(folder, other)) is not None


def _workspace(file: SourceFile, root: str | None) -> Workspace:
    people = people_of(_listed(file, _below(root, _PEOPLE)))
    channels: dict[str, str] = {}
    for name in _LISTS:
        for entry in _listed(file, _below(root, name)):
            if isinstance(entry, dict) and isinstance(entry.get("id"), str):
                channels[entry["id"]] = entry["name"] if isinstance(entry.get("name"), str) else entry["id"]
    return Workspace(people, channels, {name: each for each, name in channels.items()})


def _listed(file: SourceFile, path: str) -> list[Any]:
    data = beside(file, path)
    try:
        found = json.loads(decode(data)) if data else []
    except (ValueError, RecursionError, BadRequestError):
        return []  # it is told of where it is read itself; names stay ids
    return found if isinstance(found, list) else []


def _below(folder: str | None, name: str) -> str:
    return f"{folder}/{name}" if folder else name


# --- a channel's day ----------------------------------------------------------------------------------


def _channel_day(
    file: SourceFile, day: re.Match[str], messages: Sequence[Message], host: str | None, workspace: Workspace
) -> Document:
    channel = day["channel"]
    first = next((message.moment for message in messages if message.moment), None)
    heading = Heading(f"#{channel} {day['day']}", timestamp=first)
    threads = [_thread(file, day, group, host, workspace) for group in _groups(messages)]
    return build_threads(file, CorpusType.CONVO_SLACK, heading, threads)


def _groups(messages: Sequence[Message]) -> list[list[Message]]:
    """Threads, and runs of lone messages that are near in time; by their first message."""
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
    """The message that opened a thread on another day. Slack names a file by the day where the workspace is."""
    moment = moment_of(thread_ts)
    for name in _days(moment.date()) if moment else ():
        data = beside(file, _below(day["root"], f"{day['channel']}/{name}.json"))
        try:
            items = (items_of(decode(data)) if data else None) or []
        except BadRequestError:
            continue  # that file is told of where it is read itself
        opening = [(item, lines) for item, lines in items if isinstance(item, dict) and item.get("ts") == thread_ts]
        for message in messages_of(opening, workspace):
            return message
    return None


def _days(day: date) -> list[str]:
    """The day itself, the next and the one before, which may be the same day elsewhere."""
    near = (day.toordinal(), day.toordinal() + 1, day.toordinal() - 1)
    return [date.fromordinal(each).isoformat() for each in near if 0 < each <= date.max.toordinal()]


def _short(text: str, limit_chars: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= limit_chars else line[: limit_chars - 1].rstrip() + "…"


def _host(text: str) -> str | None:
    """The workspace's own address, where a file or link of that day spells it."""
    found = _HOST.search(text)
    return found[1] if found else None


# --- the lists ----------------------------------------------------------------------------------------


def _directory(file: SourceFile, items: Iterable[tuple[dict[str, Any], tuple[int, int]]]) -> Document:
    """Who is who, and what channels are for; without addresses."""
    name = file.path.rpartition("/")[2]
    people = name == _PEOPLE
    told = ((_person if people else _channel, item, lines) for item, lines in items if name != _LOG)
    turns = [Turn(text, lines) for shown, item, lines in told if (text := shown(item))]
    title = "People on Slack" if people else "Slack channels"
    thread = Thread(tuple(turns), prefix=(title,))
    return build_threads(file, CorpusType.CONVO_SLACK, Heading(title), [thread])


def _person(user: dict[str, Any]) -> str:
    profile = user["profile"] if isinstance(user.get("profile"), dict) else {}
    real = profile.get("real_name") or user.get("real_name")
    name = person_name(user)
    called = f"{real} (@{name})" if isinstance(real, str) and real and real != name else name
    title = profile.get("title")
    kind = "bot" if user.get("is_bot") else "has left" if user.get("deleted") else ""
    told = ", ".join(each for each in (title, kind) if isinstance(each, str) and each)
    return _short(f"{called}: {told}" if told else called, 300) if name else ""


def _channel(channel: dict[str, Any]) -> str:
    name = channel.get("name")
    if not isinstance(name, str) or not name:
        return ""
    told = [channel[key].get("value") for key in ("topic", "purpose") if isinstance(channel.get(key), dict)]
    words = " ".join(each for each in told if isinstance(each, str) and each)
    return _short(f"#{name}: {words}" if words else f"#{name}", 600)
