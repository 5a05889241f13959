"""What a sandbox's inside looks like, rule by rule."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support import need
from toolyard.process.sandbox import secrets as sandbox_secrets
from toolyard.process.sandbox.backends.confinement import RulesBelow, grants, walk
from toolyard.process.sandbox.closed_layout import close
from toolyard.process.sandbox.layout import Layout, SandboxPaths, lay_out
from toolyard.process.sandbox.mount_points import REPOSITORY


class Plot:
    """A home, a workspace in it, and what else a test puts there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home = self.make("home/")
        self.workspace = self.make("home/work/")

    def make(self, name: str, text: str = "") -> str:
        path = self.folder / name
        (path if name.endswith("/") else path.parent).mkdir(parents=True, exist_ok=True)
        if not name.endswith("/"):
            path.write_text(text)
        return str(path)

    def layout(self, **places) -> Layout:
        return lay_out(SandboxPaths(**{"home": self.home, "workspace": [self.workspace], **places}))

    def told_by(self, layout: Layout) -> tuple[object, ...]:
        """All that a layout says of the plot, in order; what else is on the machine may change meanwhile."""
        rules = [(path, access) for path, access in layout.rules.items() if path.startswith(str(self.folder))]
        return rules, layout.mount_points, layout.unwanted, layout.unguarded, layout.open_roots, layout.unseen

    def access(self, *names: str, **places) -> list[str]:
        layout = self.layout(**places)
        return [layout.access(str(self.folder / name)) for name in names]


@pytest.fixture
def plot(tmp_path) -> Plot:
    return Plot(Path(os.path.realpath(tmp_path)))


def test_the_workspace_can_be_written_and_the_rest_of_the_home_read(plot):
    assert plot.access("home/work/src/a.py", "home/notes", "home") == ["write", "read", "read"]
    assert plot.access("elsewhere") == ["private"], "the test's own folder is one for temporary files"
    assert plot.layout().access("/usr/bin/env") == "read"


def test_secrets_of_the_home_are_hidden(plot):
    for name in (".ssh/", ".aws/", ".netrc", ".config/gh/", ".kube/", ".docker/config.json", ".mozilla/", ".npmrc"):
        plot.make(f"home/{name}", "secret")
    hidden = ("home/.ssh/id_ed25519", "home/.aws/credentials", "home/.netrc", "home/.config/gh/hosts.yml")
    more = ("home/.kube/config", "home/.docker/config.json", "home/.mozilla/firefox/x/logins.json", "home/.npmrc")
    assert plot.access(*hidden, *more) == ["hidden"] * 8
    assert plot.access("home/.docker/contexts", "home/.config/other") == ["read", "read"]


@pytest.mark.skipif(os.geteuid() != 0, reason="of an ordinary user the system keeps its secrets itself")
def test_of_root_the_secrets_of_the_system_are_hidden_too_unless_they_are_somebody_else_s_inside(plot, monkeypatch):
    monkeypatch.setattr(sandbox_secrets, "can_map_owners", lambda _: False)
    assert plot.layout().access("/etc/shadow") == "hidden"
    assert plot.layout().access("/etc/passwd") == "read"


def test_homes_of_others_are_hidden(plot):
    layout = plot.layout()
    homes = [path for path in ("/home", "/root") if os.path.isdir(path)]
    assert [layout.access(f"{path}/somebody/file") for path in homes] == ["hidden"] * len(homes)


def test_what_tools_need_is_shown_wherever_it_is(plot):
    tool = plot.make("tools/a.bash")
    assert plot.access("tools/a.bash", "tools/b.bash", readable=[tool]) == ["read", "private"]
    assert plot.layout(readable=["/tmp"]).access("/tmp/other") == "private", "but never all of a private place"


def make_repository(plot, git: str) -> None:
    for name in ("HEAD", "config", "objects/info/", "refs/heads/", "hooks/x"):
        plot.make(f"{git}/{name}")


