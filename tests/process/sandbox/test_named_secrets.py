"""Secrets of a home are found by their names where no list has them, and what work needs stays in sight."""

from __future__ import annotations

import pytest

from toolyard.process.sandbox.named_secrets import MOST_FOUND, MOST_IN_A_FOLDER, named_secrets

HIDDEN = [
    ".mytool-token",
    ".newcloud/credentials",
    ".newcloud/credentials.json",
    ".newcloud/access_token",
    ".newcloud/token.cache",
    ".newcloud/secrets",
    ".config/newcloud/api-token",
    ".config/newcloud/client_secret.json",
    ".config/newcloud/refreshToken.json".replace("refreshToken", "refresh_token"),
    ".local/share/newcloud/creds.db",
    ".newcloud/id_ed25519",
    ".newcloud/server.key",
    ".newcloud/client.pem",
    ".config/newcloud/wallet.kdbx",
]
SEEN = [
    ".bashrc",
    ".gitconfig",
    ".profile",
    ".config/git/config",
    ".config/git/ignore",
    ".config/fish/config.fish",
    ".cargo/config.toml",
    ".cargo/registry/token.rs",
    ".rustup/settings.toml",
    ".pyenv/versions/secrets.py",
    ".newcloud/tokenizer.json",
    ".newcloud/secrets.py",
    ".newcloud/token_bucket.js",
    ".newcloud/id_ed25519.pub",
    ".newcloud/password-strength.md",
    ".config/newcloud/settings.json",
    ".config/newcloud/keys.json",
    "project/secret.key",
    "secrets/token",
]


@pytest.fixture
def home(tmp_path):
    for name in (*HIDDEN, *SEEN):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
        path.chmod(0o600)
    return tmp_path


def test_what_is_called_a_secret_is_found_and_nothing_else(home):
    assert named_secrets(str(home)) == sorted(str(home / name) for name in HIDDEN)


def test_a_certificate_that_all_may_read_is_no_secret(home):
    for name in (".newcloud/client.pem", ".newcloud/server.key"):
        (home / name).chmod(0o644)
        assert str(home / name) not in named_secrets(str(home))


def test_the_look_is_bounded(home):
    large = home / ".newcloud"
    for number in range(MOST_IN_A_FOLDER):
        (large / f"token-{number}").touch()
    assert not [path for path in named_secrets(str(home)) if path.startswith(str(large))]
    for number in range(MOST_FOUND):
        (home / f".tool{number}").mkdir()
        (home / f".tool{number}" / "token").touch()
    assert len(named_secrets(str(home))) == MOST_FOUND


def test_a_home_that_is_not_there_has_none(tmp_path):
    assert named_secrets(str(tmp_path / "none")) == []
