"""Where people and their programs keep secrets, and which files are run or read by themselves."""

from __future__ import annotations

import os
import stat
from collections import deque
from typing import TYPE_CHECKING

import msgspec

from toolyard.files.inside import is_inside
from toolyard.process.sandbox.backends.owner_map import can_map_owners

if TYPE_CHECKING:
    from collections.abc import Iterable

HISTORIES = (
    *(".bash_history", ".zsh_history", ".local/share/fish/fish_history", ".python_history", ".psql_history"),
    *(".mysql_history", ".sqlite_history", ".node_repl_history", ".rediscli_history", ".viminfo", ".lesshst"),
)  # fmt: skip
HOME_SECRETS = (
    # keys
    *(".ssh", ".gnupg", ".age", ".password-store", ".pki", ".local/share/keyrings", ".local/share/kwalletd"),
    *(".config/op", ".config/sops", ".config/keepassxc", ".config/Bitwarden", ".config/1Password", ".vault-token"),
    *(".config/Bitwarden CLI", ".config/Bitwarden_CLI", ".config/Yubico", ".step/secrets", ".step/authorities"),
    *(".tsh", ".config/teleport", ".config/doppler", ".doppler", ".infisical", ".config/syncthing", ".rnd"),
    *(".local/state/syncthing", ".android/debug.keystore", ".android/adbkey", ".appstoreconnect", ".chef", ".cf"),
    # clouds and clusters
    *(".aws", ".azure", ".config/gcloud", ".boto", ".s3cfg", ".kube", ".config/doctl", ".config/hcloud", ".config/scw"),
    *(".config/heroku", ".fly", ".config/netlify", ".local/share/com.vercel.cli", ".terraform.d", ".terraformrc"),
    *(".databricks.cfg", ".snowflake", ".snowsql", ".config/rclone", ".rclone.conf", ".config/wrangler", ".wrangler"),
    *(".databrickscfg", ".pulumi/credentials.json", ".cloudflared", ".config/cloudflared", ".config/.wrangler"),
    *(".config/stripe", ".config/ngrok", ".config/ngrok2", ".ngrok2", ".heroku", ".railway", ".supabase", ".expo"),
    *(".minikube/profiles", ".minikube/machines", ".minikube/certs", ".vagrant.d/insecure_private_key", ".config/act"),
    *(".config/containers", ".docker/config.json", ".config/helm", ".config/linode-cli", ".oci", ".bluemix"),
    # forges and registries
    *(".netrc", "_netrc", ".git-credentials", ".config/git/credentials", ".config/gh", ".config/hub"),
    *(".config/glab-cli", ".config/tea", ".config/fj", ".subversion/auth", ".config/jira", ".config/linear"),
    *(".sbt/credentials", ".sbt/.credentials", ".ivy2/.credentials", ".ivy2/credentials", ".lein/credentials.clj"),
    *(".bundle/config", ".credentials", ".bunfig.toml", ".config/NuGet", ".lein/credentials.clj.gpg"),
    *(".npmrc", ".yarnrc", ".yarnrc.yml", ".pypirc", ".config/pip", ".pip", ".config/pypoetry/auth.toml"),
    *(".cargo/credentials", ".cargo/credentials.toml", ".gem/credentials", ".composer/auth.json", ".nuget/NuGet"),
    *(".config/composer/auth.json", ".m2/settings.xml", ".m2/settings-security.xml", ".gradle/gradle.properties"),
    *(".hex", ".config/configstore", ".condarc", ".config/uv", ".local/share/uv/credentials"),
    # databases
    *(".config/pgadmin", ".pgadmin", ".config/pgcli", ".config/mycli", ".dbt/profiles.yml", ".config/redis"),
    *(".pgpass", ".my.cnf", ".mylogin.cnf", ".config/mongodb", ".dbeaver4", ".local/share/DBeaverData"),
    # models and agents
    *(".anthropic", ".claude", ".claude.json", ".codex", ".gemini", ".config/openai", ".config/github-copilot"),
    *(".cache/huggingface/token", ".huggingface", ".kaggle", ".config/io.datasette.llm", ".config/goose"),
    *(".ollama/id_ed25519", ".openai", ".config/anthropic", ".config/llm", ".config/opencode", ".wakatime.cfg"),
    *(".config/Code/User/globalStorage/state.vscdb", ".config/Code/User/globalStorage/state.vscdb.backup"),
    *(".config/Cursor/User/globalStorage/state.vscdb", ".config/Cursor/User/globalStorage/state.vscdb.backup"),
    *(".config/VSCodium/User/globalStorage/state.vscdb", ".config/Code/Cookies", ".config/Cursor/Cookies"),
    *(".local/share/jupyter/runtime", ".jupyter/jupyter_server_config.json"),
    *(".config/toolyard", ".local/share/opencode", ".aider.conf.yml", ".continue", ".cursor", ".config/wandb"),
    # people: browsers, mail, messages, money, what was typed
    *(".mozilla", ".thunderbird", ".config/google-chrome", ".config/chromium", ".config/BraveSoftware"),
    *(".config/microsoft-edge", ".config/vivaldi", ".config/opera", ".librewolf", ".zen", ".cache/mozilla"),
    *(".cache/google-chrome", ".cache/chromium", ".config/Slack", ".config/discord", ".config/Signal"),
    *(".local/share/TelegramDesktop", ".config/Element", ".bitcoin", ".ethereum", ".electrum", ".config/solana"),
    *(".authinfo", ".authinfo.gpg", ".netrc.gpg", ".msmtprc", ".config/msmtp", ".mbsyncrc", ".fetchmailrc", ".muttrc"),
    *(".config/neomutt", ".config/mutt", ".weechat", ".config/weechat", ".irssi", ".config/hexchat"),
    *(".config/slack-term", ".slack", ".smbcredentials", ".cifs", ".vnc/passwd", ".config/rdp", ".config/remmina"),
    *(".config/filezilla",),
    *(".Xauthority", ".ICEauthority", ".electrum-ltc", ".monero", ".config/Exodus", ".config/Ledger Live"),
    *HISTORIES,
    *(".var/app", "snap"),
)  # fmt: skip
"""Below a home: hidden in every sandbox."""
STOPPED_AT = (
    *(".npmrc", ".yarnrc", ".yarnrc.yml", ".cargo/credentials", ".cargo/credentials.toml", ".pypirc"),
    *(".bundle/config", ".bunfig.toml"),
)  # fmt: skip
"""Those of them that package managers read before anything else, and stop at if they may not: inside they are empty."""
OFTEN_REPLACED = frozenset({*HISTORIES, ".claude.json"})
"""Those of them that programs replace all the time: no reason to build the sandbox anew each time."""

