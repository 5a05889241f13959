"""From the `plugins` lists of a configuration to references: what each entry names, before anything is run."""

from __future__ import annotations

import os
from functools import lru_cache
from typing import TYPE_CHECKING

import msgspec

from toolyard.config.document import Place
from toolyard.config.settings import Settings
from toolyard.core.regexes import late_pattern

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from toolyard.config.configuration import Configuration, StandsFor
    from toolyard.config.layers import Layer
    from toolyard.core.json_values import Pointer
    from toolyard.core.problems import Problem
    from toolyard.core.tool import Json, JsonObject
    from toolyard.plugins.kind import Kind, Named, Reference

PLUGIN_ID = late_pattern(r"[A-Za-z_][\w-]*")


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One reference, and the kind that knows what to do with it."""

    reference: Reference
    kind: Kind


class Entries(msgspec.Struct, frozen=True, kw_only=True):
    """All that a configuration names."""

    by_agent: dict[str, list[Entry]] = msgspec.field(default_factory=dict)
    """In order: those of the top level, then of the agent's provider, then its own."""
    problems: list[Problem] = msgspec.field(default_factory=list)
    watched: list[str] = msgspec.field(default_factory=list)
    """Files besides the tools themselves whose change changes what is named."""
    guessed: list[str] = msgspec.field(default_factory=list)
    """What entries with a fault may mean: it will be obeyed once they are mended."""

    def secrets(self) -> dict[str, str]:
        """What entries hold that no output may show, by what that is called."""
        return {name: value for reference in self.references() for name, value in reference.secrets.items()}

    def references(self) -> list[Reference]:
        """Each as often as it is written: equal ones may be told by different paths."""
        found = (entry.reference for entries in self.by_agent.values() for entry in entries)
        return list({id(reference): reference for reference in found}.values())


@lru_cache(maxsize=8)
def settings_of(kinds: Sequence[Kind]) -> Settings:
    """The types that a configuration is read by, with what kinds add to `plugin_policy`."""
    return Settings([kind.settings for kind in kinds if kind.settings])


def stands_for(kinds: Sequence[Kind]) -> StandsFor:
    """Which configuration a file stands for that is none, but something one of the kinds loads."""

    def meant(value: JsonObject, path: Path) -> JsonObject | None:
        found = (kind.whole_file(value, path) for kind in kinds)
        return next((one for one in found if one is not None), None)

    return meant


def read_entries(configuration: Configuration, kinds: Sequence[Kind]) -> Entries:
    """Read every list once, whoever shares it."""
    found = Entries()
    lists: dict[Pointer, list[Entry]] = {}
    for agent in configuration.agents():
        found.by_agent[agent] = []
        for layer in configuration.layers(agent):
            pointer = (*layer.pointer, "plugins")
            if pointer not in lists:
                place = Place(configuration.document, pointer)
                lists[pointer] = list(read_list(layer.value.get("plugins"), place, kinds, found))
            found.by_agent[agent] += lists[pointer]
    return found


def read_only(word: str, configuration: Configuration, kinds: Sequence[Kind]) -> Entries:
    """One entry for every agent: as its configuration has it, with its options, or else the plain word.

    None where the configuration cannot be read: it may have forbidden anything.
    """
    found = Entries()
    read: dict[Pointer, list[Entry]] = {}
    if not configuration.readable:
        found.by_agent.update({agent: [] for agent in configuration.agents()})
        return found
    for agent in configuration.agents():
        pointer, entry = next(spelled(word, configuration.layers(agent)), (("plugins", 0), word))
        if pointer not in read:
            read[pointer] = add_entry(entry, Place(configuration.document, pointer), kinds, found)
        found.by_agent[agent] = list(read[pointer])
    return found


def spelled(word: str, layers: Sequence[Layer]) -> Iterator[tuple[Pointer, Json]]:
    """The entries that are a word, or the same with options, with their places."""
    key = word.replace(":", "_")  # "a:b" becomes {"a_b": {…}}
    for layer in layers:
        listed = layer.value.get("plugins")
        for index, entry in enumerate(listed if isinstance(listed, list) else ()):
            if entry == word or (isinstance(entry, dict) and key in entry):
                yield (*layer.pointer, "plugins", index), entry


def read_list(entries: Json, at: Place, kinds: Sequence[Kind], found: Entries) -> Iterator[Entry]:
    """The entries of one list; what is wrong with them, and what to watch, is added to what was found."""
    ids = plugin_ids(entries) if at.pointer[0] == "agents" else []
    if ids:
        found.problems.append(ids_problem(ids, at))
    for index, entry in enumerate(entries if isinstance(entries, list) else ()):
        if not isinstance(entry, str | dict) or any(place == index for place, _ in ids):
            continue  # said already
        yield from add_entry(entry, at.below(index), kinds, found)


def add_entry(entry: Json, at: Place, kinds: Sequence[Kind], found: Entries) -> list[Entry]:
    kind, named = read_entry(entry, at, kinds)
    found.problems.extend(named.problems)
    found.watched.extend(named.watched)
    if not named.references:
        found.guessed.extend(paths_told(entry, at.document.folder))
    return [Entry(reference=reference, kind=kind) for reference in named.references] if kind else []


def paths_told(entry: Json, folder: str) -> Iterator[str]:
    """What is on this machine of all that an entry says, whatever is wrong with how it says it."""
    match entry:
        case str():
            for word in (entry, entry.partition(":")[2]):
                path = os.path.join(folder, os.path.expanduser(word.strip()))
                if word.strip() and "\0" not in path and os.path.exists(path):
                    yield path
        case dict() | list():
            for part in entry.values() if isinstance(entry, dict) else entry:
                yield from paths_told(part, folder)


def read_entry(entry: Json, at: Place, kinds: Sequence[Kind]) -> tuple[Kind | None, Named]:
    """What one entry names: each kind is asked in turn, and the first that knows its spelling has it."""
    if isinstance(entry, dict) and len(entry) > 1:
        from toolyard.plugins.spellings import crowded

        if wrong := crowded(entry, at, kinds):
            return None, wrong
    for kind in kinds:
        if (named := kind.read(entry, at)) is not None:
            return kind, named
    from toolyard.plugins.spellings import unknown_spelling

    return None, unknown_spelling(entry, at, kinds)


def plugin_ids(entries: Json) -> list[tuple[int, str]]:
    """The entries that can only be ids of plugins: what names a package has a dot, a colon or a slash."""
    listed = entries if isinstance(entries, list) else ()
    return [(place, id) for place, id in enumerate(listed) if isinstance(id, str) and PLUGIN_ID.fullmatch(id)]


def ids_problem(ids: list[tuple[int, str]], at: Place) -> Problem:
    """Configurations of old listed the ids of an agent's plugins where packages are listed now."""
    named = ", ".join(f"'{id}'" for _, id in ids)
    message = f"{named}: an agent's 'plugins' says where plugins come from and no longer which ids are on"
    hint = (
        "turn plugins off with 'disabled_plugins' and on with 'enabled_plugins'; choose the ids for one session "
        "with 'plugins' in its metadata"
    )
    return at.problem("plugins_are_ids", message, hint, ids[0][0])