def test_git_inside_has_a_folder_of_its_own_in_the_place_of_the_repository(plot):
    make_repository(plot, "home/work/.git")
    layout = plot.layout()
    git = f"{plot.workspace}/.git"
    names = ("config", "index", "objects/ab", "hooks/pre-commit")
    assert [layout.access(f"{git}/{name}") for name in names] == [*["repository"] * 3, "read"]
    assert git in layout.guards(), "what is replaced ends what runs"
    assert layout.looking().access(f"{git}/config") == "read"
    assert plot.workspace in grants(layout.for_landlock())[1]


@pytest.mark.parametrize("odd", ["commondir", "reftable/"])
def test_a_repository_that_is_made_up_otherwise_can_only_be_read(plot, odd):
    make_repository(plot, "home/work/.git")
    plot.make(f"home/work/.git/{odd}")
    assert plot.access("home/work/.git/config", "home/work/.git/index") == ["read", "read"]


def test_a_folder_of_hooks_elsewhere_in_the_workspace_is_guarded_too(plot):
    plot.make("home/work/.git/config", "[core]\n\thooksPath = .husky\n")
    plot.make("home/work/.husky/pre-commit")
    assert plot.access("home/work/.husky/pre-commit", "home/work/file") == ["read", "write"]


def test_submodules_are_like_their_repository(plot):
    make_repository(plot, "home/work/.git")
    make_repository(plot, "home/work/.git/modules/lib/one")
    module = f"{plot.workspace}/.git/modules/lib/one"
    layout = plot.layout()
    assert [layout.access(f"{module}/{name}") for name in ("hooks/x", "config")] == ["read", "repository"]
    assert layout.rules[module] == "repository"


def test_without_a_repository_there_is_room_for_one_at_which_git_stops(plot):
    layout = plot.layout()
    assert layout.access(f"{plot.workspace}/.git/hooks/pre-commit") == "repository"
    assert (f"{plot.workspace}/.git", REPOSITORY) in layout.mount_points


def test_but_none_that_hides_a_repository_above_or_around_it(plot):
    make_repository(plot, "home/.git")
    assert dict(plot.layout().mount_points)[f"{plot.workspace}/.git"] is None
    make_repository(plot, "other")
    git = f"{plot.folder}/other/.git"
    assert dict(plot.layout(workspace=[f"{plot.folder}/other"]).mount_points)[git] is None


def test_a_rule_file_is_guarded_and_where_there_is_none_watched_for(plot):
    rules = f"{plot.workspace}/toolyard.json"
    assert rules in plot.layout().unwanted
    plot.make("home/work/toolyard.json", "{}")
    layout = plot.layout()
    assert layout.access(rules) == "read"
    assert rules not in layout.unwanted


def test_what_a_killed_sandbox_left_in_the_place_of_a_repository_is_none(plot):
    plot.make("home/work/.git/")
    assert f"{plot.workspace}/.git" in dict(plot.layout().mount_points)


def test_a_store_in_the_workspace_can_be_read_only_and_what_is_above_it_not_moved(plot):
    store = plot.make("home/work/var/sessions/")
    layout = plot.layout(protected=[store])
    assert layout.access(f"{store}/audit/2026-01-01.ndjson") == "read"
    assert layout.rules[f"{plot.workspace}/var"] == "write"
    assert store in layout.guards()


PLACES = ("a", "a/b", "a/b/c", "a/b/c.py", "a/d", "e", "e/f", "link", "link/c", "missing", "missing/deep", ".git")


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_the_order_in_which_paths_are_named_does_not_matter(plot, data):
    for name in ("a/b/c/", "a/d/", "e/f/"):
        plot.make(f"home/work/{name}")
    plot.make("home/work/a/b/c.py")
    if not os.path.lexists(link := f"{plot.workspace}/link"):
        os.symlink(f"{plot.workspace}/a/b", link)
    wanted = [f"{plot.workspace}/{name}" for name in data.draw(st.lists(st.sampled_from(PLACES), unique=True))]
    unseen = [f"{plot.workspace}/{name}" for name in data.draw(st.lists(st.sampled_from(PLACES[:7]), max_size=2))]
    opened = [f"{plot.workspace}/a/b"] if data.draw(st.booleans()) else []
    first = plot.layout(protected=wanted, unseen=unseen, also_writable=opened)
    other = data.draw(st.permutations(wanted))
    second = plot.layout(protected=other, unseen=unseen[::-1], also_writable=opened)
    assert plot.told_by(first) == plot.told_by(second)
    for path in wanted:
        real = os.path.realpath(path)
        if path not in first.unguarded and real not in first.unguarded:
            assert first.access(real) != "write", "what is guarded cannot be written, whatever else is named"


