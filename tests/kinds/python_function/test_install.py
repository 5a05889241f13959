"""Projects copied and installed into the cache, by policy and without a network."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import support
from repositories import BACKEND, packaging, write
from toolyard.core.problems import Problem
from toolyard.kinds.python_function.install import Installed

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["uv", "pip"])
def installer(request) -> dict:
    """The policy under which each of them installs: arguments for pip are given to pip."""
    return {"pip_args": ["--no-color"]} if request.param == "pip" else {}


def name_of(installer: dict) -> str:
    if not installer:
        support.need("uv")
    return "pip" if installer else "uv"


def project(folder: Path, *, value: str = "1", name: str = "greeter", **extra: str) -> Path:
    files = {**packaging(name), f"src/{name}/__init__.py": f"VALUE = {value}\n", "agent_plugin.json": "{}", **extra}
    return write(folder, files)


def installed(found: Installed | Problem) -> Path:
    assert isinstance(found, Installed), found
    return found.roots[0]


def record(found: Installed) -> dict:
    root = found.roots[0]
    return next(
        json.loads((folder / "toolyard.json").read_text())
        for folder in (root, *root.parents)
        if (folder / "toolyard.json").exists()
    )


async def test_a_project_is_built_and_installed_without_a_network(tmp_path, acquirer, installer):
    found = await acquirer(**installer).install(project(tmp_path / "p"), name="p")
    site = installed(found)
    assert (site / "greeter" / "__init__.py").read_text() == "VALUE = 1\n"
    assert (site / "agent_plugin.json").exists(), "top-level data comes along"
    assert record(found)["with"] == name_of(installer)
    assert found.notes == []
    assert sorted(path.name for path in site.parent.iterdir()) == ["site", "source", "toolyard.json"]
    assert list((site.parent / "source").iterdir()) == [], "what was only needed to build is gone"


async def test_building_leaves_the_authors_folder_as_it_was(tmp_path, acquirer):
    spoils = BACKEND.replace("    with open(", "    open('litter', 'w').close()\n    with open(", 1)
    folder = project(tmp_path / "p", **{"backend/in_tree.py": spoils})
    before = sorted(folder.rglob("*"))
    installed(await acquirer().install(folder, name="p"))
    assert sorted(folder.rglob("*")) == before


async def test_an_unchanged_project_is_not_installed_again(tmp_path, acquirer):
    counting = f"{BACKEND}\nwith open({str(tmp_path / 'builds')!r}, 'a') as file: file.write('x')\n"
    folder = project(tmp_path / "p", **{"backend/in_tree.py": counting})
    first = installed(await acquirer().install(folder, name="p"))
    built = (tmp_path / "builds").read_text()
    assert installed(await acquirer().install(folder, name="p")) == first
    (folder / "agent_plugin.json").touch()
    assert installed(await acquirer().install(folder, name="p")) == first, "only the content counts"
    assert (tmp_path / "builds").read_text() == built
    for change in (
        {"src/greeter/__init__.py": "VALUE = 2\n"},
        {"src/greeter/more.py": ""},
    ):
        write(folder, change)
        now = installed(await acquirer().install(folder, name="p"))
        assert now != first
        first = now
    assert (now / "greeter" / "__init__.py").read_text() == "VALUE = 2\n"


async def test_another_policy_is_another_installation(tmp_path, acquirer):
    folder = project(tmp_path / "p")
    found = {
        installed(await acquirer(**policy).install(folder, name="p"))
        for policy in ({}, {"install_deps": True}, {"allow_remote": True}, {})
    }
    assert len(found) == 3


async def test_a_folder_without_packaging_is_copied_as_it_is(tmp_path, acquirer):
    folder = write(tmp_path / "p", {"plain.py": "X = 1\n", "data/x.txt": "x", "__pycache__/junk.pyc": ""})
    (folder / "plain.py").chmod(0o755)
    found = await acquirer().install(folder, name="p")
    root = installed(found)
    names = sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())
    assert names == ["data/x.txt", "plain.py"]
    assert os.access(root / "plain.py", os.X_OK)
    assert record(found)["with"] == "copy"


async def test_packages_in_src_are_found_without_packaging(tmp_path, acquirer):
    found = await acquirer().install(write(tmp_path / "p", {"src/x/__init__.py": ""}), name="p")
    assert [root.name for root in found.roots] == ["src", "0"]


async def test_projects_beside_are_installed_with_it_and_watched(tmp_path, acquirer):
    main = project(tmp_path / "main", name="main")
    beside = project(tmp_path / "helper", name="helper")
    first = installed(await acquirer().install(main, name="main", beside=[beside]))
    assert (first / "main").is_dir()
    assert (first / "helper").is_dir()
    write(beside, {"src/helper/__init__.py": "VALUE = 3\n"})
    second = installed(await acquirer().install(main, name="main", beside=[beside]))
    assert second != first
    assert (second / "helper" / "__init__.py").read_text() == "VALUE = 3\n"


async def test_dependencies_come_along_only_when_policy_says_so(tmp_path, acquirer, installer):
    wheels = tmp_path / "wheels"
    helper = project(tmp_path / "helper", name="helper")
    wheels.mkdir()
    build = "import sys; sys.path[:0] = ['backend']; import in_tree; in_tree.build_wheel(sys.argv[1])"
    subprocess.run([sys.executable, "-c", build, str(wheels)], cwd=helper, check=True, timeout=support.PATIENCE)
    folder = write(tmp_path / "p", {**packaging("greeter", dependencies=("helper",)), "greeter.py": ""})
    without = installed(await acquirer(**installer).install(folder, name="p"))
    assert not (without / "helper").exists()
    args = ["--find-links", str(wheels)]
    together = installed(await acquirer(pip_args=args, install_deps=True).install(folder, name="p"))
    assert (together / "helper" / "__init__.py").exists()
    refused = await acquirer(**installer, install_deps=True).install(folder, name="p")
    assert refused.code == "plugin_install_failed"
    assert "helper" in refused.message
    assert "allow_remote" in refused.hint
    assert "may not be downloaded (allow_remote is false)" in refused.message


async def test_what_cannot_be_built_here_is_used_as_it_is_and_that_is_said(tmp_path, acquirer, installer):
    pyproject = """
