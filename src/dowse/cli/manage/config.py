"""`dowse config` and `dowse completion`: a setting's or shell's name enters, its value or script leaves."""

from __future__ import annotations

from pathlib import Path

import click

from dowse.cli.session import Session, shared_options
from dowse.config import PROJECT_FILE, SETTINGS, as_texts, project_file, setting, user_file, write_setting
from dowse.serve.wire.result import Exit


@click.group(invoke_without_command=True)
@click.option("--origin", is_flag=True, help="Say where each value comes from.")
@shared_options
def config(session: Session, origin: bool) -> int | None:
    """Show and change settings.

    \b
    dowse config --origin
    dowse config set top_k 20
    DOWSE_EMBEDDER=none dowse config get embedder

    Later wins: default, the user's config.toml, the project's dowse.toml or [tool.dowse] in pyproject.toml,
    DOWSE_* variables, flags.
    """
    ctx = click.get_current_context()
    return _show(session, origin=origin) if ctx.invoked_subcommand is None else None


@config.command()
@click.option("--origin", is_flag=True, help="Say where each value comes from.")
@shared_options
def show(session: Session, origin: bool) -> int:
    """Print all settings."""
    return _show(session, origin=origin or bool(_parent_flag("origin")))


@config.command()
@shared_options
def path(session: Session) -> int:
    """Print where settings are read from."""
    user, project = user_file(session.env), project_file(session.cwd)
    if session.as_json:
        session.emit_json({"user": str(user), "project": str(project) if project else None})
    else:
        session.emit(f"user     {user}{'' if user.exists() else '  (not there yet)'}")
        session.emit(f"project  {project or 'none'}")
    return Exit.HITS


@config.command()
@click.argument("name")
@shared_options
def get(session: Session, name: str) -> int:
    """Print one setting."""
    value = as_texts(session.config)[setting(name).name]
    if session.as_json:
        session.emit_json({"name": name, "value": value or None, "origin": session.config.origin(name)})
    else:
        session.emit(value)
    return Exit.HITS if value else Exit.NOTHING


@config.command(name="set")
@click.argument("name")
@click.argument("value")
@click.option("--project", is_flag=True, help="In the project's dowse.toml instead of the user's config.toml.")
@shared_options
def set_command(session: Session, name: str, value: str, project: bool) -> int:
    """Change one setting."""
    file = _project_target(session.cwd) if project else user_file(session.env)
    write_setting(file, name, value)
    if session.as_json:
        session.emit_json({"name": name, "value": value, "file": str(file)})
    else:
        session.emit(f"{name} = {value}  in {file}")
    return Exit.HITS


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@shared_options
def completion(session: Session, shell: str) -> int:
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
    if session.as_json:
        session.emit_json({"shell": shell, "script": script})
    else:
        session.emit(script)
    return Exit.HITS


def _show(session: Session, *, origin: bool) -> int:
    from dowse.serve.plain_text import clean_path, table

    texts = as_texts(session.config)
    if session.as_json:
        session.emit_json(
            {name: {"value": text or None, "origin": session.config.origin(name)} for name, text in texts.items()}
        )
        return Exit.HITS
    rows = [
        (known.name, clean_path(texts[known.name]) or "-", clean_path(session.config.origin(known.name)))
        for known in SETTINGS
    ]
    for line in table(rows if origin else [row[:2] for row in rows]):
        session.emit(line)
    return Exit.HITS


def _project_target(cwd: Path) -> Path:
    """The project's own file, never its pyproject.toml, which is not ours to rewrite."""
    found = project_file(cwd)
    return found if found and found.name == PROJECT_FILE else cwd / PROJECT_FILE


def _parent_flag(name: str) -> object:
    parent = click.get_current_context().parent
    return parent.params.get(name) if parent else None