def test_what_is_guarded_is_sealed_unless_something_below_it_can_be_written(plot):
    closed, partly = plot.make("home/work/closed/inner/"), plot.make("home/work/partly/inner/")
    guarded = [os.path.dirname(path) for path in (closed, partly)]
    layout = plot.layout(protected=guarded, also_writable=[partly])
    assert set(guarded) <= set(layout.guards())
    assert layout.sealed().intersection(guarded) == {guarded[0]}


def test_what_is_locked_cannot_even_be_opened_but_what_is_shown_can_be_read(plot):
    for name in ("audit.head", "outputs/one"):
        plot.make(f"home/work/sessions/{name}")
    store = f"{plot.workspace}/sessions"
    layout = plot.layout(unseen=[store], shown=[f"{store}/outputs"], readable=[store])
    assert [layout.access(f"{store}/{name}") for name in ("audit.head", "outputs/one")] == ["hidden", "read"]
    outside = plot.make("home/state/")
    assert plot.layout(unseen=[outside]).access(f"{outside}/lock") == "hidden", "also where it could only be read"


@pytest.mark.parametrize(
    ("folder", "beside", "access"),
    [
        ("home/dotfiles/bin", "home/dotfiles/private/mail.txt", "hidden"),
        ("home/bin", "home/letter.txt", "hidden"),
        ("home/.local/bin", "home/.local/share/notes", "hidden"),
        ("home/neighbour/bin", "home/neighbour/lib/code.rb", "hidden"),
        ("srv/project/bin", "srv/project/src/code.py", "private"),
        ("home/.nvm/versions/node/v20/bin", "home/.nvm/versions/node/v20/lib/node_modules/npm/index.js", "read"),
        ("home/.pyenv/shims", "home/.pyenv/versions/3/bin/python", "read"),
        ("home/neighbour/.venv/bin", "home/neighbour/.venv/lib/module.py", "read"),
    ],
)
def test_a_closed_look_shows_programs_of_path_and_beside_them_only_what_plainly_was_installed(
    plot, monkeypatch, folder, beside, access
):
    program = plot.make(f"{folder}/program")
    file = plot.make(beside)
    plot.make("home/neighbour/.venv/pyvenv.cfg")
    monkeypatch.setenv("PATH", f"{os.path.dirname(program)}:/usr/bin")
    layout = close(plot.layout(), SandboxPaths(home=plot.home, workspace=[plot.workspace]))
    assert layout.access(program) == "read"
    assert layout.access(file) == access


def test_folders_of_programs_in_the_workspace_are_guarded_also_before_there_are_any(plot, monkeypatch):
    bin = plot.make("home/work/bin/")
    monkeypatch.setenv("PATH", f"{bin}:relative:{plot.workspace}/node_modules/.bin:/usr/bin")
    layout = plot.layout()
    assert [layout.access(f"{plot.workspace}/{name}/git") for name in ("bin", "node_modules/.bin", "relative")] == [
        *("read", "read"),
        "write",
    ]
    made = [path for path, _ in layout.mount_points]
    assert made.index(f"{plot.workspace}/node_modules") < made.index(f"{plot.workspace}/node_modules/.bin")
    assert layout.open_roots == []