[build-system]
requires = ["no-such-backend"]
build-backend = "nowhere"
[project]
name = "p"
version = "1.0"
"""
    folder = write(tmp_path / "p", {"pyproject.toml": pyproject, "p/__init__.py": "X = 1\n"})
    found = await acquirer(**installer).install(folder, name="p")
    assert (installed(found) / "p" / "__init__.py").exists()
    (note,) = found.notes
    assert (note.code, note.severity) == ("plugin_used_as_it_is", "warning")
    assert "no-such-backend" in note.message
    assert "allow_remote" in note.hint
    assert (await acquirer(**installer).install(folder, name="p")).notes == found.notes, "also from the cache"
    refused = await acquirer(**installer, install_deps=True).install(folder, name="p")
    assert refused.code == "plugin_install_failed"


async def test_a_backend_that_is_installed_beside_us_builds_without_a_network(tmp_path, acquirer, installer):
    pyproject = """
[build-system]
requires = ["hatchling>=1"]
build-backend = "hatchling.build"
[project]
name = "greeter"
version = "1.0"
"""
    folder = write(tmp_path / "p", {"pyproject.toml": pyproject, "greeter/__init__.py": "VALUE = 1\n"})
    found = await acquirer(**installer).install(folder, name="p")
    assert found.notes == []
    assert (installed(found) / "greeter" / "__init__.py").exists()
    assert record(found)["with"] == name_of(installer)


async def test_the_pip_cache_is_beside_the_plugins_unless_named(tmp_path, acquirer):
    support.need("uv")
    folder = project(tmp_path / "p")
    installed(await acquirer().install(folder, name="p"))
    assert list((tmp_path / "cache" / "pip").iterdir())
    write(folder, {"more.py": ""})
    installed(await acquirer(pip_cache_dir=str(tmp_path / "mine")).install(folder, name="p"))
    assert list((tmp_path / "mine").iterdir())


async def test_a_build_that_hangs_is_ended(tmp_path, acquirer):
    folder = project(tmp_path / "p", **{"backend/in_tree.py": "import time\ntime.sleep(1000)\n"})
    refused = await acquirer(install_timeout_seconds=1, install_deps=True).install(folder, name="p")
    assert refused.code == "plugin_install_failed"
    assert "1 seconds" in refused.message


async def test_a_build_script_gets_no_home_and_no_secrets(tmp_path, acquirer, installer, monkeypatch):
    monkeypatch.setenv("MY_API_TOKEN", "s3cret-value")
    spies = f"""
