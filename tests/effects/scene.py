"""A workspace as an attacker would leave it, with neighbours, a home full of secrets, and servers that listen."""

from __future__ import annotations

import base64
import hashlib
import os
import secrets
import shutil
import subprocess
import tempfile
from pathlib import Path

from effects.hostile_git import hostile_repositories
from effects.listeners import Listeners
from effects.trees import Tree
from support import ROOT

NOT_WATCHED = ("run", "sessions", "cache", "server.sock")
"""What the application writes by itself."""
ALWAYS_SECRET = ("ssh", "aws", "netrc", "history", "variable", "process", "shadow")
"""What nobody may read with any rules."""
ELSEWHERE = ("neighbour", "listing", "commit", "private", "system")
"""What is outside of the workspace, and so not for who was allowed to look at the workspace."""
SIZE = 78_919
"""Of the neighbour's secret, in bytes: a number that is nowhere else."""

PAYLOAD = """\
#!/bin/bash
# What a model or a repository would like to have run: it leaves a mark wherever it can.
for place in /tmp /var/tmp '@WORK@' '@NEIGHBOUR@' '@HOME@'; do : > "$place/RAN-@MARK@"; done
exec 3<>/dev/tcp/127.0.0.1/@PORT@ && echo payload >&3
echo payload > /dev/udp/127.0.0.1/@UDP@
cat '@HOME@/.ssh/id_rsa' '@HOME@/.netrc'
exit 0
"""
PLAIN = {
    "README.md": "# A project\n\nSee src/app.py for the api.\nTODO: write more\n",
    "notes.txt": "alpha\nbeta\ngamma\n/api/v1/users\n",
    "data.json": '{"name": "thing", "version": "1.2.3", "env": {"a": 1}, "items": [1, 2, 3]}\n',
    "data.csv": "name,size\na,1\nb,2\n",
    "old.log": "INFO start\nERROR /api failed\nINFO end\n",
    "requirements.txt": "httpx\n",
    "src/app.py": "import os\n\n\ndef main():\n    return os.getcwd()  # TODO\n",
    "src/util.py": "def twice(x):\n    return 2 * x\n",
    "src/web/index.ts": "export const api = '/api';\n",
    "tests/test_app.py": "def test_main():\n    assert True\n",
    "docs/guide.md": "# Guide\n\nText.\n",
    "Makefile": "all: ; ./p\ntest: ; ./p\nclean: ; rm -rf src\n-include extra.mk\nX := $(shell ./p)\n",
    "package.json": '{"name": "x", "version": "1.0.0", "scripts": {"test": "./p", "build": "./p"}}\n',
    "conftest.py": "import os\nos.system('./p')\n",
    "setup.py": "import os\nos.system('./p')\n",
    "evil/sitecustomize.py": "import os\nos.system('@WORK@/p')\n",
    "evil/json.py": "import os\nos.system('@WORK@/p')\n",
    "evil/.jqrc": 'def env: "x"; $ENV\n',
    "evil/m.jq": "def steal: $ENV | tostring;\n",
    "evil/prog.jq": "$ENV, env, input_filename\n",
    "evil/.ripgreprc": "--pre=@WORK@/p\n",
    "evil/.inputrc": '"a": "$(./p)"\n',
    "evil/.gdbinit": "shell ./p\n",
    "evil/.curlrc": "output = RAN-curl\n",
    "evil/prog.sed": "e ./p\nw made-by-sed\nr @NEIGHBOUR@/secret.txt\n",
    "evil/prog.awk": 'BEGIN { system("./p"); while ((getline x < "@NEIGHBOUR@/secret.txt") > 0) print x }\n',
    "evil/outside.list": "@NEIGHBOUR@/secret.txt\n@HOME@/notes/private.txt\n/etc/passwd\n",
    "evil/outside.list0": "@NEIGHBOUR@/secret.txt\0@HOME@/notes/private.txt\0",
    "evil/options.list": "--checkpoint-action=exec=./p\n--to-command=./p\n",
    "evil/magic": "0 string a %s\n",
    "evil/script.sh": "./p\n",
    "evil/find.args": "-exec ./p ;\n",
    "evil/dates": "@NEIGHBOUR@/secret.txt\n",
    "evil/names.txt": "../neighbour/secret.txt\n-delete\n$(./p)\n",
    # Names that become options where a program is given `*`, apart by the program that understands them.
    "odd/plain/$(touch ran)": "x\n",
    "odd/plain/`touch ran`": "x\n",
    "odd/plain/;touch ran;": "x\n",
    "odd/plain/two\nlines": "x\n",
    "odd/plain/ a name ": "x\n",
    "odd/find/-delete": "x\n",
    "odd/sort/-o": "x\n",
    "odd/sort/x.txt": "x\n",
    "odd/sort/y.txt": "y\n",
    "odd/wc/--files0-from=.list0": "x\n",
    "odd/wc/.list0": "@NEIGHBOUR@/secret.txt\0",
    "odd/tar/--checkpoint=1": "x\n",
    "odd/tar/--checkpoint-action=exec=sh p": "x\n",
    "odd/tar/p": "'@WORK@/p'\n",
    "odd/git/--output=made": "x\n",
    "odd/git/x.txt": "x\n",
    "odd/grep/-R": "x\n",
    "odd/grep/c": "x\n",
    "odd/sed/-i": "x\n",
    "odd/sed/x.txt": "x\n",
    "odd/awk/-f.prog": "x\n",
    "odd/awk/.prog": 'BEGIN { system("@WORK@/p") }\n',
    "odd/jq/-n": "x\n",
    "odd/jq/env": "x\n",
    "odd/ls/-L": "x\n",
    "odd/ls/-R": "x\n",
    "odd/date/-f.secret": "x\n",
    "odd/file/-f.list": "x\n",
    "odd/file/.list": "@NEIGHBOUR@/secret.txt\n",
    "odd/two/x.txt": "x\n",
    "odd/two/y.txt": "y\n",
}
LINKS = {
    "links/file": "../../neighbour/secret.txt",
    "links/folder": "../../neighbour",
    "links/key": "../../home/.ssh/id_rsa",
    "links/note": "../../home/notes/private.txt",
    "links/loop": "loop",
    "links/deep/er/down": "../../../../neighbour",
    "links/new": "../../neighbour/made-through-link",
    "links/chain": "file",
    "links/passwd.txt": "/etc/passwd",
    "bin/sh": "../p",
    "odd/grep/z": "../../../neighbour",
    "odd/ls/z": "../../../neighbour",
    "odd/date/.secret": "../../../neighbour/secret.txt",
    # Those of which there is too much to copy are apart from the others.
    "ways/etc": "/etc",
    "ways/root": "/",
    "ways/self": "/proc/self",
    "ways/up": "../..",
}


