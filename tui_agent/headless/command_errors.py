"""What click says about wrong arguments, as `what happened` and `what to do` in our own words."""

from __future__ import annotations

import click

from tui_agent.errors import UsageError
from tui_agent.files.visible import escaped
from tui_agent.settings.faults import nearest


class CommandGroup(click.Group):
    """A command with commands of its own; a wrong one is answered with the nearest right one."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **{"no_args_is_help": False, **kwargs})  # ty: ignore[invalid-argument-type]

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name in self.commands or name.startswith("-"):
            return super().resolve_command(ctx, args)
        near = nearest(name, self.commands)
        remedy = (
            f"did you mean `{ctx.command_path} {near}`?"
            if near
            else f"write one of {', '.join(self.commands)}"
        )
        raise UsageError(f"`{ctx.command_path}` has no command {escaped(name)}", remedy)


def in_words(error: click.ClickException) -> tuple[str, str]:
    """What happened and what to do, of an error that click found in the arguments."""
    context: click.Context | None = getattr(error, "ctx", None)
    group = context.command if context else None
    command = context.command_path.removesuffix(" open") if context else "tui-agent"
    remedy = f"`{command} --help` says what there is"
    message = error.format_message().rstrip(".").replace("\n", " ")
    match error:
        case click.NoSuchOption(option_name=name):
            near = nearest(name, _options(context)) if context else ""
            return f"`{command}` has no option {escaped(name)}", f"did you mean {near}?" if near else remedy
        case click.UsageError() if message == "Missing command" and isinstance(group, click.Group):
            return f"`{command}` needs a command", f"write one of {', '.join(group.commands)}"
        case click.UsageError() if "unexpected extra argument" in message:
            return escaped(message[:1].lower() + message[1:]), "put words that belong together in quotes"
        case _:
            return escaped(message[:1].lower() + message[1:]), remedy


def _options(context: click.Context) -> list[str]:
    params = context.command.get_params(context)
    return [name for param in params for name in param.opts if name.startswith("--")]