STARTUP_FILES = (
    *(".bashrc", ".bash_logout", ".bash_aliases", ".profile", ".zshrc", ".zshenv", ".zprofile", ".zlogin", ".zlogout"),
    *(".gitconfig", ".tmux.conf", ".xprofile", ".xsessionrc"),
)  # fmt: skip
"""Below a home: what runs when its owner next logs in or starts a program. An empty one has no effect."""
STARTUP_FOLDERS = (
    *(".ssh", ".local/bin", ".local/lib", ".local/share/systemd", ".config/fish", ".config/git", ".config/systemd"),
    *(".config/autostart", ".config/environment.d", ".config/pip", ".config/uv", ".config/nvim", ".vim", ".emacs.d"),
    ".pip",
)  # fmt: skip
"""Folders whose content runs by itself, or in the place of something else; an empty one has no effect."""
STARTUP_IF_THERE = (
    *(".bash_login", ".inputrc", ".vimrc", ".emacs", ".xinitrc", ".xsession", ".kshrc", ".pam_environment"),
    *(".pythonrc.py", "bin"),
)  # fmt: skip
"""The same, but an empty one would have an effect, or be seen by people, so what comes to be is moved away."""


def startup_files(home: str) -> dict[str, bytes]:
    """The start-up files of a home, each with the content that has no effect."""
    # Bash reads the first of three, and so an empty first one would keep it from the others.
    first = next((name for name in (".bash_login", ".profile") if os.path.exists(os.path.join(home, name))), None)
    instead = b"" if first is None else f". ~/{first}\n".encode()
    return {**dict.fromkeys(STARTUP_FILES, b""), ".bash_profile": instead}


def is_watched(path: str, home: str) -> bool:
    """Whether a sandbox is built anew when a secret is replaced."""
    return path.removeprefix(home.rstrip("/") + "/") not in OFTEN_REPLACED