@pytest.mark.parametrize("inside", [".venv", ""])
def test_the_environment_that_we_run_in_is_guarded(plot, monkeypatch, inside):
    """Also where it is the workspace itself: then its parts are."""
    prefix = os.path.join(plot.workspace, inside).rstrip("/")
    for name in ("bin/python", "pyvenv.cfg", "lib/python3.11/site-packages/x.py", "src/own/x.py"):
        plot.make(os.path.relpath(os.path.join(prefix, name), plot.folder))
    monkeypatch.setattr("sys.prefix", prefix)
    monkeypatch.setattr("sys.executable", f"{prefix}/bin/python")
    monkeypatch.setattr("sys.path", [*sys.path, f"{prefix}/lib/python3.11/site-packages", f"{prefix}/src"])
    layout = plot.layout()
    names = ("bin/git", "pyvenv.cfg", "lib/python3.11/site-packages/evil.pth", "src/own/y.py")
    assert [layout.access(f"{prefix}/{name}") for name in names] == ["read"] * 4
    assert layout.open_roots == []
    assert layout.access(f"{plot.workspace}/other/file") == "write"


@pytest.mark.parametrize(
    "how",
    [
        lambda plot: {"PATH": plot.workspace},
        lambda plot: {"PATH": f"{plot.workspace}/linked"},
        lambda plot: {"PATH": f"{plot.home}/tools", "also_writable": [f"{plot.home}/tools"]},
        lambda plot: {"sys.prefix": f"{plot.home}/env", "also_writable": [f"{plot.home}/env"]},
        lambda plot: {"sys.prefix": f"{plot.home}/env", "also_writable": [f"{plot.home}/env/lib"]},
    ],
)
def test_a_root_that_can_be_written_all_the_same_is_named(plot, monkeypatch, how):
    for name in ("home/tools/", "home/env/lib/", "home/work/real/"):
        plot.make(name)
    os.symlink("real", f"{plot.workspace}/linked")
    given = how(plot)
    monkeypatch.setenv("PATH", given.pop("PATH", "/usr/bin"))
    if "sys.prefix" in given:
        monkeypatch.setattr("sys.prefix", given.pop("sys.prefix"))
    assert len(plot.layout(**given).open_roots) == 1


def test_a_folder_of_programs_may_hold_the_workspace(plot, monkeypatch):
    monkeypatch.setenv("PATH", f"{plot.home}:/usr/bin")
    assert plot.layout().open_roots == []


def test_settings_of_package_managers_can_neither_be_changed_nor_made(plot):
    plot.make("home/work/.npmrc", "registry=x")
    layout = plot.layout()
    names = (".npmrc", ".yarnrc.yml", ".cargo/config.toml")
    assert [layout.access(f"{plot.workspace}/{name}") for name in names] == ["read"] * 3
    assert {f"{plot.workspace}/.yarnrc.yml", f"{plot.workspace}/.cargo"} <= {path for path, _ in layout.mount_points}


def test_where_yarn_is_used_nothing_stands_in_the_place_of_its_settings(plot):
    plot.make("home/work/yarn.lock")
    layout = plot.layout()
    assert {f"{plot.workspace}/.yarnrc.yml", f"{plot.workspace}/.npmrc"} <= {*layout.unwanted}
    assert not {f"{plot.workspace}/.yarnrc.yml"} & {path for path, _ in layout.mount_points}


def test_landlock_keeps_a_workspace_writable_around_what_is_ours(plot):
    plot.make("home/work/sessions/audit.head")
    layout = plot.layout(unseen=[f"{plot.workspace}/sessions"])
    assert plot.workspace in grants(layout.for_landlock())[1]


def test_a_link_that_should_be_guarded_is_named_because_it_cannot_be(plot):
    make_repository(plot, "elsewhere")
    os.symlink(plot.folder / "elsewhere", f"{plot.workspace}/.git")
    assert plot.layout().unguarded == [f"{plot.workspace}/.git"]


def test_hooks_that_a_link_in_the_repository_leads_to_are_guarded(plot):
    make_repository(plot, "home/work/.git")
    plot.make("home/work/shared/x")
    shutil.rmtree(f"{plot.workspace}/.git/hooks")
    os.symlink("../shared", f"{plot.workspace}/.git/hooks")
    assert plot.access("home/work/shared/x", "home/work/file") == ["read", "write"]


