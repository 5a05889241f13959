"""`toolyard trust list|accept|revoke`: files that are obeyed although tools may have changed them."""

from __future__ import annotations

import os
from itertools import chain
from typing import TYPE_CHECKING

import click

from toolyard.cli.main import OrderedGroup
from toolyard.cli.render import show_json, show_note, show_rows

if TYPE_CHECKING:
    from toolyard.files.accepted import Accepted
    from toolyard.files.own.ownership import OwnFolder

SHORT = 12
"""How much of a digest is shown."""


@click.group(cls=OrderedGroup)
def trust() -> None:
    """Say which files may be obeyed although tools may have changed them: list, accept, revoke.

    A file that was changed while something ran that could write it is not obeyed until you accept what it says.
    """


@trust.command("list", short_help="Show what was accepted.")
@click.option("--json", "as_json", is_flag=True, help="Print the answer for programs.")
def list_accepted(as_json: bool) -> int:
    """Show the files that were accepted, and whether each still says the same."""
    from toolyard.files.accepted import accepted
    from toolyard.files.own.ownership import is_still_there, own_folders

    rows = [row_of(one) for one in accepted()]
    for folder in (one for one in own_folders() if one.accepted):
        state = "in use" if is_still_there(folder) else "changed since"
        rows.append({"path": folder.path, "digest": "", "at": folder.at, "state": state})
    if as_json:
        show_json(rows)
    elif rows:
        show_rows([[row["digest"][:SHORT], row["state"], row["at"], row["path"]] for row in rows])
    else:
        show_note("nothing was accepted")
    return 0


@trust.command(short_help="Accept what files say now.")
@click.argument("files", metavar="FILE...", nargs=-1, required=True)
@click.option("--digest", help="Accept the FILE only if this is the SHA-256 of what it says.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--json", "as_json", is_flag=True, help="Print the answer for programs.")
def accept(files: tuple[str, ...], digest: str | None, yes: bool, as_json: bool) -> int:
    """Accept what each FILE says now, so that it is obeyed. Another change has to be accepted again.

    A FILE can also be a sessions folder that is not used since tools may have made it.

    Each file is read once. At a terminal it is shown and asked about, and what was shown is accepted. Elsewhere look at
    it first; while something runs that could write it, only --digest says that what you looked at is what is accepted.

    Exit status: 0 done, 2 if one cannot be read, 3 if one is not accepted; then none is.
    """
    from toolyard.cli.trust.acceptance import refusal
    from toolyard.cli.trust.folders import OfferedFolder
    from toolyard.files.accepted import accept as keep
    from toolyard.files.accepted import candidate

    folders = [file for file in files if os.path.isdir(file)]
    if digest is not None and (len(files) != 1 or folders):
        raise click.UsageError("--digest is for one FILE")
    offered = [OfferedFolder(folder) for folder in folders]
    found = []
    for file in files:
        if file in folders:
            continue
        try:
            found.append(candidate(file))
        except OSError as error:
            raise click.UsageError(f"{file}: {error.strerror or error}") from error
    asks = not yes and not as_json
    refusals = (refusal(one, digest=digest, asks=asks) for one in found)
    of_folders = (one.refusal(asks=asks) for one in offered)
    if refused := next(filter(None, chain(refusals, of_folders)), None):
        show_note(refused[0], "error", hint=refused[1])
        return 3
    shown([*(keep(one) for one in found), *(as_accepted(one.accept()) for one in offered)], "accepted", as_json)
    return 0


@trust.command(short_help="Take back what was accepted.")
@click.argument("what", metavar="FILE|DIGEST")
@click.option("--json", "as_json", is_flag=True, help="Print the answer for programs.")
def revoke(what: str, as_json: bool) -> int:
    """Take back all that was accepted of a FILE, or one content by its DIGEST, of which 8 characters are enough.

    Exit status: 0 done, 2 if nothing of the kind was accepted.
    """
    from toolyard.files.accepted import revoke as take_back
    from toolyard.files.own.ownership import forget

    gone = [*take_back(what), *map(as_accepted, forget(os.path.realpath(what)))]
    if not gone:
        raise click.UsageError(f"nothing was accepted of {what}; see `toolyard trust list`")
    shown(gone, "revoked", as_json)
    return 0


def shown(found: list[Accepted], what: str, as_json: bool) -> None:
    if as_json:
        show_json([{"path": one.path, "digest": one.digest, "at": one.at} for one in found])
        return
    for one in found:
        show_note(f"{what} {one.path} ({one.digest[:SHORT] or 'a folder'})")


def as_accepted(folder: OwnFolder) -> Accepted:
    """A folder in the form of a file: what is accepted is that very folder, whatever comes to be in it."""
    from toolyard.files.accepted import Accepted

    return Accepted(path=folder.path, digest="", at=folder.at)


def row_of(one: Accepted) -> dict[str, str]:
    from toolyard.files.accepted import digest_now

    try:
        state = "in use" if digest_now(one.path) == one.digest else "changed since"
    except OSError:
        state = "missing"
    return {"path": one.path, "digest": one.digest, "at": one.at, "state": state}