ROOTS_ALONE = ("/etc", "/opt", "/srv", "/var")
"""Folders where root keeps what nobody else may read."""
OF_THE_KERNEL = ("/sys/kernel",)
"""The same, but what is in them belongs to the kernel and cannot be given another owner; how deep to look is known."""
MOST = 1000
"""Each takes a mount and three words for bubblewrap, which takes nine thousand words."""
MOST_LOOKED_AT = 100_000
"""Entries of folders; it takes about a second. What is not looked at is hidden as a whole."""


class FilesOfRoot(msgspec.Struct, frozen=True, kw_only=True):
    """What root alone may read, as far as it can be found by looking."""

    hidden: list[str]
    """All that has to be hidden."""
    whole: list[str]
    """The folders among it that hold too much to be looked through, or to be hidden one by one."""


def system_secrets() -> list[str]:
    """What root alone may read: in a sandbox it is an ordinary user, but without its capabilities still the owner.

    Where the owner is another one inside (see `backends/owner_map`) nothing has to be looked for but the kernel's.
    """
    found = private_entries(OF_THE_KERNEL)
    return found if can_map_owners(ROOTS_ALONE) else [*found, *files_of_root().hidden]


def private_entries(folders: Iterable[str]) -> list[str]:
    """The entries of some folders that root alone may read."""
    return [entry.path for folder in folders for entry in list_folder(folder) if is_private(entry)]


def files_of_root() -> FilesOfRoot:
    """Look through the folders where root may keep something, in each of those in them in turn.

    So one with very many files takes no others their turn. A folder that is closed to others is hidden as a whole.
    """
    found: list[str] = []
    left = MOST_LOOKED_AT
    trees: deque[deque[str]] = deque(deque([top]) for top in ROOTS_ALONE)
    tops = set(ROOTS_ALONE)
    while trees and left > 0:
        tree = trees.popleft()
        folder = tree.popleft()
        entries = list_folder(folder)
        left -= len(entries) + 1
        for entry in entries:
            facts = facts_of(entry)
            if facts and is_roots_alone(facts):
                found.append(entry.path)
            elif facts and stat.S_ISDIR(facts.st_mode):
                if folder in tops:
                    trees.append(deque([entry.path]))
                else:
                    tree.append(entry.path)
        if tree:
            trees.append(tree)
    unseen = [folder for tree in trees for folder in tree]
    hidden = with_fewer([*found, *unseen], MOST)
    return FilesOfRoot(hidden=hidden, whole=sorted(set(hidden).difference(found)))


def with_fewer(paths: Iterable[str], most: int) -> list[str]:
    """The same paths, or fewer: where there are too many, folders stand for all that is in them.

    That begins in the tree with most of them, at its deepest ones, so that others stay as they are.
    """
    trees: dict[str, set[str]] = {}
    for path in paths:
        root = next((root for root in ROOTS_ALONE if is_inside(path, root)), os.sep)
        tree = os.path.join(root, os.path.relpath(path, root).split(os.sep)[0])
        trees.setdefault(tree, set()).add(path)
    while sum(map(len, trees.values())) > most:
        top = max(trees, key=lambda one: len(trees[one]))
        if trees[top] == {top}:
            break
        deepest = max(path.count(os.sep) for path in trees[top])
        trees[top] = {path if path.count(os.sep) < deepest else os.path.dirname(path) for path in trees[top]}
    return sorted(set().union(*trees.values()))


def is_private(entry: os.DirEntry[str]) -> bool:
    facts = facts_of(entry)
    return facts is not None and is_roots_alone(facts)


def list_folder(folder: str) -> list[os.DirEntry[str]]:
    try:
        return list(os.scandir(folder))
    except OSError:
        return []


def facts_of(entry: os.DirEntry[str]) -> os.stat_result | None:
    try:
        return entry.stat(follow_symlinks=False)
    except OSError:
        return None


def is_roots_alone(facts: os.stat_result) -> bool:
    """Whether root may read something as its owner, or by its group, that the rest of the world may not."""
    mode = facts.st_mode
    roots = (facts.st_uid == 0 and mode & 0o400) or (facts.st_gid == 0 and mode & 0o040)
    if stat.S_ISDIR(mode):
        return bool(roots and mode & 0o005 != 0o005)
    return bool(roots and stat.S_ISREG(mode) and not mode & 0o004 and facts.st_size)
