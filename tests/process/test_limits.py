"""Limits hold in the child and in all that it starts, nobody below can raise them, and the keeper keeps its own."""

from __future__ import annotations

import asyncio
import resource
from pathlib import Path

import pytest

from toolyard.process.limits import Limits

pytestmark = pytest.mark.anyio

MIB = 1 << 20
OPEN_MANY = "import os\nwhile True: os.dup(0)"
DROP_ROOT = """
import os, resource, sys
if os.getuid() == 0:
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
for name in sys.argv[2:]:
    which = getattr(resource, name)
    try: resource.setrlimit(which, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    except (ValueError, OSError): pass
    print(*resource.getrlimit(which))
"""
FORK_AT_ONCE = """
import os, resource
if os.fork() == 0:
    print(*resource.getrlimit(resource.RLIMIT_NOFILE), *resource.getrlimit(resource.RLIMIT_AS), flush=True)
    os._exit(0)
os.wait()
"""


@pytest.mark.parametrize(("limits", "numbers"), [
    (Limits(),                                       {}),
    (Limits(cpu_seconds=3),                          {resource.RLIMIT_CPU: 3}),
    (Limits(memory_bytes=1, file_bytes=2, open_files=3),
     {resource.RLIMIT_AS: 1, resource.RLIMIT_FSIZE: 2, resource.RLIMIT_NOFILE: 3}),
    (Limits(file_bytes=0),                           {resource.RLIMIT_FSIZE: 0}),
    (Limits(file_bytes=-1),                          {resource.RLIMIT_FSIZE: 0}),
    (Limits(file_bytes=10**30, cpu_seconds=10**30),  {resource.RLIMIT_FSIZE: 1 << 62, resource.RLIMIT_CPU: 10**9}),
])  # fmt: skip
async def test_limits_are_numbers_that_the_kernel_takes(limits, numbers):
    assert dict(limits.as_rlimits()) == numbers


async def test_a_child_without_limits_has_those_of_the_application(desk):
    outcome = await desk.run("cat /proc/self/limits")
    own = Path("/proc/self/limits").read_text()
    assert without_mark(outcome.stdout.text) == without_mark(own)


async def test_processor_time_runs_out_with_a_signal(desk):
    outcome = await desk.run("while :; do :; done", limits=Limits(cpu_seconds=1))
    assert (outcome.exit_code, outcome.timed_out) == (128 + 24, False)


async def test_who_ignores_that_signal_is_killed(desk):
    outcome = await desk.run("trap '' XCPU; while :; do :; done", limits=Limits(cpu_seconds=1))
    assert outcome.exit_code == 137


async def test_processor_time_runs_out_for_a_grandchild_too(desk):
    script = "(bash -c 'while :; do :; done'; echo $?) 2>/dev/null"
    outcome = await desk.run(script, limits=Limits(cpu_seconds=1))
    assert outcome.stdout.text == f"{128 + 24}\n"


@pytest.mark.parametrize("script", ["head -c 9999 /dev/zero > big", "bash -c '(head -c 9999 /dev/zero) > big'"])
async def test_a_file_grows_no_larger_than_its_limit(desk, script):
    outcome = await desk.run(f"({script}) 2>/dev/null; echo $?", limits=Limits(file_bytes=5000))
    assert (desk.cwd / "big").stat().st_size == 5000
    assert outcome.stdout.text != "0\n"


async def test_a_limit_on_files_does_not_limit_the_output(desk):
    outcome = await desk.run("head -c 100000 /dev/zero", limits=Limits(file_bytes=10), stdin=b"x" * 1000)
    assert (outcome.exit_code, outcome.stdout.total_bytes) == (0, 100_000)


async def test_a_child_opens_no_more_files_than_its_limit(desk):
    request = desk.python_request(OPEN_MANY, limits=Limits(open_files=40))
    outcome = await desk.run_request(request)
    assert "Too many open files" in outcome.stderr.text
    assert (await desk.run("bash -c 'ulimit -Sn; ulimit -Hn'", limits=Limits(open_files=40))).stdout.text == "40\n40\n"


@pytest.mark.parametrize("source", [
    "bytearray(300 << 20)",
    "import subprocess, sys; sys.exit(subprocess.call([sys.executable, '-c', 'bytearray(300 << 20)']))",
])  # fmt: skip
async def test_a_child_gets_no_more_memory_than_its_limit(desk, source):
    roomy = await desk.run_request(desk.python_request(source, limits=Limits(memory_bytes=800 * MIB)))
    tight = await desk.run_request(desk.python_request(source, limits=Limits(memory_bytes=200 * MIB)))
    assert (roomy.exit_code, tight.exit_code) == (0, 1)
    assert "MemoryError" in tight.stderr.text


@pytest.mark.parametrize("megabytes", [64, 16, 1])
async def test_however_little_memory_a_child_gets_the_next_call_is_well(desk, megabytes):
    await desk.run("echo hello", limits=Limits(memory_bytes=megabytes * MIB))
    keeper = desk.children.keeper_pid
    assert (await desk.run("echo hello")).stdout.text == "hello\n"
    assert desk.children.keeper_pid == keeper


async def test_sixty_four_megabytes_are_enough_for_a_shell(desk):
    assert (await desk.run("echo $(echo hello)", limits=Limits(memory_bytes=64 * MIB))).stdout.text == "hello\n"


async def test_nobody_without_rights_can_raise_a_limit(desk):
    limits = Limits(cpu_seconds=5, memory_bytes=900 * MIB, file_bytes=12345, open_files=67)
    names = ["RLIMIT_CPU", "RLIMIT_AS", "RLIMIT_FSIZE", "RLIMIT_NOFILE"]
    outcome = await desk.run_request(desk.python_request(DROP_ROOT, *names, limits=limits))
    memory = 900 * MIB
    assert outcome.stdout.text.splitlines() == ["5 6", f"{memory} {memory}", "12345 12345", "67 67"], outcome.stderr


async def test_a_child_that_forks_at_once_passes_all_of_its_limits_on(desk):
    limits = Limits(memory_bytes=900 * MIB, open_files=67)
    request = desk.python_request(FORK_AT_ONCE, limits=limits)
    outcomes = await asyncio.gather(*(desk.run_request(request) for _ in range(20)))
    assert {outcome.stdout.text for outcome in outcomes} == {f"67 67 {900 * MIB} {900 * MIB}\n"}


async def test_calls_at_once_each_have_their_own_limits_and_the_keeper_has_none_of_them(desk):
    await desk.run("true")
    listing = Path(f"/proc/{desk.children.keeper_pid}/limits")
    before = without_mark(listing.read_text())
    numbers = [*range(30, 60)]
    calls = (desk.run("ulimit -Sn; ulimit -Hn", limits=Limits(open_files=number)) for number in numbers)
    outcomes = await asyncio.gather(*calls)
    assert [outcome.stdout.text for outcome in outcomes] == [f"{number}\n{number}\n" for number in numbers]
    assert (await desk.run("ulimit -Sn")).stdout.text == f"{resource.getrlimit(resource.RLIMIT_NOFILE)[0]}\n"
    assert without_mark(listing.read_text()) == before


async def test_a_limit_beyond_all_measure_is_no_limit(desk):
    limits = Limits(cpu_seconds=10**30, memory_bytes=10**30, file_bytes=10**30, open_files=10**30)
    assert (await desk.run("echo hello", limits=limits)).stdout.text == "hello\n"


def without_mark(listing: str) -> list[str]:
    """A list of limits less the one by which the keeper knows its own."""
    return [line for line in listing.splitlines() if "realtime timeout" not in line]
