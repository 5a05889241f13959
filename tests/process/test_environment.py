"""Which variables of the application reach a child."""

from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolyard.process.environment import (
    ParentEnvironment,
    child_environment,
    looks_like_credential,
    process_secrets,
)

CREDENTIALS = [
    "AWS_SECRET_ACCESS_KEY", "AWS_ACCESS_KEY_ID", "AWS_SESSION_TOKEN", "AZURE_CLIENT_SECRET", "GOOGLE_API_KEY",
    "GOOGLE_APPLICATION_CREDENTIALS", "GITHUB_TOKEN", "GH_TOKEN", "GITLAB_TOKEN", "CI_JOB_TOKEN",
    "AZURE_DEVOPS_EXT_PAT", "OPENAI_API_KEY", "ANTHROPIC_API_KEY", "OPENAI_APIKEY", "HF_TOKEN",
    "HUGGING_FACE_HUB_TOKEN", "NPM_TOKEN", "NPM_CONFIG__AUTH", "NODE_AUTH_TOKEN", "npm_config__authToken",
    "TWINE_PASSWORD", "CARGO_REGISTRY_TOKEN", "PGPASSWORD", "MYSQL_PWD", "REDIS_PASSWORD", "DB_PASS", "DBPASS",
    "SSHPASS", "TF_VAR_db_password", "spring.datasource.password", "MY_PASSWORD", "dbPassword", "DbPassword",
    "userPasswd", "OpenAIKey", "openaiApiKey", "PGPassword", "masterKey", "MasterKey", "MY_SECRETKEY",
    "GITHUB_TOKEN2", "PASSWORD1", "API_KEY_2", "APIKEY3", "DJANGO_SECRET_KEY", "SECRET_KEY_BASE", "JWT_SECRET",
    "SIGNING_KEY", "SENTRY_DSN", "SLACK_WEBHOOK_URL", "SESSION_COOKIE", "TWILIO_AUTH_TOKEN", "DOCKER_AUTH_CONFIG",
    "VAULT_TOKEN", "KUBE_TOKEN", "SSH_AUTH_SOCK", "SSH_PRIVATE_KEY", "GPG_PASSPHRASE", "HTTP_AUTHORIZATION",
    "BEARER_TOKEN", "AUTH0_CLIENT_SECRET", "MAX_TOKEN", "MAX_BOT_TOKEN", "LIMIT_TOKEN", "MAX_BOT_TOKENS",
    "MAX_SECRET_TOKENS", "PW", "LDAP_BIND_PW", "MNEMONIC", "WALLET_MNEMONIC", "PRIVATE",
]  # fmt: skip
HARMLESS = [
    "COREPACK_INTEGRITY_KEYS",
    "PATH", "HOME", "LANG", "LC_ALL", "LANGUAGE", "TERM", "SHELL", "USER", "LOGNAME", "TZ", "EDITOR", "PAGER",
    "TMPDIR", "PWD", "OLDPWD", "SHLVL", "HOSTNAME", "COLUMNS", "MANPATH", "PYTHONPATH", "CLASSPATH",
    "LD_LIBRARY_PATH", "GOPATH", "NODE_PATH", "PKG_CONFIG_PATH", "INFOPATH", "XDG_SESSION_ID", "XDG_RUNTIME_DIR",
    "DBUS_SESSION_BUS_ADDRESS", "DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "SSH_CONNECTION", "SSH_TTY",
    "SSH_ASKPASS", "GIT_ASKPASS", "GIT_AUTHOR_NAME", "GIT_COMMITTER_EMAIL", "AUTHOR", "AUTHORS", "AUTH0_DOMAIN",
    "KEYBOARD_LAYOUT", "KEYMAP", "MONKEY", "TURKEY", "HOTKEY", "DONKEY_KONG", "COMPASS", "BYPASS", "PASSENGER_ROOT",
    "PATTERN", "PATCH", "DISPATCH", "SECRETARY", "TOKENIZERS_PARALLELISM", "TOKENIZER", "MAX_TOKENS",
    "OPENAI_MAX_OUTPUT_TOKENS", "TOKEN_LIMIT", "NUM_TOKENS", "TOKENS_PER_SECOND", "VIRTUAL_ENV", "CONDA_PREFIX",
    "CI", "GITHUB_ACTIONS", "GITHUB_REPOSITORY", "HTTP_PROXY", "NO_PROXY", "JAVA_HOME", "DEBIAN_FRONTEND",
    "PW_TEST_HTML_REPORT_OPEN", "PYTHONHASHSEED", "SESSION_MANAGER", "XDG_SESSION_TYPE", "DESKTOP_SESSION", "SEED",
]  # fmt: skip
CHANGES_BASH = [
    "BASH_ENV", "ENV", "SHELLOPTS", "BASHOPTS", "PROMPT_COMMAND", "PS4", "CDPATH", "GLOBIGNORE", "POSIXLY_CORRECT",
    "BASH_COMPAT", "TMOUT", "FUNCNEST", "EXECIGNORE", "BASH_XTRACEFD", "BASH_FUNC_ls%%", "BASH_FUNC_x%%",
]  # fmt: skip
OURS = ["AGENT_TOOL_PYTHON", "AGENT_TOOL_TIMED_OUT", "AGENT_TOOL_TIMEOUT_SECONDS", "AGENT_TOOL_CONFIG_URL"]
LONG = "0123456789abcdefABCDEF0123456789"
SECRET_VALUES = {
    "an OpenAI key": f"sk-proj-{LONG}",
    "a Stripe key": f"sk_live_{LONG}",
    "a GitHub token": f"ghp_{LONG}",
    "a fine-grained GitHub token": f"github_pat_{LONG}",
    "a GitHub token in an address": f"https://ghp_{LONG}@github.com/a/b",
    "a GitLab token": f"glpat-{LONG}",
    "a Slack token": f"xoxb-{LONG}",
    "an AWS key id": "AKIAIOSFODNN7EXAMPLE",
    "a temporary AWS key id": "ASIAIOSFODNN7EXAMPLE",
    "a Google key": f"AIza{LONG}",
    "a Hugging Face token": f"hf_{LONG}",
    "an npm token": f"npm_{LONG}",
    "a PyPI token": f"pypi-{LONG}",
    "a JSON web token": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln",
    "a token in a header": f"Authorization: Bearer gho_{LONG}",
    "a token in an option": f"--token=glpat-{LONG}",
    "a private key": "-----BEGIN OPENSSH PRIVATE KEY-----\nb3Bl\n",
    "a PGP key": "-----BEGIN PGP PRIVATE KEY BLOCK-----\n",
    "a database with a password": "postgres://app:hunter2@db/app",
    "a database with a password only": "redis://:hunter2@cache:6379/0",
    "a proxy with a password": "HTTP://me:hunter2@proxy:3128",
    "one of several addresses": "amqp://a/b,amqp://me:hunter2@b/c",
    "a connection string": "Server=db;User Id=app;Password=hunter2;",
    "a libpq string": "host=db user=app password=hunter2",
    "an Azure connection": "DefaultEndpointsProtocol=https;AccountName=a;AccountKey=aGk=;EndpointSuffix=x",
}
PLAIN_VALUES = {
    "empty": "",
    "a path": "/usr/bin:/home/me/bin",
    "an address": "https://example.org:8443/a?b=c@d",
    "an address with a name": "ssh://git@github.com/a/b",
    "a mail address": "Me <me@example.org>",
    "Slovak": "sk-SK",
    "a continent": "ASIA-EAST1",
    "a script's name": "npm_lifecycle",
    "a sentence": "sk-learn is a library, hf_hub another",
    "a public key": "-----BEGIN PUBLIC KEY-----",
    "a ssh key": "ssh-ed25519 AAAAC3Nz me@host",
    "colours": "rs=0:di=01;34:ln=01;36:mh=00",
    "a version": "eyJ.1",
    "a hash": LONG,
}


