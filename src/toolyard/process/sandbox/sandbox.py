"""The sandbox that an application's children run in: chosen by what the self-test saw it keep in, never by its name.

The keeper is started inside and starts everything else there, so that the sandbox is paid for once and a child in it
costs what it costs outside.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from toolyard.core.sandbox_properties import PROPERTIES
from toolyard.errors import NoSandbox
from toolyard.files.inside import is_inside
from toolyard.files.plain_text import printable
from toolyard.files.user_folders import user_folder
from toolyard.files.write_times import TICK, OpenSpan
from toolyard.process.cgroups import ControlGroup
from toolyard.process.common_folder import TEMPORARY, CommonFolder
from toolyard.process.environment import ExactEnvironment
from toolyard.process.keeper.guard_lists import list_of
from toolyard.process.private_folders import SharedFolder
from toolyard.process.sandbox.backends.bubblewrap import maps_owners, private_git_folders
from toolyard.process.sandbox.backends.limits import SandboxLimits
from toolyard.process.sandbox.cleanup import CleanupRecord, clean_up_abandoned, others_in, run_each
from toolyard.process.sandbox.closed_layout import close
from toolyard.process.sandbox.folder_events import FolderEvents, are_quiet
from toolyard.process.sandbox.git.inside_repository import described
from toolyard.process.sandbox.git.nested import NestedRepositories
from toolyard.process.sandbox.git.obeyed_files import obeyed_files
from toolyard.process.sandbox.git.repository_walk import RepositoryWalk
from toolyard.process.sandbox.layout import lay_out, named_folders
from toolyard.process.sandbox.mount_points import MountPoints, move_unwanted
from toolyard.process.sandbox.network.connections import Connections
from toolyard.process.sandbox.packages.caches import make_cache_folder
from toolyard.process.sandbox.policy import SandboxReport
from toolyard.process.sandbox.replaced_files import ReplacedFiles, notes_on
from toolyard.process.sandbox.secrets import files_of_root
from toolyard.process.sandbox.self_test.choice import BackendChooser
from toolyard.process.sandbox.watch import FileWatch, folders_of, identity_of, stamp
from toolyard.process.waiting import in_slices, run_shielded

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Mapping

    from toolyard.core.reach import Kept, Reach
    from toolyard.files.write_times import Identity
    from toolyard.process.sandbox.backends.confinement import Confinement
    from toolyard.process.sandbox.folder_events import FolderGroup
    from toolyard.process.sandbox.git.inside_repository import PrivateGitFolder
    from toolyard.process.sandbox.git.settings import GitSetting
    from toolyard.process.sandbox.git.workspace_repositories import WorkspaceRepositories
    from toolyard.process.sandbox.layout import Layout, SandboxPaths
    from toolyard.process.sandbox.policy import Backend, BackendChoice, SandboxPolicy


class Sandbox:
    """One sandbox: what it shall be, what it is, and what it needs outside while it lasts."""

    def __init__(self, policy: SandboxPolicy, paths: SandboxPaths, common: CommonFolder | None = None) -> None:
        """`common` is what it shares with others, and whoever made that removes it."""
        self.policy = policy
        self.paths = paths
        self.common = common or CommonFolder()
        self._owns_common = common is None
        self._layout: Layout | None = None
        self._walk = RepositoryWalk()
        self._chooser = BackendChooser(policy)
        self._tried_again: set[Backend] = set()
        self._folder: SharedFolder | None = None
        self._mount_points: MountPoints | None = None
        self._found_fresh: tuple[FolderGroup, ...] = ()
        """Where it was looked when it was last found not to be stale."""
        self._watch_nothing()
        self._settings: dict[str, object] = {}
        """The files with git's settings, as they were when the layout was made."""
        self._repositories: WorkspaceRepositories | None = None
        self._git_folders: list[PrivateGitFolder] = []
        """Those of repositories that are yet to be filled."""
        self._replaced: ReplacedFiles | None = None
        """What the guard says about files that it had to guard again."""
        self._limits: SandboxLimits | None = None
        self._nested: NestedRepositories | None = None
        self._is_passing_over = False
        """Whether it was said that not all folders are looked through."""
        self._since = 0.0
        self._span: OpenSpan | None = None
        self._guarded: dict[str, Identity] = {}
        """Which files and folders are guarded by mounts."""
        self._obeyed: dict[str, Identity] = {}
        """The files among what is guarded that the application obeys, and which they were."""
        self._idle: tuple[float, dict[str, Identity | None]] | None = None
        self._cleaned: list[tuple[float, float]] = []
        """When we cleaned up after what ran, since nothing does."""
        self._untold: dict[str, str] = {}
        """What a sweep moved that was cancelled."""
        self._is_in_use = False
        self._temporary: tuple[BackendChoice, Layout, tuple[tuple[str, ...], tuple[str, ...]]] | None = None
        """Its folders for temporary files, and what they were found for."""
        self._keeps: tuple[BackendChoice, Layout, Kept] | None = None
        """How much it keeps, likewise."""
        self._of_packages: tuple[dict[bytes, bytes], dict[bytes, bytes]] | None = None
        """Variables as they were given, and those of package managers for them."""
        self.connections = Connections(policy.hosts)
        """Those that children inside may have, and wanted."""
        self.was_entered = False
        """Whether a keeper was in it, so that it can be built here."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sandbox) and (self.policy, self.paths) == (other.policy, other.paths)

    __hash__ = None  # type: ignore[assignment]  # it changes while it lives

    @property
    def layout(self) -> Layout:
        if self._layout is None:
            if self.paths.caches:
                make_cache_folder(self.paths.caches)
            self._walk = RepositoryWalk(self.common.made_repositories, self._all_caches())
            self._layout = self._new_layout()
        return self._layout

    def _new_layout(self) -> Layout:
        if not self.policy.looking:
            return lay_out(self.paths, self._walk)
        layout = lay_out(self.paths)
        return close(layout, self.paths).looking() if self.policy.closed else layout.looking()

    @property
    def reach(self) -> Reach:
        """How far whatever is inside reaches."""
        return "closed" if self.policy.closed else "look" if self.policy.looking else "work"

    @property
    def name(self) -> str:
        """What it is, for the audit log."""
        return self.choose().name

    @property
    def is_missing(self) -> bool:
        """Whether nothing on this machine keeps children in."""
        return self.choose().backend is None

    @property
    def keeps(self) -> Kept:
        """How much of what a sandbox can keep it does, but for what the configuration gives up."""
        choice, layout = self.choose(), self.layout
        if self._keeps is None or self._keeps[0] is not choice or self._keeps[1] is not layout:
            self._keeps = (choice, layout, self._find_kept(choice, layout))
        return self._keeps[2]

    def _find_kept(self, choice: BackendChoice, layout: Layout) -> Kept:
        if choice.backend is None:
            return "not"
        return "wholly" if self._chooser.is_complete(choice.held) and not layout.unguarded else "partly"

    def temporary(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The folders for temporary files that are its own, and what of others can be seen in them."""
        choice, layout = self.choose(), self.layout
        if self._temporary is None or self._temporary[0] is not choice or self._temporary[1] is not layout:
            self._temporary = (choice, layout, self._find_temporary(choice, layout))
        return self._temporary[2]

    def temporary_places(self) -> tuple[str, ...]:
        """Where these folders are outside."""
        own = self.temporary()[0]
        return tuple(self.common.temporary.get(path, path) for path in own) if own else ()

    def _find_temporary(self, choice: BackendChoice, layout: Layout) -> tuple[tuple[str, ...], tuple[str, ...]]:
        if "temporary" not in choice.held or choice.backend is None:
            return (), ()
        if choice.backend == "landlock":
            return tuple(self.common.temporary.values()), ()
        own = [path for path in TEMPORARY if layout.access(path) == "private"]
        seen = [path for path, access in layout.rules.items() if access != "private" and path.startswith(TEMPORARY)]
        return tuple(own), tuple(seen)

    @property
    def is_chosen(self) -> bool:
        return self._chooser.chosen is not None

    def is_known(self) -> bool:
        """Whether it is chosen, or can be without running the self-test."""
        return self._chooser.is_known()

    def is_stale(self) -> bool:
        """Whether it was built around files that others have replaced since, which then are not protected any more."""
        if not self._is_in_use:
            return False
        self._events.hear()
        is_outgrown = self._repositories is not None and self._repositories.is_outgrown
        if self._found_fresh and are_quiet(self._found_fresh):
            return is_outgrown
        self._catch_up()
        is_stale: bool = self._watch.changed() or is_outgrown or self._names_more()
        self._found_fresh = () if is_stale else self._looked_at()
        return is_stale

    def _looked_at(self) -> tuple[FolderGroup, ...]:
        """Where it is seen whether it is stale; while all of that is quiet, it is as it was."""
        has_settings = any(found.settings for found in self.layout.obeyed.values())
        replaced = (self._beside_replaced,) if self._replaced else ()
        return (*self._watch.groups, *replaced, *((self._beside_settings,) if has_settings else ()))

    def _names_more(self) -> bool:
        """Whether git's settings name something by now that is not guarded."""
        obeyed, before = self.layout.obeyed, self._settings
        files = [path for found in obeyed.values() for path in found.settings]
        if not files or not self._beside_settings.is_look_due(lambda: folders_of(files)):
            return False
        self._settings = {path: stamp(path) for path in files}
        if self._settings == before:
            return False
        read: dict[str, list[GitSetting]] = {}
        if all(obeyed_files(git, read).all <= found.all for git, found in obeyed.items()):
            return False
        self._settings = {}
        self._beside_settings.forget()  # whoever asks again hears the same
        return True

    def choose(self) -> BackendChoice:
        """The first backend that keeps most, or everything; the first time on a machine this takes a moment."""
        return self._chooser.chosen or self._chooser.choice()

    def refusal(self) -> str | None:
        """Why nothing may be run: something is required that no backend keeps, or it is not known what is required."""
        if self.policy.damaged:
            return self.policy.damaged
        if self.layout.open_roots and not self.is_missing:
            return f"tools could write what is run outside of their sandbox: {', '.join(self.layout.open_roots)}"
        return self._unmet() if self.policy.mode == "require" else None

    def _unmet(self) -> str | None:
        if reason := self._chooser.unmet():
            return reason
        is_wanted = "protected" in self.policy.properties and "protected" not in self.policy.given_up
        unguarded = ", ".join(self.layout.unguarded)
        return f"this cannot be protected by the sandbox: {unguarded}" if unguarded and is_wanted else None

    def rule_out(self, backend: Backend, reason: str) -> None:
        """A backend that passed the self-test could not be started here: go on with the next.

        The first time it is only laid out anew: what it was to hide or to guard may just have been removed.
        """
        if backend in self._tried_again:
            self._chooser.rule_out(backend, reason)
            return
        self._tried_again.add(backend)
        self.lay_out_again()

    def has_all_guards(self) -> bool:
        """Whether what the mounts are to guard is what was there when they were made: else it is guarded by none."""
        return all(identity_of(path) == which for path, which in self._guarded.items())

    def lay_out_again(self) -> None:
        """Build it anew around what is there now. Nothing is inside."""
        self._layout = None
        if self._mount_points:
            self._mount_points.remove()
            self._mount_points = None

    def report(self) -> SandboxReport:
        choice = self.choose()
        return SandboxReport(
            mode=self.policy.mode,
            backend=choice.backend,
            properties={name: name in choice.held for name in PROPERTIES},
            opened=self.policy.given_up,
            passed_over=choice.passed_over,
            writable=tuple(self.layout.writable()),
            unguarded=tuple(self.layout.unguarded),
            closed=tuple(self._closed(choice)),
            refusal=self.refusal(),
        )

    def _closed(self, choice: BackendChoice) -> list[str]:
        if choice.backend is None or os.geteuid() != 0 or (choice.backend != "landlock" and maps_owners(self.layout)):
            return []
        return files_of_root().whole

    def confinement(self) -> Confinement | None:
        """The way in; None when there is none and none is needed. NoSandbox when one is required and cannot be had.

        The order matters: mount points before the layout is turned into mounts, and the cleanup file before anything
        is inside.
        """
        choice = self.choose()
        if reason := self.refusal():
            raise NoSandbox(reason)
        if choice.backend is None and self._chooser.failed:
            # The self-test says that there is one: to go on without would leave that to whoever made it fail.
            raise NoSandbox(f"the sandbox cannot be built: {'; '.join(self._chooser.failed.values())}")
        if choice.backend is None:
            return None
        if choice.backend != "landlock":
            self._make_mount_points()
            if reason := self.refusal():  # by what could not be made
                raise NoSandbox(reason)
            self._exchange(at_end=True)  # a keeper that was lost may have left something
        support = self._chooser.support
        confinement = support.confinement(choice.backend, self.layout, self.policy, self.folder(), self.common)
        has_mounts = choice.backend != "landlock"
        self._git_folders = private_git_folders(self.layout, self.folder(), self.common) if has_mounts else []
        self._limits = self._limits or SandboxLimits(self.policy.processes)
        confinement.options["processes"] = self._limits.inherited(choice.backend)
        with contextlib.suppress(OSError):  # nothing is inside yet, and `begin` lets nothing in without it
            self._write_cleanup_file()
        self._prepare_sweep()
        if choice.backend == "landlock":
            return confinement
        return replace(confinement, guards=self._list_guards())

    def fill_repositories(self) -> None:
        """Give git inside what is outside, while the keeper starts, before anything else does."""
        folders, self._git_folders = self._git_folders, []
        if folders:
            from toolyard.process.sandbox.git.workspace_repositories import WorkspaceRepositories

            self._repositories = WorkspaceRepositories(folders, self._worked_in(), self._events)
            self._repositories.fill()

    @property
    def group(self) -> ControlGroup:
        """The control group of all that is inside, once there is a way in."""
        return self._limits.group if self._limits else ControlGroup()

    @property
    def cleanup_file(self) -> str:
        """Names what to remove if we are killed."""
        return CleanupRecord(self.folder().path).file

    def environment_inside(
        self, confinement: Confinement, env: Mapping[bytes, bytes], *, proxy_port: int | None = None
    ) -> dict[bytes, bytes]:
        """The variables as they are true inside: those that name folders which are not there are changed or dropped."""
        changed = dict(env)
        tmp = env.get(b"TMPDIR")
        is_lost = tmp is not None and self.layout.access(os.path.realpath(os.fsdecode(tmp))) != "write"
        if is_lost or confinement.backend == "landlock":
            changed[b"TMPDIR"] = os.fsencode(confinement.tmp)
        run = env.get(b"XDG_RUNTIME_DIR")
        if run is not None and self.layout.access(os.fsdecode(run)) in ("private", "hidden"):
            del changed[b"XDG_RUNTIME_DIR"]
        if os.path.isdir(self.paths.caches) and not isinstance(env, ExactEnvironment):
            changed |= self._package_variables(changed)
        if proxy_port is None or (isinstance(env, ExactEnvironment) and not self.policy.hosts):
            return changed
        from toolyard.process.sandbox.network.proxy import proxy_variables

        return changed | proxy_variables(proxy_port, self.policy.hosts)

    def _package_variables(self, env: Mapping[bytes, bytes]) -> dict[bytes, bytes]:
        """Where package managers keep what they fetch, and get it from, as long as it is the same workspace."""
        if self._of_packages is None or self._of_packages[0] != env:
            from toolyard.process.sandbox.packages.caches import cache_variables
            from toolyard.process.sandbox.packages.mirrors import mirror_variables

            mirrors = {os.fsencode(name): os.fsencode(value) for name, value in mirror_variables().items()}
            caches = cache_variables(self.paths.caches, env, self._can_write)
            self._of_packages = (dict(env), mirrors | caches)
        return self._of_packages[1]

    def _can_write(self, path: str) -> bool:
        return self.layout.access(os.path.realpath(path)) == "write"

    def folder(self) -> SharedFolder:
        if self._folder is None:
            clean_up_abandoned()
            self._folder = SharedFolder(self.common.base())
        return self._folder

    def begin(self) -> None:
        """Something starts inside: from now on it may change what it can write.

        NoSandbox where that cannot be written down: what it changes would be taken for its owner's later, and obeyed.
        """
        if self._span is None and (folders := self._worked_in()):
            if os.path.isdir(self.paths.caches) and self._can_write(self.paths.caches):
                folders.append(os.path.realpath(self.paths.caches))
            gits = [one.git for one in self.layout.repositories]  # to which commits are handed over, wherever they are
            folders += [git for git in gits if not any(is_inside(git, folder) for folder in folders)]
            try:
                self._span = OpenSpan(folders, self._guarded)
                self._write_cleanup_file()
            except OSError as error:
                self.end_span()
                raise NoSandbox(unrecorded(error)) from error

    def rest(self) -> None:
        """Nothing runs inside just now: remember which files its owner may replace from here on."""
        self._idle = (time.time(), {path: identity_of(path) for path in self._obeyed})
        self._cleaned = []

    def end_span(self) -> None:
        """Nothing runs inside: what was replaced since it came to rest is its owner's, and was guarded before."""
        span, self._span = self._span, None
        if span is None:
            return
        until, then = self._idle or (time.time(), {})
        now = {path: identity_of(path) for path in self._obeyed}
        replaced = {path: which for path, which in now.items() if which and path in then and which != then[path]}
        cleaned, self._cleaned = self._cleaned, []
        span.close(until, self._guarded | replaced, cleaned)

    @contextlib.contextmanager
    def _cleaning(self) -> Iterator[None]:
        """Note when we move and remove what was made inside: that changes files, also by other names that they have."""
        began = time.time()
        try:
            yield
        finally:
            while self._cleaned and began - self._cleaned[-1][1] < TICK:
                began = min(began, self._cleaned.pop()[0])
            self._cleaned.append((began, time.time()))

    def sweep(self, *, at_end: bool = False) -> dict[str, str]:
        """Move away what was made inside and would be obeyed outside; tells where each went."""
        moved: dict[str, str] = {}
        if not self._is_in_use:
            return moved
        with self._cleaning():
            for some in self._sweep_steps(at_end=at_end):
                moved |= some
            if at_end:  # only now, when what was planted is gone, and nobody is left to plant it again
                self._exchange(at_end=True, with_modules=self._is_alone())
        return moved

    def is_settled(self) -> bool:
        """Whether a call has left nothing to be exchanged or swept, as nearly every one does."""
        if not self._is_in_use:
            return not self.common.notes
        if self.common.notes or self._exchanging.locked():
            return False
        self._events.hear()
        return not (self._repositories and self._repositories.is_due()) and self._is_swept()

    async def sweep_after_call(self) -> dict[str, str]:
        """The same, however much there is, without holding up the event loop.

        A call that ends meanwhile waits and looks for itself: what it made may be where this one has looked already.
        """
        if not self._is_in_use:
            return {}
        self._events.hear()
        if self._is_swept():
            return {}
        moved: dict[str, str] = {}
        async with self._sweeping:
            try:
                with self._cleaning():
                    await in_slices(self._sweep_steps(), moved)
            except asyncio.CancelledError:
                self._untold |= moved  # the next one tells of it, and goes on
                raise
        return moved

    @cached_property
    def _sweeping(self) -> asyncio.Lock:
        return asyncio.Lock()

    def _is_swept(self) -> bool:
        """Whether nothing can have come to be since the last sweep, as far as the events were heard."""
        if self._untold or self._sweeping.locked():
            return False
        groups = (self._beside_unwanted, self._beside_replaced) if self._replaced else (self._beside_unwanted,)
        return are_quiet(groups) and (self._nested is None or self._nested.is_swept())

    def _sweep_steps(self, *, at_end: bool = False) -> Generator[dict[str, str], None, None]:
        self._events.hear()
        self._catch_up()
        moved, self._untold = self._untold, {}
        unwanted = self.layout.unwanted
        if at_end or self._beside_unwanted.is_look_due(lambda: folders_of(unwanted)):
            moved |= move_unwanted(unwanted)
        yield moved
        if self._nested:
            try:
                yield from self._nested.sweep_steps(at_end=at_end)
            finally:
                self.common.made_repositories |= self._walk.made
                self._say_what_is_passed_over(self._nested.passed_over)

    def _say_what_is_passed_over(self, folder: str) -> None:
        if folder and not self._is_passing_over:
            self._is_passing_over = True
            self.common.notes.append(
                f"[sandbox: there are too many folders to look for repositories in {printable(folder)} and others: git "
                "outside would obey what was made there]"
            )

    def _is_alone(self) -> bool:
        """Whether no other application works in the same folders."""
        return not others_in(self._worked_in(), self.cleanup_file)

    def take_notes(self) -> list[str]:
        """What there is to say of git's settings that count inside only; each once."""
        notes, self.common.notes = self.common.notes, []
        return notes

    async def exchange_repositories(self) -> None:
        """Before a call and after it: bring git inside what is new outside, and the other way round."""
        must_wait = self._exchanging.locked()
        if not must_wait and not self._is_exchange_due():
            return
        async with self._exchanging:  # first come, first served: calls of one session keep their order
            if not must_wait or self._is_exchange_due():  # who waited looks now: perhaps all is done
                await asyncio.to_thread(self._exchange)  # a large pack takes its time

    def _is_exchange_due(self) -> bool:
        self._events.hear()
        return self._repositories is not None and self._repositories.is_due()

    @cached_property
    def _exchanging(self) -> asyncio.Lock:
        return asyncio.Lock()

    def _exchange(self, *, at_end: bool = False, with_modules: bool = False) -> None:
        """Whatever git inside left: the result of a call stays as it is, and so does all else that ends."""
        with self._cleaning():
            is_done = run_each(lambda: self._exchange_now(at_end=at_end, with_modules=with_modules))
        if not is_done:
            self.common.notes.append("[git: not all was handed over from inside: something there cannot be read]")

    def _exchange_now(self, *, at_end: bool, with_modules: bool) -> None:
        if self._repositories:
            from toolyard.process.sandbox.git.workspace_repositories import finish_removals

            self.common.notes += self._repositories.exchange(at_end=at_end, with_modules=with_modules)
            gone = finish_removals(self.layout.nested)
            self.common.notes += [f"[git: the worktree {printable(one)} is removed]" for one in gone]

    async def aclose(self) -> None:
        """Everything inside has ended: remove what it needed outside."""
        await self.connections.aclose()
        with self._cleaning():
            steps: list[Callable[[], object]] = [self.group.end, partial(self.sweep, at_end=True)]
            steps += [self._mount_points.remove] if self._mount_points else []
            is_done = await run_shielded(self._end(*steps))
            self._is_in_use = False
            if self._folder:
                if is_done:  # else whoever comes next goes on with it
                    CleanupRecord(self._folder.path).remove()
                self._folder.remove()
            if self._owns_common:
                self.common.remove()
        run_each(self.end_span)  # after all that we change ourselves
        self._stop_watching()
        self._repositories = self._replaced = None
        self._folder = self._mount_points = self._limits = None

    async def _end(self, *steps: Callable[[], object]) -> bool:
        """Take the last steps, after a sweep that is under way; whether all were done."""
        if not self._is_in_use or not self._worked_in():
            return run_each(*steps)
        async with self._sweeping:  # what comes from inside may take long to be looked over
            return await asyncio.to_thread(run_each, *steps)

    def _watch_nothing(self) -> None:
        self._events = FolderEvents()
        self._found_fresh = ()
        self._watch = FileWatch(self._events)
        self._beside_unwanted, self._beside_replaced = self._events.new_group(), self._events.new_group(writes=True)
        self._beside_settings = self._events.new_group(writes=True)

    def _stop_watching(self) -> None:
        self._watch.close()
        self._events.close()

    def _make_mount_points(self) -> None:
        """Make what mounts will protect, and remember which files are protected and hidden now."""
        points = self._mount_points = self._mount_points or self._new_mount_points()
        lacking = {path for path, _ in self.layout.mount_points}.difference(path for path, _ in points.made)
        unguarded = dict.fromkeys([*self.layout.unguarded, *points.unguarded])
        self._layout = replace(self.layout.without(lacking), unguarded=tuple(unguarded))
        self._stop_watching()
        self._watch_nothing()
        self._settings = {path: stamp(path) for found in self._layout.obeyed.values() for path in found.settings}
        self._watch = FileWatch(self._events, guarded=self._layout.guards(), secret=self._layout.secrets)
        self._guarded = {path: which for path in self._layout.guards() if (which := identity_of(path))}
        of_git = f"{os.sep}.git{os.sep}"
        self._obeyed = {
            path: which for path, which in self._guarded.items() if of_git not in path and os.path.isfile(path)
        }

    def _new_mount_points(self) -> MountPoints:
        """NoSandbox where there is no room for them: those inside could make room, and then what is to be guarded."""
        points = MountPoints(self.layout.mount_points)
        if points.without_room:
            points.remove()
            lacking = ", ".join(points.without_room)
            raise NoSandbox(f"the disk is full, so that this cannot be protected by the sandbox: {lacking}; make room")
        return points

    def _list_guards(self) -> str:
        """Name the files that are to be guarded again when they are replaced, in a file for whoever does that."""
        listed = os.path.join(self.folder().path, "guards")
        rules, nested = self.layout.rules, self.layout.nested
        left_out = {*nested, *self.paths.edited}
        paths = [
            path for path in self.layout.guards() if rules[path] in ("read", "repository") and path not in left_out
        ]
        with open(listed, "wb") as file:
            file.write(list_of(paths, self.layout.ways_to(paths)))
        self._replaced = self._replaced or ReplacedFiles(listed)
        self._found_fresh = ()  # from now on this is looked at, too
        return listed

    def _catch_up(self) -> None:
        """Take note of what was replaced and is guarded again, and of where went what did not stay.

        Nobody can tell what was written in between: such files make the sandbox stale, and are not obeyed.
        """
        if self._replaced and self._beside_replaced.is_look_due(lambda: [self.folder().path]):
            self.common.notes += notes_on(self._replaced.new())

    def _write_cleanup_file(self) -> None:
        """Write down what has to be removed if we are killed; OSError where that cannot be done."""
        self._since = self._since or time.time()
        made = self._mount_points.to_remove if self._mount_points else []
        CleanupRecord(self.folder().path).write(
            {
                "mount_points": [(path, None if content is None else os.fsdecode(content)) for path, content in made],
                "unwanted": list(self.layout.unwanted),
                "groups": self.group.paths(),
                "common": self.common.places(),
                "workspace": self._worked_in(),
                "caches": self._all_caches(),
                "since": self._since,
                "span": str(self._span.live) if self._span else "",
                "own_pids": self.choose().backend == "bubblewrap-pids",
                "guarded": self._guarded,
                "sealed": self._sealed(),
                "repositories": described(self._git_folders) if self._git_folders else self._described(),
            }
        )

    def _prepare_sweep(self) -> None:
        """Know from here on what is made inside, so that it can be moved away."""
        self._nested = self._nested or NestedRepositories(
            self._worked_in(),
            self._since,
            self._guarded,
            repositories=[one.git for one in self.layout.repositories],
            sealed=self._sealed(),
            walk=self._walk,
        )
        self._nested.listen(self._events)
        self._is_in_use = True

    def _described(self) -> dict[str, Any]:
        return self._repositories.described() if self._repositories else {}

    def _sealed(self) -> list[str]:
        return sorted(self.layout.sealed().intersection(self._guarded))

    def _worked_in(self) -> list[str]:
        """The folders that can be written, of the workspace and of those that the configuration names beside it."""
        folders = [*map(os.path.realpath, self.paths.workspace), *named_folders(self.paths)]
        return [real for real in folders if self.layout.access(real) == "write"]

    def _all_caches(self) -> str:
        """The folder with the caches of all workspaces."""
        return os.path.realpath(os.path.dirname(self.paths.caches)) if self.paths.caches else ""


def unrecorded(error: OSError) -> str:
    """Why nothing is started inside when it cannot be written down that something is."""
    where = user_folder("state")
    return (
        f"it cannot be written down in {where} that tools can write the workspace from now on "
        f"({error.strerror or error}), and what they change would be taken for yours later: make room there, "
        "or let XDG_STATE_HOME name a folder that can be written"
    )