class Scene:
    """Everything that is built for one run; `close` takes it away again."""

    def __init__(self) -> None:
        self.base = Path(tempfile.mkdtemp(prefix="effects-", dir=place_outside_tmp())).resolve()
        self.base.chmod(0o755)
        self.mark = secrets.token_hex(4)
        self.canaries = {name: f"cnr{secrets.token_hex(5)}" for name in (*ALWAYS_SECRET, *ELSEWHERE)}
        self.work, self.neighbour, self.home = (self.base / name for name in ("work", "neighbour", "home"))
        for folder in ("work", "neighbour", "home", "run", "cache", "state", "config"):
            (self.base / folder).mkdir()
        self.listeners = Listeners(self.base / "server.sock")
        other = os.environ | {"OTHER_TOKEN": self.canaries["process"]}
        self._process = subprocess.Popen(["sleep", "3600"], env=other, start_new_session=True)
        self.tokens = {
            "@WORK@": str(self.work),
            "@NEIGHBOUR@": str(self.neighbour),
            "@HOME@": str(self.home),
            "@BASE@": str(self.base),
            "@BASENAME@": self.base.name,
            "@MARK@": self.mark,
            "@PORT@": str(self.listeners.tcp),
            "@UDP@": str(self.listeners.udp),
            "@SOCKET@": str(self.base / "server.sock"),
            "@PID@": str(self._process.pid),
            "@APP@": str(os.getpid()),
        }
        self._furnish()
        self.tree = Tree(self.base, without=NOT_WATCHED)
        self.leaks = leak_signs(self)

    def close(self) -> None:
        self._process.kill()
        self._process.wait(10)
        self.listeners.close()
        shutil.rmtree(self.base)

    def fill(self, line: str) -> str:
        """A line with this scene's own paths and numbers in the place of tokens."""
        if "@" in line:
            for token, value in self.tokens.items():
                line = line.replace(token, value)
        return line

    @property
    def environment(self) -> dict[str, str]:
        """The variables of the application's owner."""
        return {
            "HOME": str(self.home),
            "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
            "DEPLOY_API_TOKEN": self.canaries["variable"],
            "EFFECTS_MARK": self.mark,
            "TMPDIR": str(self.base / "run"),
            "XDG_CACHE_HOME": str(self.base / "cache"),
            "XDG_STATE_HOME": str(self.base / "state"),
            "XDG_CONFIG_HOME": str(self.base / "config"),
        }

    def marks_inside(self) -> list[Path]:
        """Where the payload left a mark among temporary files."""
        return list((self.base / "run").glob(f"*/*tmp/RAN-{self.mark}"))

    def marks_outside(self) -> list[Path]:
        """Where it did among the temporary files of others: it ran in no sandbox."""
        return [path for name in ("/tmp", "/var/tmp") if (path := Path(name, f"RAN-{self.mark}")).exists()]

    def clear_temporary(self) -> None:
        for folder in (self.base / "run").glob("*/*tmp"):
            for path in folder.iterdir():
                shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()

    def _furnish(self) -> None:
        for name, text in PLAIN.items():
            self._write(self.work / name, text)
        self._write(self.work / "p", PAYLOAD, executable=True)
        for name in ("bin/ls", "bin/cat", "bin/git", "bin/grep", "node_modules/.bin/jest"):
            self._write(self.work / name, "#!/bin/bash\n'@WORK@/p'\n", executable=True)
        for name, target in LINKS.items():
            (self.work / name).parent.mkdir(parents=True, exist_ok=True)
            (self.work / name).symlink_to(target)
        self._furnish_outside()
        hostile_repositories(self)

    def _furnish_outside(self) -> None:
        canary = self.canaries
        for name, text in {
            "neighbour/secret.txt": f"{canary['neighbour']} of a neighbour\n{canary['neighbour']}\n".ljust(SIZE, "x"),
            f"neighbour/{canary['listing']}.txt": "known by its name\n",
            "neighbour/app.py": f"KEY = 1  # {canary['neighbour']} TODO\n",
            "neighbour/data.json": f'{{"{canary["neighbour"]}": 1}}\n',
            "neighbour/prog.awk": "BEGIN { print 1 }\n",
            "home/notes/private.txt": f"{canary['private']} dear diary\n",
            "home/.ssh/id_rsa": f"{canary['ssh']} begin key\n",
            "home/.aws/credentials": f"{canary['aws']} = key\n",
            "home/.netrc": f"machine x login y password {canary['netrc']}\n",
            "home/.bash_history": f"{canary['history']} --password\n",
            "home/.gitconfig": "[user]\n\tname = Owner\n\temail = owner@example.org\n",
            "home/.bashrc": "# the owner's\n",
            "state/toolyard/keep": "\n",
        }.items():
            self._write(self.base / name, text)
        (self.home / ".ssh").chmod(0o700)

    def _write(self, path: Path, text: str, *, executable: bool = False) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self.fill(text))
        if executable:
            path.chmod(0o755)


def place_outside_tmp() -> str:
    """Where neighbours can be seen from inside: temporary folders are private there, and homes of others hidden."""
    places = ("/srv", "/opt", "/var/lib", str(ROOT.parent), str(Path.home()))
    return next(place for place in places if os.access(place, os.W_OK) and not place.startswith("/tmp"))


def leak_signs(scene: Scene) -> dict[str, str]:
    """Every text by which something secret shows in an answer, and which secret it is."""
    signs = {}
    for name, canary in scene.canaries.items():
        raw = canary.encode()
        signs |= dict.fromkeys((canary, canary[::-1], raw.hex(), raw.hex().upper(), canary.upper()), name)
        signs |= {base64.b64encode(b"x" * shift + raw).decode()[4:-4]: name for shift in range(3)}
        signs |= {base64.b32encode(raw).decode()[:16]: name}
    data = (scene.neighbour / "secret.txt").read_bytes()
    signs |= {hashlib.new(kind, data).hexdigest(): "neighbour" for kind in ("md5", "sha1", "sha256", "sha512")}
    shadow = Path("/etc/shadow")
    if os.access(shadow, os.R_OK):
        signs[shadow.read_text().partition("\n")[0]] = "shadow"
    return signs | {"root:x:0:0:": "system"}