@pytest.mark.parametrize("name", CREDENTIALS)
def test_a_variable_named_like_a_credential_is_withheld(name):
    assert child_environment({name: "harmless"}) == {}
    assert looks_like_credential(name)


@pytest.mark.parametrize("name", HARMLESS)
def test_a_variable_named_otherwise_passes(name):
    assert child_environment({name: "harmless"}) == {name: "harmless"}
    assert not looks_like_credential(name, "harmless")


@pytest.mark.parametrize("value", SECRET_VALUES.values(), ids=SECRET_VALUES)
def test_a_value_that_looks_like_a_credential_is_withheld_under_any_name(value):
    assert child_environment({"SETTING": value}) == {}
    assert looks_like_credential("SETTING", value)


@pytest.mark.parametrize("value", PLAIN_VALUES.values(), ids=PLAIN_VALUES)
def test_any_other_value_passes(value):
    assert child_environment({"SETTING": value}) == {"SETTING": value}


@pytest.mark.parametrize("name", CHANGES_BASH)
def test_what_would_change_bash_is_withheld_though_it_is_no_secret(name):
    assert child_environment({name: "x"}) == {}
    assert not looks_like_credential(name)


@pytest.mark.parametrize("name", OURS)
def test_what_only_we_may_set_is_withheld(name):
    assert child_environment({name: "x"}) == {}


@pytest.mark.parametrize("name", ["GITHUB_TOKEN", "BASH_ENV", "dbPassword", "DATABASE_URL"])
def test_a_variable_that_policy_names_passes(name):
    parent = {name: "postgres://app:hunter2@db/app", "OTHER_TOKEN": "x"}
    assert child_environment(parent, passed=[name]) == {name: "postgres://app:hunter2@db/app"}


