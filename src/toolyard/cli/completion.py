"""`toolyard completion`: the script that teaches a shell our commands."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from toolyard.cli.render import show_text

__all__ = ["completion"]

INSTALL = {
    "bash": 'eval "$(toolyard completion bash)"        # in ~/.bashrc',
    "zsh": 'eval "$(toolyard completion zsh)"         # in ~/.zshrc',
    "fish": "toolyard completion fish | source         # in ~/.config/fish/config.fish",
}


@click.command(epilog="Install:\n\n\b\n" + "\n".join(INSTALL.values()))
@click.argument("shell", type=click.Choice(list(INSTALL)))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> int:
    """Print the completion script of a SHELL: bash, zsh or fish."""
    kind = get_completion_class(shell)
    if kind is None:
        raise click.UsageError(f"no completion for {shell}")
    show_text(kind(ctx.find_root().command, {}, "toolyard", "_TOOLYARD_COMPLETE").source() + "\n")
    return 0
