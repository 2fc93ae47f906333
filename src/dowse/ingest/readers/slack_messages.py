"""Messages of a Slack channel's day: JSON enters, readable messages with their lines leave."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec
from msgspec.structs import replace

from dowse.errors import BadRequestError
from dowse.ingest.chunking.document import starts_of

Json = dict[str, Any]

DEEPEST_BLOCK = 12  # chosen: Slack's own blocks nest to about six
MOST_BLOCK_PARTS = 2_000
_SPACE = re.compile(r"[ \t\r\n]*")
_NEXT = re.compile(r"[ \t\r\n]*([,\]])")
_MARKUP = re.compile(r"<([@#!]?)([^<>|\s][^<>|]*)(?:\|([^<>]*))?>")
_ESCAPES = (("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&"))
# Notices of Slack itself about a channel: nobody wrote them, and nobody searches for them.
_HOUSEKEEPING = frozenset(
    f"{place}_{event}"
    for place in ("channel", "group")
    for event in ("join", "leave", "archive", "unarchive", "posting_permissions", "convert_to_private")
) | {"bot_add", "bot_remove", "pinned_item", "unpinned_item", "tombstone", "reminder_add", "huddle_thread"}


class Workspace(msgspec.Struct, frozen=True):
    """Names of the people and channels of an export."""

    people: Mapping[str, str]  # user or bot id → name
    channels: Mapping[str, str]  # channel id → name
    ids: Mapping[str, str]  # name of a channel's folder → its id


class Message(msgspec.Struct, frozen=True):
    """Message in its last version."""

    ts: str  # Slack's own id of it within the channel: seconds, a dot, a counter
    moment: datetime | None
    author: str
    text: str
    thread_ts: str  # its own `ts` when it opens a thread or has no replies
    lines: tuple[int, int]
    bot: bool = False

    @property
    def opens(self) -> bool:
        return self.thread_ts == self.ts


def items_of(text: str) -> list[tuple[Any, tuple[int, int]]] | None:
    """Return the elements of a JSON array with their lines; None when it is no array."""
    at = _end(_SPACE, text, 0)
    if not text.startswith("[", at):
        return None
    starts = starts_of(text)
    decoder = json.JSONDecoder()
    items: list[tuple[Any, tuple[int, int]]] = []
    at = _end(_SPACE, text, at + 1)
    if text.startswith("]", at):
        return items
    while True:
        try:
            value, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError) as err:
            line = bisect_right(starts, at)
            raise BadRequestError(f"not valid JSON in the value that starts on line {line}: {err}") from err
        items.append((value, (bisect_right(starts, at), bisect_right(starts, end - 1))))
        after = _NEXT.match(text, end)
        if after is None:
            raise BadRequestError(f"not valid JSON on line {bisect_right(starts, end)}: a comma or bracket is missing")
        if after[1] == "]":
            return items
        at = _end(_SPACE, text, after.end())


def looks_like_messages(items: Sequence[tuple[Any, tuple[int, int]]]) -> bool:
    """Tell whether most elements are messages of Slack."""
    likely = sum(isinstance(each, dict) and each.get("type") == "message" and "ts" in each for each, _ in items)
    return bool(items) and 2 * likely > len(items)


def messages_of(items: Sequence[tuple[Any, tuple[int, int]]], workspace: Workspace) -> list[Message]:
    """Return messages by time, each once: an edited one in its last version, a deleted one not at all."""
    found: dict[str, Message] = {}
    for item, lines in items:
        if not isinstance(item, dict):
            continue
        if item.get("subtype") == "message_deleted":
            found.pop(_text(item.get("deleted_ts")), None)
            continue
        if item.get("subtype") == "message_changed" and isinstance(item.get("message"), dict):
            item = item["message"] | {"edited": item["message"].get("edited", True)}
        message = _message(item, lines, workspace)
        if message is not None:
            if earlier := found.get(message.ts):  # the words of the later, at the place of the earlier
                thread_ts = message.thread_ts if earlier.opens else earlier.thread_ts
                message = replace(message, moment=earlier.moment, thread_ts=thread_ts, lines=earlier.lines)
            found[message.ts] = message
    return sorted(found.values(), key=lambda each: (_seconds(each.ts), each.ts))


def moment_of(ts: object) -> datetime | None:
    """Parse Slack's seconds as a moment; None where they are none."""
    seconds = _seconds(_text(ts))
    try:
        return datetime.fromtimestamp(seconds, UTC) if seconds > 0 else None
    except (OverflowError, ValueError, OSError):
        return None


def people_of(data: object) -> dict[str, str]:
    """Return names by user and bot id."""
    people: dict[str, str] = {}
    for user in data if isinstance(data, list) else ():
        if isinstance(user, dict) and isinstance(user.get("id"), str) and (name := person_name(user)):
            people[user["id"]] = name
            bot = object_of(user.get("profile")).get("bot_id")
            if isinstance(bot, str):
                people[bot] = name
    return people