@pytest.mark.parametrize("piece", ["a.", "a-", "a:", "a://", "eyJa.", "password ", "sk-./", " ", "é", "-----BEGIN "])
def test_a_value_as_long_as_the_system_allows_is_looked_through_at_once(piece):
    """The search is linear: were it not, this would take hours."""
    assert child_environment({"SETTING": piece * (100_000 // len(piece))})


def test_policy_names_are_exact():
    assert child_environment({"GITHUB_TOKEN": "x", "github_token": "y"}, passed=["github_token"]) == {
        "github_token": "y"
    }


@given(parent=st.dictionaries(st.text(max_size=30), st.text(max_size=30), max_size=5))
def test_whatever_passes_is_unchanged_and_looks_like_no_credential(parent):
    passing = child_environment(parent)
    assert passing.items() <= parent.items()
    assert not any(looks_like_credential(name, value) for name, value in passing.items())


def test_the_secrets_a_process_knows_are_those_long_enough_to_recognise():
    parent = {
        "GITHUB_TOKEN": "12345678",
        "SHORT_TOKEN": "1234567",
        "URL": "redis://:hunter2@cache",
        "HOME": "/home/me/me",
    }
    assert process_secrets(parent) == {"GITHUB_TOKEN": "12345678", "URL": "redis://:hunter2@cache"}


def test_the_application_s_own_variables_are_seen_as_they_are_now(monkeypatch):
    monkeypatch.setenv("DESK_COLOUR", "red")
    monkeypatch.setenv("DESK_TOKEN", "secret")
    environment = ParentEnvironment()
    first = environment.with_extra({})
    assert (first[b"DESK_COLOUR"], b"DESK_TOKEN" in first) == (b"red", False)
    monkeypatch.setenv("DESK_COLOUR", "green")
    assert environment.with_extra({})[b"DESK_COLOUR"] == b"green"
    monkeypatch.delenv("DESK_COLOUR")
    assert b"DESK_COLOUR" not in environment.with_extra({})
    assert first[b"DESK_COLOUR"] == b"red"


def test_extra_variables_win_and_stay_with_their_call(monkeypatch):
    monkeypatch.setenv("DESK_COLOUR", "red")
    environment = ParentEnvironment()
    given = environment.with_extra(
        {"DESK_COLOUR": "blue", "GITHUB_TOKEN": "given on purpose", "RAW": os.fsdecode(b"\xff")}
    )
    assert (given[b"DESK_COLOUR"], given[b"GITHUB_TOKEN"], given[b"RAW"]) == (b"blue", b"given on purpose", b"\xff")
    assert environment.with_extra({})[b"DESK_COLOUR"] == b"red"


def test_policy_names_hold_for_the_application_s_own_variables(monkeypatch):
    monkeypatch.setenv("DESK_TOKEN", "secret")
    assert ParentEnvironment(passed=["DESK_TOKEN"]).with_extra({})[b"DESK_TOKEN"] == b"secret"


def test_a_variable_that_is_not_text_passes_byte_for_byte(monkeypatch):
    monkeypatch.setitem(os.environb, b"DESK_RAW", b"\xff\xfe")
    assert ParentEnvironment().with_extra({})[b"DESK_RAW"] == b"\xff\xfe"


@pytest.mark.anyio
async def test_a_child_sees_no_credential_of_the_application(desk, monkeypatch):
    monkeypatch.setenv("DESK_TOKEN", "hunter2hunter2")
    monkeypatch.setenv("DESK_COLOUR", "red")
    outcome = await desk.run("env", env=ParentEnvironment().with_extra({"EXTRA": "given"}))
    assert "DESK_COLOUR=red\n" in outcome.stdout.text
    assert "EXTRA=given\n" in outcome.stdout.text
    assert "hunter2" not in outcome.stdout.text


WORDS = "legal winner thank year wave sausage worth useful legal winner thank yellow"


@pytest.mark.parametrize(
    ("name", "value", "is_secret"),
    [
        ("SESSION", "v18-leakme", True),
        ("SIGNING_SEED", "9f86d081884c7d65", True),
        ("WALLET_SEED", WORDS, True),
        ("X_HEADER", "Bearer abcdef123456", True),
        ("LOGIN_PIN", "a1b2c3d4e5", True),
        ("RANDOM_SEED", "1234567890", False),
        ("PYTEST_SEED", "42", False),
        ("DESKTOP_SESSION", "ubuntu-xorg", False),
        ("DESKTOP_SESSION", "/usr/share/xsessions/plasma5", False),
        ("XDG_SESSION_ID", "c2", False),
        ("TERM_SESSION_ID", "w0t0p0:5CC5A2D1-0000", False),
        ("SESSION_MANAGER", "local/host:@/tmp/.ICE-unix/1234,unix/host:/tmp/.ICE-unix/1234", False),
        ("DBUS_SESSION_BUS_ADDRESS", "unix:path=/run/user/1000/bus,guid=0123456789abcdef", False),
    ],
)
def test_a_name_that_may_be_a_secrets_is_judged_with_its_value(name, value, is_secret):
    assert looks_like_credential(name, value) is is_secret
    assert (name in child_environment({name: value})) is not is_secret