def test_in_a_home_that_is_the_workspace_what_starts_by_itself_stays_as_it_is(plot):
    plot.make("home/.profile", "x")
    plot.make("home/.ssh/key", "secret")
    layout = plot.layout(workspace=[plot.home])
    names = (".profile", ".bashrc", ".bash_profile", ".gitconfig", ".ssh/key", "notes")
    assert [layout.access(f"{plot.home}/{name}") for name in names] == [*["read"] * 4, "hidden", "write"]
    mount_points = dict(layout.mount_points)
    assert mount_points[f"{plot.home}/.bashrc"] == b""
    assert mount_points[f"{plot.home}/.bash_profile"] == b". ~/.profile\n", "or bash would not read that any more"


@pytest.mark.parametrize("folder", ["/", "/etc", "/usr", "/tmp", "/home"])
def test_folders_of_the_system_are_nobody_s_workspace(plot, folder):
    assert plot.layout(workspace=[folder]).writable() == []


def test_the_configuration_has_the_last_word(plot):
    for name in (".aws/config", ".cache/pip/x", "private/x"):
        plot.make(f"home/{name}")
    opened = {
        "also_readable": [f"{plot.home}/.aws/config"],
        "also_writable": [f"{plot.home}/.cache"],
        "also_hidden": [f"{plot.home}/private"],
    }
    assert plot.access(
        "home/.aws/config", "home/.aws/credentials", "home/.cache/pip/x", "home/private/x", **opened
    ) == [
        *("read", "hidden"),
        *("write", "hidden"),
    ]


def test_a_worktree_has_its_repository_for_itself_wherever_that_is(plot):
    git = need("git")
    main, tree = plot.make("home/main/"), f"{plot.home}/tree"
    for words in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "x"], ["worktree", "add", "-q", tree]):
        subprocess.run([git, "-C", main, "-c", "user.name=x", "-c", "user.email=x@x", *words], check=True)
    layout = plot.layout(workspace=[tree])
    names = ("main/.git/objects", "main/.git/worktrees/tree/index", "main/.git/config", "main/.git/hooks", "tree/.git")
    assert [layout.access(f"{plot.home}/{name}") for name in names] == [*["repository"] * 3, "read", "read"]
    assert layout.access(f"{main}/file") == "read"


def test_a_worktree_of_which_its_repository_knows_nothing_opens_nothing(plot):
    plot.make("home/main/.git/worktrees/tree/gitdir", "/elsewhere/.git\n")
    plot.make("home/main/.git/worktrees/tree/commondir", "../..\n")
    plot.make("home/work/.git", f"gitdir: {plot.home}/main/.git/worktrees/tree\n")
    assert plot.access("home/main/.git/objects", "home/work/.git") == ["read", "read"]


def test_landlock_grants_what_is_around_a_hidden_place_entry_by_entry(plot):
    for name in ("home/.ssh/key", "home/a/x", "home/b"):
        plot.make(name)
    readable, writable = grants(plot.layout().rules)
    assert {f"{plot.home}/a", f"{plot.home}/b"} <= {*readable}
    assert not {plot.home, f"{plot.home}/.ssh", str(plot.folder)} & {*readable, *writable}
    assert plot.workspace in writable


class Counted(dict[str, Any]):
    """Rules that count how often one of them is looked at."""

    looks = 0

    def items(self) -> Any:
        self.looks += len(self)
        return super().items()


def test_for_each_entry_of_a_folder_only_its_own_rules_are_looked_at(tmp_path):
    for number in range(50):
        (tmp_path / f"{number}" / "secret").mkdir(parents=True)
    rules = Counted({f"{tmp_path}/{number}/secret": "hidden" for number in range(50)})
    readable: list[str] = []
    walk(str(tmp_path), "read", RulesBelow(rules), readable, [])
    assert readable == []
    assert rules.looks == len(rules)
