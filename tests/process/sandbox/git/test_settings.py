"""Reading settings as git does, and handing over those that can do no harm."""

from __future__ import annotations

import random
import subprocess

import pytest

from support import need
from toolyard.process.sandbox.git.git_files import IsLocked
from toolyard.process.sandbox.git.handover import ConfigHandover
from toolyard.process.sandbox.git.settings import edited, is_readable, settings_in, written

PIECES = [
    *("[core]", '[core "a b"]', "[a.B]", "\n", "x", "bare", " = ", "=", '"', "\\", "\\\n", "#", "; c", "true", "/w/p"),
    *('[remote "o\\"x"]', "url", "\r\n", " ", "fsmonitor", "\\n", "[", '\\"', "]", "name-x", "[user]name=y"),
]


def listed(file) -> bytes | None:
    """The settings that git reads, or None if it cannot."""
    ran = subprocess.run([need("git"), "config", "-f", file, "-z", "-l"], capture_output=True)
    return ran.stdout if ran.returncode == 0 else None


@pytest.mark.parametrize("seed", range(4))
def test_settings_are_read_as_git_reads_them_and_written_as_git_reads_them(tmp_path, seed):
    dice = random.Random(seed)
    for _ in range(100):
        text = "[core]\n" + "".join(dice.choice(PIECES) for _ in range(dice.randint(1, 14)))
        (file := tmp_path / "config").write_text(text, newline="")
        said = listed(file)
        if not is_readable(text):
            continue
        names = [".".join(part for part in one[:3] if part is not None) for one in settings_in(text)]
        values = ["" if one.value is None else f"\n{one.value}" for one in settings_in(text)]
        ours = "".join(f"{name}{value}\0" for name, value in zip(names, values, strict=True))
        assert ours.encode() == said, text
        file.write_text(written(settings_in(text)), newline="")
        assert listed(file) == said, text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[user]\n\tname = \"a \\\\ b\" # x\n[remote \"o\"]\n\turl = 'x'\n\tfetch\n",
        "[a \"b\\\\c\"] d = e \\\n f\n",
        "\ufeff[core]\r\n\tbare = false\r\n",
    ],
)  # fmt: skip
def test_ordinary_texts_are_readable(tmp_path, text):
    assert is_readable(text)


def test_a_setting_goes_and_the_rest_of_a_configuration_stays_as_it_was():
    text = '# mine\n[user]\n\tname = A ; me\n\temail = a@b\n[branch "x"]\n\tremote = o\n'
    removed = [one for one in settings_in(text) if one.name in ("email", "remote")]
    assert edited(text, removed, ()) == '# mine\n[user]\n\tname = A ; me\n[branch "x"]\n'
    assert edited("", (), settings_in("[user] name = B")) == '[user]\n\tname = "B"\n'


TRAVELS = {
    "[user]\n\tname = Ada\n\temail = ada@example.org\n": True,
    "[remote \"o\"]\n\turl = https://example.org/x.git\n\tfetch = +refs/heads/*:refs/remotes/o/*\n": True,
    "[remote \"o\"]\n\turl = git@example.org:a/b.git\n": True,
    "[remote \"o\"]\n\turl = ssh://git@example.org:22/a/b\n": True,
    "[remote \"o\"]\n\turl = ./bare.git\n": False,
    "[remote \"o\"]\n\turl = WORK/bare.git\n": False,
    "[branch \"main\"]\n\tremote = origin\n\tmerge = refs/heads/main\n\trebase = true\n": True,
    "[branch \"a/b-c\"]\n\tremote = .\n\tmerge = refs/heads/x\n": True,
    "[user]\n\tsigningkey = x\n": False,
    "[user \"x\"]\n\tname = x\n": False,
    "[remote \"origin\"]\n\turl = https://elsewhere.example/x\n": False,
    "[remote \"origin\"]\n\tpushurl = https://elsewhere.example/x\n": False,
    "[remote \"o\"]\n\turl = ext::sh\n": False,
    "[remote \"o\"]\n\turl = --upload-pack=x\n": False,
    "[remote \"o\"]\n\turl = ssh://-oProxyCommand=x/y\n": False,
    "[remote \"o\"]\n\turl = -x@y:z\n": False,
    "[remote \"o\"]\n\turl = /etc/x\n": False,
    "[remote \"o\"]\n\turl = ../outside\n": False,
    "[remote \"o\"]\n\turl = file:///etc/x\n": False,
    "[remote \"o\"]\n\turl = ./link-out\n": False,
    "[remote \"o\"]\n\turl = ftp://example.org/x\n": False,
    "[remote \"o\"]\n\turl = \"https://x/y\\n[core]\"\n": False,
    "[remote \"o\"]\n\tuploadpack = x\n\treceivepack = x\n\tvcs = x\n\tproxy = x\n": False,
    "[remote \"o\"]\n\tfetch = +refs/heads/*:refs/remotes/o/*\n": False,
    "[remote \"origin\"]\n\tfetch = +refs/heads/*:refs/heads/*\n": False,
    "[remote \"-o\"]\n\turl = https://example.org/x.git\n": False,
    "[remote \"origin\"]\n\tfetch = +refs/heads/*:refs/tags/*\n": False,
    "[submodule \"lib\"]\n\turl = https://elsewhere.example/x\n": False,
    "[branch \"main\"]\n\tremote = elsewhere\n": False,
    "[branch \"main\"]\n\tremote = https://elsewhere.example/x\n": False,
    "[branch \"main\"]\n\tmerge = --x\n": False,
    "[branch \"main\"]\n\trebase = interactive\n": False,
    "[branch \"main\"]\n\tpushremote = x\n\tdescription = x\n\tmergeoptions = --x\n": False,
    "[core]\n\tworktree = /\n\teditor = x\n\thookspath = x\n\tautocrlf = input\n": False,
    "[extensions]\n\tworktreeconfig = true\n": False,
    "[url \"ext::x\"]\n\tinsteadof = https://\n": False,
    "[includeIf \"gitdir:/\"]\n\tpath = x\n": False,
}  # fmt: skip


