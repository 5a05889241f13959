"""What comes from inside neither hides changes from the owner of a repository, nor leads git elsewhere or astray."""

from __future__ import annotations

import asyncio
import os
import subprocess
import time
from types import SimpleNamespace

import pytest

from owners_git import WRITE, git, inside
from support import until
from toolyard.process.sandbox.git import git_files
from toolyard.process.sandbox.git.outgoing.index_file import GitIndex, IndexEntry, read_index

pytestmark = pytest.mark.anyio

FORGE = """
import hashlib, os, struct, sys
data = bytearray(open('.git/index', 'rb').read())
at = 12
for _ in range(struct.unpack('>I', data[8:12])[0]):
    end = data.index(b'\\0', at + 62)
    if bytes(data[at + 62:end]) == b'file':
        facts = os.lstat('file')
        times = [number for each in (facts.st_ctime_ns, facts.st_mtime_ns) for number in divmod(each, 10**9)]
        data[at:at + 24] = struct.pack('>6I', *times, facts.st_dev & 0xFFFFFFFF, facts.st_ino & 0xFFFFFFFF)
        data[at + 28:at + 40] = struct.pack('>3I', int(sys.argv[1]), int(sys.argv[2]), facts.st_size)
    at += (end - at + 8) & ~7
data = bytes(data[:at])
open('.git/index.new', 'wb').write(data + hashlib.sha1(data).digest())
os.rename('.git/index.new', '.git/index')
"""
PACK = """
import hashlib, os, struct, sys, zlib
copies, number = int(sys.argv[1]), int(sys.argv[2])
size = 0xFFFFFF
base = bytes(size)
oid = hashlib.sha1(b'blob %d\\0' % size + base).digest()
def header(kind, length):
    byte, length, out = (kind << 4) | (length & 15), length >> 4, b''
    while length:
        out, byte, length = out + bytes([byte | 0x80]), length & 0x7F, length >> 7
    return out + bytes([byte])
def varint(value):
    out = b''
    while value > 0x7F:
        out, value = out + bytes([value & 0x7F | 0x80]), value >> 7
    return out + bytes([value])
objects = [header(3, size) + zlib.compress(base, 9)]
for one in range(number):
    tail = b'%08d' % one
    delta = varint(size) + varint(copies * size + len(tail)) + b'\\xf0\\xff\\xff\\xff' * copies
    delta += bytes([len(tail)]) + tail
    objects.append(header(7, len(delta)) + oid + zlib.compress(delta, 9))
data = b'PACK' + struct.pack('>II', 2, len(objects)) + b''.join(objects)
data += hashlib.sha1(data).digest()
for folder in ('objects/pack', 'refs/tags'):
    os.makedirs(f'.git/{folder}', exist_ok=True)
open('.git/objects/pack/pack-' + hashlib.sha1(data).hexdigest() + '.pack', 'wb').write(data)
open('.git/refs/tags/bomb', 'w').write(oid.hex() + '\\n')
"""


async def test_no_forged_index_hides_a_changed_file(box, work):
    old = time.time() - 100
    os.utime(work / "file", (old, old))
    git(work, "status")
    children = box.mounts()
    await inside(box, children, "echo 'planted' > file; echo x > decoy; git add decoy")
    for user, group in ((os.getuid(), os.getgid()), (0, 0)):
        # the files were changed long before the index, so git would believe it
        await asyncio.sleep(0)
        await box.python(
            children,
            f"import time\nwhile time.time() - {time.time()} < 1.2: time.sleep(0.1)\n{FORGE}",
            str(user),
            str(group),
        )
        await inside(box, children, f"git update-index --add --cacheinfo 100644,$(git rev-parse HEAD:file),by{user}")
        await box.python(children, FORGE, str(user), str(group))
        await children.sandbox.exchange_repositories()
        assert " M file\n" in git(work, "status", "-s")
    await children.aclose()
    assert " M file\n" in git(work, "status", "-s")
    assert "+planted" in git(work, "diff", "file")


async def test_what_was_not_changed_need_not_be_read_again_outside(box, work):
    """What git outside remembers of a file stays."""
    git(work, "status")
    before = git(work, "ls-files", "--debug", "file")
    await inside(box, box.mounts(), "touch file; git status; echo x > new; git add new")
    assert git(work, "ls-files", "--debug", "file") == before
    assert "mtime: 0:0" in git(work, "ls-files", "--debug", "new")


