"""A workspace to judge lines in: ordinary files, a repository, and some things that lead astray."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

FILES = {
    "README.md": "# app\n\nreadme of the app\n",
    "package.json": '{"name": "app", "version": "1.0.0", "scripts": {"test": "true"}, "dependencies": {}}\n',
    "pyproject.toml": "[project]\nname = 'app'\n",
    "src/app.py": "import os\n\ndef main():\n    return os.name\n",
    "src/util.py": "def help_out():\n    return 1\n",
    "src/notes.txt": "notes\n",
    "tests/test_app.py": "def test_app():\n    pass\n",
    "docs/guide.md": "# guide\n",
    "docs/api/index.md": "# api\n",
}
GIT = ["git", "-c", "user.name=me", "-c", "user.email=me@example.org", "-c", "init.defaultBranch=main"]


def make_workspace(folder: Path) -> Path:
    """An ordinary workspace, beside a neighbour that is nobody's business."""
    where = folder / "workspace"
    for name, text in FILES.items():
        (where / name).parent.mkdir(parents=True, exist_ok=True)
        (where / name).write_text(text)
    (folder / "neighbour").mkdir()
    (folder / "neighbour" / "secret").write_text("secret\n")
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "first"]):
        subprocess.run([*GIT, *command], cwd=where, env=environment, check=True, timeout=60)
    return where


def lead_astray(where: Path) -> None:
    """Put links and names into a workspace that a pattern, a loop or a list would follow."""
    (where / "way").symlink_to("/etc")
    (where / "link.py").symlink_to("/etc/passwd")
    (where / "astray").mkdir()
    (where / "astray" / "key.py").symlink_to("../../neighbour/secret")
    (where / "options").mkdir()
    (where / "options" / "--compress-program=id").touch()
    (where / "options" / "-o").touch()
    (where / "options" / "plain").touch()
