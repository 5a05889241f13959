"""What every test may use."""

from __future__ import annotations

import faulthandler
import gc
import os
import signal
import ssl
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import httpcore2
import pytest

from console import Console, Session
from marks import end_marked, marked
from support import PATIENCE, CommandLine

TEARDOWN_PATIENCE = 100.0
USUAL_LIMIT = 120
"""Seconds; what has more says so."""
STANDARD_ERROR = pytest.StashKey[int]()
"""The one that leaves this process, whatever pytest captures."""


def pytest_configure(config: pytest.Config) -> None:
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGTERM):
        if signal.getsignal(number) is signal.SIG_IGN:
            # Somebody runs us in the background; our children would ignore these too, whatever they are.
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    with config.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled():
        config.stash[STANDARD_ERROR] = os.dup(2)
    take_time_for_examples()


def take_time_for_examples() -> None:
    """No example of a property has a deadline: on a loaded machine any may take long, and the first one imports."""
    from hypothesis import HealthCheck, settings

    settings.register_profile("unhurried", deadline=None, suppress_health_check=[HealthCheck.too_slow])
    settings.load_profile("unhurried")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let each worker begin with some of the long tests: one of them at the end is waited for by all the others.

    They are those with a time limit of their own that is above the usual. Workers are given blocks of the same size.
    """
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    long = [item for item in items if is_long(item)]
    short = [item for item in items if not is_long(item)]
    size = len(items) // workers
    items[:] = []
    for worker in range(workers):
        own = long[worker::workers]
        items += own
        taken = size - len(own) if worker < workers - 1 else len(short)
        items += short[:taken]
        del short[:taken]


def is_long(item: pytest.Item) -> bool:
    limit = item.get_closest_marker("timeout")
    return limit is not None and limit.args[0] > USUAL_LIMIT


def pytest_collection_finish() -> None:
    """What has been collected stays to the end: nobody need look for garbage in it again and again."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(trylast=True)
def pytest_exception_interact(node: pytest.Item) -> None:
    """Limit what follows a failure too: pytest stops its timers at one, and a teardown that hangs would do so for ever.

    The worker is ended then, and another takes its place.
    """
    error = node.config.stash[STANDARD_ERROR]
    if isinstance(node, pytest.Item):
        faulthandler.dump_traceback_later(TEARDOWN_PATIENCE, exit=True, file=error)
        # At once, for a run that is cut off has no summary.
        os.write(error, f"\n{node.nodeid} fails\n".encode())


@pytest.fixture(scope="session", autouse=True)
def authorities() -> Iterator[None]:
    """Whom this machine trusts is read once, not for every HTTP client: that takes longer than most that they do."""
    known: dict[object, ssl.SSLContext] = {}
    read = httpcore2.default_ssl_context

    def default_ssl_context(*, _trust_env: bool = True) -> ssl.SSLContext:
        key = (_trust_env, os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"))
        if key not in known:
            known[key] = read(_trust_env=_trust_env)
        return known[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(httpcore2, "default_ssl_context", default_ssl_context)
        yield


@pytest.fixture
def anyio_backend() -> str:
    """Async tests run on asyncio."""
    return "asyncio"


@pytest.fixture(autouse=True)
def own_folders(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test reads or writes the user's own cache, state or configuration, or works in the project itself."""
    home = tmp_path_factory.mktemp("home")
    monkeypatch.chdir(tmp_path_factory.mktemp("here"))
    for name in ("XDG_CACHE_HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(home / name.lower()))


@pytest.fixture
def toolyard(tmp_path: Path) -> CommandLine:
    """The command line of a new user."""
    return CommandLine(tmp_path)


@pytest.fixture
async def console(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Console]:
    """Sessions whose private folders are where we can look; whatever a test does, nothing of them may be left."""
    private = tmp_path / "private"
    private.mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(private))
    console = Console(tmp_path)
    yield console
    await console.close()
    if left := marked(console.mark):
        end_marked(console.mark)
    assert left == []
    assert list(private.iterdir()) == []


@pytest.fixture
async def shell(console: Console) -> Session:
    """A fresh session that has run `cd …; export KEEP=42`."""
    return await console.open_prepared()


@pytest.fixture(autouse=True)
def patient_with_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine an MCP server may need longer for its first answer than people are made to wait."""
    monkeypatch.setattr("toolyard.kinds.mcp.source.FIRST_ANSWER", PATIENCE)