async def test_no_line_of_a_log_leads_to_what_is_broken(box, work):
    broken = (
        "body='author a <a@b> 1 +0000\\ncommitter a <a@b> 1 +0000\\n\\nx\\n';"
        't=$(printf "tree $(printf 1%.0s {1..40})\\n$body" | git hash-object -t commit -w --stdin --literally);'
        'c=$(printf "tree $(git rev-parse HEAD^{tree})\\nparent $(printf 2%.0s {1..40})\\n$body"'
        " | git hash-object -t commit -w --stdin --literally); h=$(git rev-parse HEAD);"
        "for f in .git/logs/HEAD .git/logs/refs/heads/main; do for p in $h:$t $t:$c $c:$h;"
        "do printf '%s %s a <a@b> 1 +0000\\tx\\n' ${p%:*} ${p#*:} >> $f; done; done;"
    )
    children = box.mounts()
    await inside(
        box,
        children,
        f"{WRITE}{broken} git commit -q --allow-empty -m two; git commit -q --amend --allow-empty -m three",
    )
    await children.aclose()
    assert git(work, "log", "--format=%s") == "three\none\n"
    assert "two" in git(work, "log", "-g", "--format=%s"), "what was amended can be found again"
    git(work, "fsck", "--strict")
    git(work, "gc", "-q")
    git(work, "repack", "-adq")
    git(work, "prune")


async def test_objects_that_nothing_leads_to_stay_inside(box, work):
    children = box.mounts()
    said = await box.bash(children, "echo unused | git hash-object -w --stdin; echo staged > s; git add s")
    await children.sandbox.exchange_repositories()
    unused = said.stdout.text.strip()
    assert subprocess.run(["git", "cat-file", "-e", unused], cwd=work, capture_output=True).returncode
    assert git(work, "diff", "--cached", "--name-only") == "s\n"
    await inside(box, children, f"git update-index --add --cacheinfo 100644,{unused},used")
    assert git(work, "cat-file", "-p", unused) == "unused\n"


async def test_a_branch_that_is_moved_and_then_removed_with_its_log_is_kept(box, work):
    git(work, "checkout", "-qb", "topic")
    git(work, "commit", "-q", "--allow-empty", "-m", "valuable")
    git(work, "checkout", "-q", "main")
    git(work, "branch", "feature", "topic")
    git(work, "branch", "-D", "topic")
    git(work, "reflog", "expire", "--expire=all", "HEAD")
    valuable = git(work, "rev-parse", "feature").strip()
    children = box.mounts()
    await inside(box, children, "git update-ref refs/heads/feature main")
    (note,) = await inside(box, children, "git branch -D feature")
    assert "kept as refs/from-sandbox/heads/feature" in note
    await children.aclose()
    git(work, "gc", "-q", "--prune=now")
    assert git(work, "log", "-1", "--format=%s", valuable) == "valuable\n"


@pytest.mark.parametrize("where", ["refs/from-sandbox", "refs/from-sandbox/stash", "refs/from-sandbox/heads"])
async def test_nothing_inside_takes_the_place_of_what_is_kept(box, work, where):
    (work / "file").write_text("stashed\n")
    git(work, "stash", "-q")
    stash = git(work, "rev-parse", "stash").strip()
    children = box.mounts()
    assert f"{where} stays inside" in "".join(await inside(box, children, f"git update-ref {where} HEAD"))
    await inside(box, children, "git stash clear")
    await inside(
        box, children, "git for-each-ref --format='delete %(refname)' refs/from-sandbox | git update-ref --stdin"
    )
    await children.aclose()
    git(work, "gc", "-q", "--prune=now")
    assert git(work, "rev-parse", "refs/from-sandbox/stash").strip() == stash


async def test_a_stash_that_cannot_be_kept_is_not_removed(box, work):
    (work / "file").write_text("stashed\n")
    git(work, "stash", "-q")
    (work / ".git/refs/from-sandbox").write_text(git(work, "rev-parse", "HEAD"))
    children = box.mounts()
    await box.bash(children, "git stash clear")
    await children.aclose()
    assert "WIP on main" in git(work, "stash", "list")


async def test_a_push_goes_where_it_went_before(box, work):
    for name in ("private", "public"):
        git(work, "init", "-q", "--bare", str(box.folder / f"{name}.git"))
        git(work, "remote", "add", name, str(box.folder / f"{name}.git"))
    git(work, "push", "-qu", "private", "main")
    git(work, "push", "-q", "public", "main")
    git(work, "fetch", "-q", "--all")
    children = box.mounts()
    await inside(box, children, f"{WRITE} git config branch.main.remote public; git commit -q --allow-empty -m secret")
    await inside(box, children, "git config --unset branch.main.remote; git config branch.main.pushRemote public")
    await inside(box, children, "git config --remove-section branch.main; git branch -q --track topic public/main")
    await children.aclose()
    git(work, "push", "-q")
    assert git(box.folder / "private.git", "log", "-1", "--format=%s", "main") == "secret\n"
    assert git(box.folder / "public.git", "log", "-1", "--format=%s", "main") == "one\n"
    assert git(work, "config", "branch.topic.remote") == "public\n", "a branch of its own may have one"