def person_name(user: Json) -> str:
    """Return the display name, else the real one, else the account's."""
    profile = object_of(user.get("profile"))
    return first_text(profile.get("display_name"), profile.get("real_name"), user.get("real_name"), user.get("name"))


def _message(item: Json, lines: tuple[int, int], workspace: Workspace) -> Message | None:
    ts = _text(item.get("ts"))
    if not ts or _text(item.get("subtype")) in _HOUSEKEEPING or item.get("hidden") is True:
        return None
    text = "\n".join(filter(None, _spoken(item, workspace)))
    if not text:
        return None
    bot = item.get("subtype") == "bot_message" or ("bot_id" in item and "client_msg_id" not in item)
    thread_ts = _text(item.get("thread_ts")) or ts
    return Message(ts, moment_of(ts), _author(item, workspace), text, thread_ts, lines, bot)


def _author(item: Json, workspace: Workspace) -> str:
    for key in ("user", "bot_id"):
        if isinstance(item.get(key), str) and item[key] in workspace.people:
            return workspace.people[item[key]]
    profile = object_of(item.get("user_profile"))
    bot = object_of(item.get("bot_profile"))
    known = first_text(profile.get("display_name"), profile.get("real_name"), item.get("username"), bot.get("name"))
    return known or first_text(item.get("user"), item.get("bot_id")) or "someone"


def first_text(*names: object) -> str:
    """Return the first text that is not blank, in one line."""
    return next((" ".join(name.split()) for name in names if isinstance(name, str) and name.strip()), "")


def _spoken(item: Json, workspace: Workspace) -> Iterator[str]:
    """Return the text, its quotes and links, and the names of its files."""
    text = readable(_text(item.get("text")), workspace).strip()
    if not text:
        text = " ".join(readable(part, workspace) for part in _block_texts(item.get("blocks"))).strip()
    if text:
        yield text + (" (edited)" if item.get("edited") else "")
    seen = {text}
    for attachment in _objects(item.get("attachments")):
        keys = ("pretext", "title", "text")
        parts = [readable(_text(attachment.get(key)), workspace).strip() for key in keys]
        parts = [part for part in parts if part] or [readable(_text(attachment.get("fallback")), workspace).strip()]
        quoted = "\n".join(part for part in parts if part and part not in seen)
        seen.add(quoted)
        yield "\n".join(f"> {line}" for line in quoted.split("\n")) if quoted else ""
    for file in _objects(item.get("files")):
        name = first_text(*(_text(file.get(key)) for key in ("title", "name", "id")))
        yield f"[file: {name}]" if name else ""


def readable(text: str, workspace: Workspace) -> str:
    """Return Slack's markup as people see it: names for ids, addresses behind their labels."""

    def shown(match: re.Match[str]) -> str:
        mark, target, label = match[1], match[2], match[3]
        if mark == "@":
            return f"@{workspace.people.get(target) or label or target}"
        if mark == "#":
            return f"#{label or workspace.channels.get(target) or target}"
        if mark == "!":
            return label or f"@{target.partition('^')[0]}"
        address = target.removeprefix("mailto:")
        return address if not label or label in (address, target) else f"{label} ({address})"

    text = _MARKUP.sub(shown, text)
    for escape, char in _ESCAPES:
        text = text.replace(escape, char)
    return text


def _block_texts(blocks: object) -> list[str]:
    """Return the words in Block Kit's nested blocks, in order; a bot may send nothing else."""
    texts: list[str] = []
    waiting: list[tuple[object, int]] = [(blocks, 0)]
    while waiting and len(texts) < MOST_BLOCK_PARTS:
        value, depth = waiting.pop()
        if depth > DEEPEST_BLOCK:
            continue
        if isinstance(value, dict):
            text = value.get("text")
            if isinstance(text, str):
                texts.append(text)
            inner = [value.get(key) for key in ("text", "fields", "elements", "title")]
            waiting += [(each, depth + 1) for each in reversed(inner) if isinstance(each, dict | list)]
        elif isinstance(value, list):
            waiting += [(each, depth + 1) for each in reversed(value)]
    return texts


def _end(pattern: re.Pattern[str], text: str, at: int) -> int:
    found = pattern.match(text, at)
    return found.end() if found else at


def _seconds(ts: str) -> float:
    try:
        return float(ts)
    except ValueError:
        return 0.0


def _text(value: object) -> str:
    return value if isinstance(value, str) else str(value) if isinstance(value, int | float) else ""


def object_of(value: object) -> Json:
    return value if isinstance(value, dict) else {}


def _objects(value: object) -> list[Json]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []
