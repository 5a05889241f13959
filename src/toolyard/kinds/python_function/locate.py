"""From a reference to Python plugins to the folders they are imported from: found, fetched or installed."""

from __future__ import annotations

import os
import sys
from importlib.machinery import PathFinder
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from toolyard.core.problems import Position, Problem, did_you_mean
from toolyard.files.door import Door
from toolyard.files.inside import is_inside
from toolyard.files.walk import inner_folder
from toolyard.kinds.python_function.descriptor import PythonDescriptor, read_python_descriptor
from toolyard.kinds.python_function.install import import_roots, install
from toolyard.kinds.python_function.reference import PythonName, PythonProject, find_module, places_of
from toolyard.plugins.acquire.git_reference import GitReference
from toolyard.plugins.kind import DESCRIPTOR

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolyard.config.document import Place
    from toolyard.plugins.host import Host


class Located(msgspec.Struct, frozen=True, kw_only=True):
    """Plugins that can be imported."""

    entries: Sequence[tuple[str, Place]]
    roots: tuple[str, ...] = ()
    """The folders to import from; none for what Python finds by itself."""
    kinds: Sequence[str] = ()
    originals: tuple[str, ...] = ()
    """The author's own folders, of which the roots may be copies."""
    followed: tuple[str, ...] = ()
    """Folders and files whose change changes the plugins."""
    file: Path | None = None
    """What to name as the origin: the descriptor, or the file itself."""
    in_place: bool = False
    """Whether the roots themselves may change; otherwise a change gives other roots."""
    door: Door = Door()
    """By which modules of the roots are read."""
    notes: Sequence[Problem] = ()


class Project(msgspec.Struct, frozen=True, kw_only=True):
    """A folder with plugins, as its descriptor describes it."""

    folder: str
    entries: Sequence[tuple[str, Place]]
    kinds: Sequence[str]
    beside: tuple[str, ...]
    descriptor: str


async def locate(reference: PythonName | PythonProject, host: Host) -> Located | list[Problem]:
    """Find what a reference means; whatever is in the way is a problem."""
    match reference:
        case PythonName(name=name):
            return locate_dotted(name, reference.at)
        case PythonProject(origin=GitReference() as git):
            return await locate_git(reference, git, host)
        case PythonProject(origin=str(path)) if path.endswith(".py"):
            return locate_file(path, reference.entry, reference.at)
        case PythonProject(origin=path):
            return await locate_folder(reference, str(path), host)


def locate_dotted(name: str, where: Place) -> Located | list[Problem]:
    """What Python finds by itself, or else beside the configuration."""
    top, config_folder, door = name.partition(".")[0], where.document.folder, where.document.door
    if (found := find_module(top)) is not None:
        place = next(reversed(places_of(found)), "")  # the folder of a package, else the file
        own_name = os.path.basename(place).partition(".")[0] == top
        if top in sys.modules or not own_name or not is_exposed(place, door):
            return Located(entries=[(name, where)])
        return shadowing(top, place, where) or exposed(name, place, where)
    here = os.path.join(config_folder, top)
    if os.path.isdir(here) or os.path.isfile(f"{here}.py"):
        followed = here if os.path.isdir(here) else f"{here}.py"
        return Located(
            entries=[(name, where)],
            roots=(config_folder,),
            originals=(config_folder,),
            followed=(followed,),
            in_place=True,
            door=door,
        )
    message = f"there is no module '{top}' for '{name}'"
    hint = 'install its package beside toolyard, put it beside the configuration, or load its folder with "path:…"'
    return [where.problem("plugin_entry", message, hint)]


def is_exposed(path: str, door: Door) -> bool:
    """Whether tools can write a module, which they cannot in the environment that we ourselves run in."""
    ours = (os.path.realpath(sys.prefix), os.path.realpath(sys.base_prefix))
    return door.is_writable(path) and not any(is_inside(os.path.realpath(path), prefix) for prefix in ours)


def shadowing(top: str, place: str, where: Place) -> list[Problem]:
    """A module where tools can write must not take the place of one where they cannot."""
    trusted = [one for one in sys.path if one and not is_exposed(one, where.document.door)]
    meant = PathFinder.find_spec(top, trusted)
    if meant is None:
        return []
    message = f"{place} stands in front of {next(iter(places_of(meant)), top)}, and tools can write it"
    hint = f"rename or remove it; it lies in {os.path.dirname(place)}, which Python searches first"
    return [where.problem("plugin_shadowed", message, hint)]


def exposed(name: str, place: str, where: Place) -> Located:
    """A module that Python finds where tools can write: its bytes come through the door, into a space of its own."""
    folder, door = os.path.dirname(place), where.document.door
    return Located(
        entries=[(name, where)], roots=(folder,), originals=(folder,), followed=(place,), in_place=True, door=door
    )