@pytest.mark.parametrize("script", [": > .git/info/exclude", "rm .git/info/exclude", "echo '#' > .git/info/exclude"])
async def test_what_the_owner_excludes_stays_excluded(box, work, script):
    (work / ".git/info/exclude").write_text(".env\n")
    (work / ".env").write_text("secret\n")
    children = box.mounts()
    await box.bash(children, f"{WRITE} {script}; git commit -q --allow-empty -m x")
    await children.aclose()
    assert git(work, "status", "-s") == ""


async def test_an_owner_who_stages_meanwhile_undoes_nothing_with_the_next_commit(box, work):
    children = box.mounts()
    await inside(box, children, "true")
    script = (
        f"{WRITE} echo m > model; git add model; git commit -qm model; touch done; until [ -e go ]; do sleep 0.01; done"
    )
    job = asyncio.ensure_future(box.bash(children, script))
    await until((work / "done").exists)
    (work / "owner").write_text("o")
    git(work, "add", "owner")
    (work / "go").touch()
    await job
    await children.sandbox.exchange_repositories()
    notes = "".join(children.sandbox.take_notes())
    assert "refs/heads/main stays as it is outside, since index does; what it was inside is kept as" in notes
    git(work, "commit", "-qm", "owner")
    assert git(work, "show", "--name-status", "--format=%s") == "owner\n\nA\towner\n"
    assert git(work, "log", "-1", "--format=%s", "refs/from-sandbox/heads/main") == "model\n"
    assert (work / "model").read_text() == "m\n"
    await inside(box, children, "git add model; git commit -qm again")
    assert git(work, "log", "--format=%s") == "again\nowner\none\n"


async def test_locks_that_are_left_inside_are_not_waited_for(box, work, monkeypatch):
    children = box.mounts()
    locks = "s=$(git rev-parse HEAD); for n in $(seq 60); do l=.git/logs/refs/heads/z$n;"
    locks += "printf '%s %s a <b> 1 +0000\\tx\\nbad\\n' $s $s > $l; : > $l.lock; done"
    await inside(box, children, f"mkdir -p .git/logs/refs/heads; {locks}")
    waited = []
    monkeypatch.setattr(git_files, "time", SimpleNamespace(**vars(time) | {"sleep": waited.append}))
    notes = await inside(box, children, f"{WRITE} git commit -q --allow-empty -m two")
    await children.aclose()
    assert not waited
    assert len(notes) <= 21
    assert git(work, "log", "-1", "--format=%s") == "two\n"


def test_an_index_of_a_few_bytes_does_not_unpack_to_much():
    names = [b"a" * length for length in range(1, 30_000)]
    stat = bytes(24) + (0o100644).to_bytes(4, "big") + bytes(12)
    bomb = GitIndex(4, 20, [IndexEntry(name, 0, 0, b"i" * 20, stat) for name in names[:5000]]).written()
    with pytest.raises(ValueError, match="longer than"):
        read_index(bomb, 20, lambda _: None)


async def test_a_pack_that_unpacks_to_far_more_than_it_is_ends_in_time(box, work):
    """All of it would be sixteen terabytes, in one object of sixteen gigabytes after the other."""
    children = box.mounts()
    assert (await box.python(children, PACK, "1000", "1000")).exit_code == 0
    await box.bash(children, f"{WRITE} git commit -q --allow-empty -m two")
    await children.sandbox.exchange_repositories()
    assert any("refs/tags/bomb stays inside" in note for note in children.sandbox.take_notes())
    assert git(work, "log", "-1", "--format=%s") == "two\n"
    assert not list((work / ".git/objects/pack").glob("*.pack"))


async def test_notes_can_be_sent_whatever_a_branch_is_called(box, work):
    children = box.mounts()
    await box.bash(children, "printf '1%.0s' {1..40} > .git/refs/heads/$(printf '\\377\\376')")
    await children.sandbox.exchange_repositories()
    (note,) = children.sandbox.take_notes()
    assert "stays inside" in note.encode().decode()
