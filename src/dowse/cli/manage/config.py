"""`dowse config` and `dowse completion`: the name of a setting or shell enters, its value or script leaves."""

from __future__ import annotations

from pathlib import Path

import click

from dowse import config as settings
from dowse import trust
from dowse.cli.options import option
from dowse.cli.session import CommandSession, SessionCommand, SessionGroup
from dowse.serve.plain_text import clean_path, table
from dowse.serve.wire.result import Exit


@click.group(cls=SessionGroup, invoke_without_command=True)
@option("--origin", is_flag=True, help="Show the file, variable or flag that sets each value.")
def config(session: CommandSession, origin: bool) -> int | None:
    """Show and change settings.

    \b
    dowse config --origin
    dowse config set top_k 20
    dowse config unset top_k
    DOWSE_EMBEDDER=none dowse config get embedder

    A later source overrides an earlier one: default, the user's config.toml, the project's dowse.toml or
    [tool.dowse] in pyproject.toml, DOWSE_* variables, flags.
    """
    ctx = click.get_current_context()
    return _show(session, origin=origin) if ctx.invoked_subcommand is None else None


@config.command()
@option("--origin", is_flag=True, help="Show the file, variable or flag that sets each value.")
def show(session: CommandSession, origin: bool) -> int:
    """Print all settings."""
    parent = click.get_current_context().parent
    return _show(session, origin=origin or bool(parent and parent.params.get("origin")))


@config.command()
def path(session: CommandSession) -> int:
    """Print the paths of the settings files."""
    user, project = settings.user_file(session.env), settings.project_file(session.cwd)
    session.answer(
        {"user": str(user), "project": str(project) if project else None},
        f"user     {user}{'' if user.exists() else '  (does not exist yet)'}",
        f"project  {project or 'none'}",
    )
    return Exit.HITS


@config.command()
@click.argument("name")
def get(session: CommandSession, name: str) -> int:
    """Print one setting."""
    value = settings.as_texts(session.config)[settings.setting(name).name]
    session.answer({"name": name, "value": value or None, "origin": session.config.origin(name)}, value)
    return Exit.HITS if value else Exit.NOTHING


@config.command(name="set")
@click.argument("name")
@click.argument("value")
@option("--project", is_flag=True, help="Write the project's dowse.toml [default: the user's config.toml].")
def set_command(session: CommandSession, name: str, value: str, project: bool) -> int:
    """Change one setting."""
    file = _project_target(session.cwd) if project else settings.user_file(session.env)
    written = settings.write_setting(file, name, value)
    if project:
        trust.allow(file, written)  # the user typed it
    session.answer({"name": name, "value": value, "file": str(file)}, f"Set {name} = {value} in {file}.")
    return Exit.HITS


@config.command()
@click.argument("name")
@option("--project", is_flag=True, help="Write the project's dowse.toml [default: the user's config.toml].")
def unset(session: CommandSession, name: str, project: bool) -> int:
    """Remove one setting from a settings file.

    Its default applies again, unless another file, a variable or a flag sets it.
    """
    file = _project_target(session.cwd) if project else settings.user_file(session.env)
    removed = settings.unset_setting(file, settings.setting(name).name)
    session.answer(
        {"name": name, "removed": removed, "file": str(file)},
        f"Removed {name} from {file}." if removed else f"{name} is not set in {file}; nothing changed.",
    )
    still = settings.Config.load(session.cwd, session.env).origin(name)
    if still != settings.DEFAULT:
        session.note(f"{name} is still set by {still}")
    return Exit.HITS


@click.command(cls=SessionCommand)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(session: CommandSession, shell: str) -> int:
    """Print the completion script of a shell.

    \b
    eval "$(dowse completion bash)"                 # in ~/.bashrc
    eval "$(dowse completion zsh)"                  # in ~/.zshrc
    dowse completion fish > ~/.config/fish/completions/dowse.fish
    """
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    if kind is None:
        raise click.UsageError(f"no completion for {shell}")
    root = click.get_current_context().find_root()
    source = kind(root.command, {}, "dowse", "_DOWSE_COMPLETE")
    script = source.source_template % source.source_vars()
    session.answer({"shell": shell, "script": script}, script)
    return Exit.HITS


def _show(session: CommandSession, *, origin: bool) -> int:
    texts = settings.as_texts(session.config)
    origins = {name: session.config.origin(name) for name in texts}
    rows = [(name, clean_path(text) or "-", clean_path(origins[name])) for name, text in texts.items()]
    session.answer(
        {name: {"value": text or None, "origin": origins[name]} for name, text in texts.items()},
        *table(rows if origin else [row[:2] for row in rows]),
    )
    return Exit.HITS


def _project_target(cwd: Path) -> Path:
    """Return the project's dowse.toml, never its pyproject.toml, which other tools own."""
    found = settings.project_file(cwd)
    return found if found and found.name == settings.PROJECT_FILE else cwd / settings.PROJECT_FILE