import json, os
seen = os.environ.get("MY_API_TOKEN")
with open(os.path.expanduser("~/owned"), "w") as file: file.write("x")
with open("../owned", "w") as file: file.write("x")
with open({str(tmp_path / "seen")!r}, "w") as file: json.dump([seen, os.path.expanduser("~")], file)
{BACKEND}
"""
    folder = project(tmp_path / "p", **{"backend/in_tree.py": spies})
    installed(await acquirer(**installer).install(folder, name="p"))
    token, home = json.loads((tmp_path / "seen").read_text())
    assert token is None
    assert home.startswith(str(tmp_path / "cache"))
    assert not os.path.exists(home), "whatever it wrote there went with the installation"
    assert [str(path) for path in tmp_path.rglob("owned")] == []
    assert not (Path.home() / "owned").exists()


async def test_links_out_devices_and_size_are_refused(tmp_path, acquirer):
    folder = project(tmp_path / "p")
    os.symlink("/etc/passwd", folder / "link")
    refused = await acquirer().install(folder, name="p")
    assert refused.code == "plugin_outside"
    (folder / "link").unlink()
    os.mkfifo(folder / "pipe")
    assert (await acquirer().install(folder, name="p")).code == "plugin_odd_file"
    (folder / "pipe").unlink()
    with (folder / "huge").open("wb") as file:
        file.truncate(2 << 30)  # two gigabytes that take no room
    refused = await acquirer().install(folder, name="p")
    assert refused.code == "plugin_too_large"
    assert "'huge'" in refused.message
    assert list((tmp_path / "cache").rglob("huge")) == []


async def test_a_cache_that_cannot_be_written_says_so(tmp_path, acquirer):
    (tmp_path / "cache").write_text("a file")
    refused = await acquirer().install(project(tmp_path / "p"), name="p")
    assert refused.code == "plugin_cache"
    assert "plugin_cache_dir" in refused.hint


async def test_a_broken_folder_of_the_cache_is_made_again(tmp_path, acquirer):
    folder = project(tmp_path / "p")
    site = installed(await acquirer().install(folder, name="p"))
    (site.parent / "toolyard.json").unlink()
    shutil.rmtree(site / "greeter")
    again = installed(await acquirer().install(folder, name="p"))
    assert again == site
    assert (again / "greeter" / "__init__.py").exists()


async def test_old_versions_go_when_nobody_has_used_them_for_long(tmp_path, acquirer):
    folder = write(tmp_path / "p", {"x.py": "1"})
    old = installed(await acquirer().install(folder, name="p"))
    os.utime(old.parents[1] / "toolyard.json", (0, 0))
    write(folder, {"x.py": "2"})
    recent = installed(await acquirer().install(folder, name="p"))
    assert not old.exists()
    write(folder, {"x.py": "3"})
    installed(await acquirer().install(folder, name="p"))
    assert recent.exists()
