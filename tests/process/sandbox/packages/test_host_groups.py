"""Groups of hosts: each host by its whole name, and mirrors only from where no tool can write."""

from __future__ import annotations

import pytest

from toolyard.process.sandbox.layout import SandboxPaths, lay_out
from toolyard.process.sandbox.network.hosts import AllowedHosts, invalid_hosts
from toolyard.process.sandbox.packages.host_groups import GROUPS
from toolyard.process.sandbox.packages.mirrors import CARGO_FILES, NPM_FILES, PIP_FILES, UV_FILES, mirror_variables


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """A home and an environment in which nothing is set up; what the system says may stay."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    for name in ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "UV_INDEX_URL", "npm_config_registry"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "home"


def set_up(home, name, text):
    (home / name).parent.mkdir(parents=True, exist_ok=True)
    (home / name).write_text(text)


def reached(*entries):
    """Which of some hosts the entries let be reached."""
    asked = [
        *(("pypi.org", 443), ("pypi.org", 80), ("evil.pypi.org", 443), ("pypi.org.evil.example", 443)),
        *(("upload.pypi.org", 443), ("registry.npmjs.org", 443), ("x.registry.npmjs.org", 443), ("npmjs.org", 443)),
        *(("mirror.corp", 443), ("mirror.corp", 8443), ("sub.mirror.corp", 443), ("10.1.2.3", 3141)),
    ]
    return {f"{host}:{port}" for host, port in asked if AllowedHosts(entries).find(host, port)}


def test_a_group_has_its_hosts_by_their_whole_names_and_nothing_below_them():
    assert reached("@python") == {"pypi.org:443"}
    assert reached("@node") == {"registry.npmjs.org:443"}
    assert reached("@python", "@node") == {"pypi.org:443", "registry.npmjs.org:443"}
    assert not any(name.startswith("*") for hosts in GROUPS.values() for name in hosts)


def test_there_is_no_group_that_is_not_known():
    assert invalid_hosts(["@python", "@pyhton", "@", "@node"]) == ["@pyhton", "@"]
    assert reached("@pyhton") == set()


@pytest.mark.parametrize(
    ("file", "text", "group", "host"),
    [
        (
            ".config/pip/pip.conf",
            "[global]\nindex-url = https://me:secret@mirror.corp/simple\n",
            "@python",
            "mirror.corp:443",
        ),
        (
            ".pip/pip.conf",
            "[global]\nextra-index-url =\n    https://mirror.corp:8443/a\n",
            "@python",
            "mirror.corp:8443",
        ),
        (".config/uv/uv.toml", '[[index]]\nurl = "https://mirror.corp/simple"\n', "@python", "mirror.corp:443"),
        (".npmrc", "registry=https://mirror.corp/npm/\n//mirror.corp/npm/:_authToken=x\n", "@node", "mirror.corp:443"),
        (".npmrc", "@corp:registry=https://mirror.corp/npm/\n", "@node", "mirror.corp:443"),
        (
            ".cargo/config.toml",
            '[source.corp]\nregistry = "sparse+https://mirror.corp/index/"\n',
            "@rust",
            "mirror.corp:443",
        ),
    ],
)
def test_a_mirror_that_the_owner_set_up_is_in_its_group_and_in_no_other(home, file, text, group, host):
    set_up(home, file, text)
    assert host in reached(group)
    assert "sub.mirror.corp:443" not in reached(group)
    assert not any(host in reached(other) for other in GROUPS if other != group)


def test_a_mirror_of_the_environment_is_in_its_group_and_may_be_in_a_private_network(monkeypatch):
    monkeypatch.setenv("PIP_INDEX_URL", "http://10.1.2.3:3141/root/pypi/+simple/")
    assert "10.1.2.3:3141" in reached("@python")
    found = AllowedHosts(["@python"]).find("10.1.2.3", 3141)
    assert found is not None
    assert found.private


def test_what_a_project_says_of_itself_opens_nothing(home, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, text in {
        ".npmrc": "registry=https://mirror.corp/\n",
        "pip.conf": "[global]\nindex-url = https://mirror.corp/simple\n",
        "uv.toml": 'index-url = "https://mirror.corp/simple"\n',
        "pyproject.toml": '[[tool.uv.index]]\nurl = "https://mirror.corp/simple"\n',
        ".cargo/config.toml": '[source.crates-io]\nregistry = "sparse+https://mirror.corp/"\n',
        ".env": "PIP_INDEX_URL=https://mirror.corp/\n",
    }.items():
        set_up(tmp_path, name, text)
    assert not any("mirror.corp" in host for group in GROUPS for host in reached(group))


@pytest.mark.parametrize(
    "files_of_home", [(), (".npmrc", ".pip/pip.conf", ".config/pip/pip.conf", ".cargo/config.toml")]
)
def test_where_the_home_is_the_workspace_nobody_inside_can_set_a_mirror_up(home, files_of_home):
    """It would be one of the hosts of its group at the next start."""
    for name in files_of_home:
        set_up(home, name, "")
    layout = lay_out(SandboxPaths(home=str(home), workspace=[str(home)]))
    named = [file for files in (PIP_FILES, UV_FILES, NPM_FILES, CARGO_FILES) for file in files if file.startswith("~/")]
    assert len(named) >= 6
    assert [file for file in named if layout.access(str(home / file.removeprefix("~/"))) == "write"] == []


def test_inside_mirrors_are_told_without_credentials(home, monkeypatch):
    set_up(home, ".config/pip/pip.conf", "[global]\nindex-url = https://me:secret@mirror.corp/simple?token=secret\n")
    set_up(home, ".npmrc", "registry=https://mirror.corp/npm/\n//mirror.corp/npm/:_authToken=secret\n")
    monkeypatch.setenv("UV_INDEX_URL", "https://me:secret@mirror.corp/simple")
    told = mirror_variables()
    assert told["PIP_INDEX_URL"] == told["UV_INDEX_URL"] == "https://mirror.corp/simple"
    assert told["npm_config_registry"] == "https://mirror.corp/npm/"
    assert not any("secret" in value for value in told.values())


def test_what_the_environment_says_without_a_password_is_left_as_it_is(home, monkeypatch):
    set_up(home, ".config/pip/pip.conf", "[global]\nindex-url = https://mirror.corp/simple\n")
    monkeypatch.setenv("PIP_INDEX_URL", "https://other.corp/simple")
    assert "PIP_INDEX_URL" not in mirror_variables()