@pytest.mark.parametrize("text", TRAVELS)
def test_only_what_can_do_no_harm_is_handed_over(tmp_path, text):
    (git := tmp_path / "work" / ".git").mkdir(parents=True)
    (tmp_path / "work" / "link-out").symlink_to("/etc")
    owners = '[core]\n\tbare = false\n[remote "origin"]\n\turl = https://example.org/y\n'
    owners += '[submodule "lib"]\n\turl = https://example.org/lib\n'
    (git / "config").write_text(owners)
    (private := tmp_path / "private").mkdir()
    (private / "config").write_text(owners)
    handover = ConfigHandover(str(git), str(private), is_new=False)
    (private / "config").write_text(owners + text.replace("WORK", str(tmp_path / "work")))
    notes = handover.exchange()
    changed = list(settings_in((git / "config").read_text()))[3:]
    if TRAVELS[text]:
        assert changed == list(settings_in(text.replace("WORK", str(tmp_path / "work"))))
        assert notes == []
    else:
        assert (git / "config").read_text() == owners
        assert len(notes) == len(list(settings_in(text))), "and each is named"


def test_the_owner_s_next_push_goes_where_it_went_before(tmp_path):
    (git := tmp_path / "work" / ".git").mkdir(parents=True)
    owners = '[remote "origin"]\n\turl = https://example.org/y\n[branch "main"]\n\tremote = origin\n'
    (git / "config").write_text(owners)
    (private := tmp_path / "private").mkdir()
    handover = ConfigHandover(str(git), str(private), is_new=False)
    new = '[remote "o"]\n\turl = "https://elsewhere.example/x"\n'
    turned = '[branch "main"]\n\tremote = o\n[branch "new"]\n\tremote = o\n'
    (private / "config").write_text(owners.replace('[branch "main"]\n\tremote = origin\n', turned) + new)
    (first, second) = handover.exchange()
    assert "branch.main.remote" in first
    assert "branch.new.remote" in second
    assert (git / "config").read_text() == owners + new, "and what was replaced by something else does not go either"


def test_a_link_in_the_place_of_the_private_configuration_is_not_followed(tmp_path):
    (git := tmp_path / "work" / ".git").mkdir(parents=True)
    (git / "config").write_text("")
    (tmp_path / "secret").write_text("[user]\n\tname = secret\n")
    (private := tmp_path / "private").mkdir()
    handover = ConfigHandover(str(git), str(private), is_new=False)
    (private / "config").symlink_to(tmp_path / "secret")
    handover.exchange()
    assert (git / "config").read_text() == ""
    (git / "config").write_text("[user]\n\tname = A\n")
    handover.exchange()
    assert (tmp_path / "secret").read_text() == "[user]\n\tname = secret\n"
    assert not (private / "config").is_symlink()


def test_what_its_owner_sets_while_the_lock_is_held_inside_is_taken_in_later(tmp_path):
    (git := tmp_path / "work" / ".git").mkdir(parents=True)
    (private := tmp_path / "private").mkdir()
    handover = ConfigHandover(str(git), str(private), is_new=False)
    (private / "config.lock").touch()
    (git / "config").write_text("[user]\n\tname = A\n")
    with pytest.raises(IsLocked):
        handover.exchange()
    (private / "config.lock").unlink()
    handover.exchange()
    assert "name = A" in (private / "config").read_text()