def locate_file(path: str, entry: str | None, where: Place) -> Located | list[Problem]:
    """A single file is used where it is, with the modules beside it."""
    if not os.path.isfile(path):
        return [missing(f"there is no file {path}", where, path)]
    folder, name = os.path.split(path)
    module = name.removesuffix(".py")
    if not module.isidentifier():
        message, hint = f"'{name}' cannot be imported", "name the file as Python names modules: letters, digits and _"
        return [Problem(code="plugin_entry", message=message, hint=hint, where=Position(file=Path(path)))]
    return Located(
        entries=[(entry or module, where)],
        roots=(folder,),
        originals=(folder,),
        followed=(path,),
        file=Path(path),
        in_place=True,
        door=where.document.door,
    )


async def locate_git(reference: PythonProject, git: GitReference, host: Host) -> Located | list[Problem]:
    where = reference.at.position()
    fetched = await host.fetcher.fetch(git)
    if isinstance(fetched, Problem):
        return [fetched.at(where)]
    project = read_project(str(fetched.folder), reference, inside=True)
    if isinstance(project, list):
        return project
    notes = [note.at(where) for note in fetched.notes]
    return await installed(project, reference, host, notes, name=os.path.basename(git.shown).removesuffix(".git"))


async def locate_folder(reference: PythonProject, path: str, host: Host) -> Located | list[Problem]:
    project = read_project(path, reference, inside=False)
    if isinstance(project, list):
        return project
    if any(is_inside(project.folder, str(folder)) for folder in host.in_place):
        roots = tuple(str(root) for root in import_roots(Path(project.folder), ["."]))
        return Located(
            entries=project.entries,
            roots=roots,
            kinds=project.kinds,
            originals=(project.folder,),
            followed=(project.folder,),
            file=Path(project.descriptor),
            in_place=True,
            door=reference.at.document.door,
        )
    return await installed(project, reference, host, [], name=os.path.basename(path))


async def installed(
    project: Project, reference: PythonProject, host: Host, notes: Sequence[Problem], *, name: str
) -> Located | list[Problem]:
    where = reference.at.position()
    beside = [Path(folder) for folder in project.beside]
    ready = await install(Path(project.folder), name=name, beside=beside, host=host)
    if isinstance(ready, Problem):
        return [ready.at(where)]
    return Located(
        entries=project.entries,
        roots=tuple(str(root) for root in ready.roots),
        kinds=project.kinds,
        originals=(project.folder, os.path.join(project.folder, "src"), *project.beside),
        followed=tuple(dict.fromkeys((project.folder, project.descriptor, *project.beside))),
        file=Path(project.descriptor),
        notes=[*notes, *(note.at(where) for note in ready.notes)],
    )


def read_project(top: str, reference: PythonProject, *, inside: bool) -> Project | list[Problem]:
    """The project of a tree and its entries; with `inside` nothing that it names may be elsewhere."""
    where = reference.at
    if not os.path.isdir(top):
        return [missing(f"there is no folder {top}", where, top)]
    chosen = inner_folder(top, reference.subdirectory)
    if isinstance(chosen, Problem):
        return [chosen.at(where.position())]
    inner, outer = os.path.normpath(os.path.join(top, reference.subdirectory or "")), os.path.normpath(top)
    if refused := where.document.door.folder_problem(inner):
        return [refused]
    place = inner if os.path.lexists(os.path.join(inner, DESCRIPTOR)) else outer
    descriptor = read_python_descriptor(place, reference.descriptors)
    if isinstance(descriptor, list) and reference.entry is None:
        return descriptor
    if isinstance(descriptor, list):
        descriptor = PythonDescriptor(entries=())
    folder = chosen if reference.subdirectory else inner_folder(place, descriptor.subdirectory)
    if isinstance(folder, Problem):
        return [folder.at(Position(file=Path(place, DESCRIPTOR)))]
    beside = [os.path.realpath(os.path.join(place, path)) for path in descriptor.beside]
    if wrong := wrong_beside(beside, os.path.realpath(top) if inside else None, place):
        return wrong
    return Project(
        folder=folder,
        entries=[(reference.entry, where)] if reference.entry else descriptor.entries,
        kinds=descriptor.kinds,
        beside=tuple(beside),
        descriptor=os.path.join(place, DESCRIPTOR) if descriptor.entries else folder,
    )


def wrong_beside(beside: Sequence[str], top: str | None, place: str) -> list[Problem]:
    """A fetched repository can only name projects of its own; a folder of the user's any that exist."""
    problems: list[Problem] = []
    for folder in beside:
        is_outside = top is not None and not is_inside(folder, top)
        if is_outside or not os.path.isdir(folder):
            code, what = ("plugin_outside", "outside the repository") if is_outside else ("plugin_missing", "no folder")
            message = f"'local_workspace_dependencies' names '{folder}', which is {what}"
            hint, where = "name a project by its path from the descriptor", Position(file=Path(place, DESCRIPTOR))
            problems.append(Problem(code=code, message=message, hint=hint, where=where))
    return problems


def missing(message: str, where: Place, path: str) -> Problem:
    folder, name = os.path.split(path)
    beside = os.listdir(folder) if os.path.isdir(folder) else ()
    hint = did_you_mean(name, beside, "relative paths start at the folder of the configuration file")
    return where.problem("plugin_missing", message, hint)
