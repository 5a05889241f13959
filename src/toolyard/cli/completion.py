"""`toolyard completion`: the script that teaches a shell our commands."""

from __future__ import annotations

import click
from click.shell_completion import BashComplete, FishComplete, ShellComplete, ZshComplete

from toolyard.cli.render import show_text

INSTALL = {
    "bash": 'eval "$(toolyard completion bash)"     # in ~/.bashrc',
    "zsh": 'eval "$(toolyard completion zsh)"      # in ~/.zshrc, after compinit',
    "fish": "toolyard completion fish | source      # in ~/.config/fish/config.fish",
}


class WholeHelp(FishComplete):
    """Click's script cuts what it shows at the second comma; ours only at the first, which ends the type."""

    source_template = FishComplete.source_template.replace('string split ","', 'string split --max 1 ","')


SHELLS: dict[str, type[ShellComplete]] = {"bash": BashComplete, "zsh": ZshComplete, "fish": WholeHelp}


@click.command(epilog="Install:\n\n\b\n" + "\n".join(INSTALL.values()))
@click.argument("shell", type=click.Choice(list(SHELLS)))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> int:
    """Print the completion script of a SHELL: bash (4.4 or newer), zsh or fish."""
    script = SHELLS[shell](ctx.find_root().command, {}, "toolyard", "_TOOLYARD_COMPLETE")
    # Not script.source(), which first runs the bash on PATH to ask for its version.
    show_text(script.source_template % script.source_vars() + "\n")
    return 0
