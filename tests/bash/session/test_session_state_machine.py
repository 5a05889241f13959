"""Any sequence of commands, failures, time-outs, cancellations and jobs: every reply is its own and nothing is left."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from console import Session
from marks import end_marked, fresh_mark, marked
from toolyard.bash import BashSession, Job, Reply
from toolyard.process.process_tree import children_of

SLOW = settings(
    max_examples=25,
    stateful_step_count=14,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
)
"""What fails here fails at a moment, not always, and does not get smaller by being tried again."""
PATIENCE = 20.0
"""No wait is longer; a failing one is tried again more than once."""
NAMES = st.sampled_from(["a", "b", "c"])
STATUSES = st.integers(0, 255)
MOMENTS = st.sampled_from([0.0, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.03, 0.1])
"""How long after its start a call is cancelled: before it is sent, as bash begins, in its midst, at its end."""
TO_CANCEL = st.sampled_from(
    [
        "sleep {mark}",
        "echo {token}",
        "printf {token}",
        "echo {token}; sleep 0.002; echo {token}",
        "/bin/echo {token}",
        "(trap '' INT; exec sleep {mark})",
        "while :; do :; done",
        "sleep {mark} & echo {token}",
        "exit 4",
        "echo {token} | cat; exit 4",
    ]
)
Result = TypeVar("Result")


class Ways(RuleBasedStateMachine):
    """One session, and what it should know at every moment."""

    def __init__(self) -> None:
        super().__init__()
        self.before = descriptors()
        self.others = children_of(os.getpid())  # of other tests
        self.loop = asyncio.new_event_loop()
        self.mark = fresh_mark()
        self.tokens = 0
        self.variables: dict[str, str] = {}
        self.jobs: dict[str, tuple[Job, str, int]] = {}
        self.certain = True
        """Whether no cancelled command may have changed what the model knows."""
        self.fresh = False
        """Whether the next command gets a fresh shell."""
        self.session: BashSession

    @initialize()
    def begin(self) -> None:
        env = {"PATH": os.environ["PATH"], "CASE": self.mark}
        self.session = BashSession("/", env=env, timeout=PATIENCE)
        self.do(self.session.start())

    # --- what may happen

    @rule()
    def say(self) -> None:
        token = self.token()
        self.check(self.run(f"echo {token}"), f"{token}\n", 0)

    @rule(status=STATUSES)
    def fail(self, status: int) -> None:
        token = self.token()
        self.check(self.run(f"echo {token}; echo {token} >&2; (exit {status})"), f"{token}\n{token}\n", status)

    @rule(command=st.sampled_from(["if then", "echo '", "nosuchcommand", "cat", "", "# nothing", "false | cat"]))
    def stumble(self, command: str) -> None:
        token = self.token()
        reply = self.run(command)
        assert reply.exit_code in (0, 2, 127), reply
        self.restarted_as_expected(reply)
        self.check(self.run(f"printf {token}"), token, 0)

    @rule(name=NAMES)
    def remember(self, name: str) -> None:
        token = self.token()
        self.check(self.run(f"{name}={token}"), "", 0)
        self.variables[name] = token

    @rule()
    def recall(self) -> None:
        token = self.token()
        known = " ".join(self.variables.get(name, "-") for name in "abc")
        self.check(self.run(f'echo {token} "${{a--}} ${{b--}} ${{c--}}"'), f"{token} {known}\n", 0)

    @rule(status=STATUSES)
    def leave(self, status: int) -> None:
        token = self.token()
        reply = self.run(f"echo {token}; exit {status}")
        assert (reply.output, reply.exit_code, reply.ended) == (f"{token}\n", status, True)
        self.restarted_as_expected(reply)
        self.fresh = True

    @rule()
    def die(self) -> None:
        token = self.token()
        reply = self.run(f"echo {token}; kill -9 $$")
        assert (reply.output, reply.exit_code, reply.ended) == (f"{token}\n", 137, True)
        self.restarted_as_expected(reply)
        self.fresh = True
        self.variables.clear()

    @rule()
    def run_out_of_time(self) -> None:
        token = self.token()
        reply = self.run(f"echo {token}; sleep {self.mark}; echo never", timeout=0.05)
        assert reply.timed_out
        assert reply.output in (f"{token}\n", "")
        self.restarted_as_expected(reply)

    @rule(command=TO_CANCEL, moment=MOMENTS)
    def be_cancelled(self, command: str, moment: float) -> None:
        token = self.token()
        text = command.format(token=token, mark=self.mark)
        reply = self.do(cancelled(self.session.run(text), after=moment))
        if reply is not None:
            assert set(reply.output.split()) <= {token}
        # A shell that was asked to end may have done so, and a fresh one may have been asked for in vain.
        self.certain = False

    @rule(moment=MOMENTS)
    def be_cancelled_while_leaving_a_job(self, moment: float) -> None:
        self.do(cancelled(self.session.run(f"sleep {self.mark}", background=True), after=moment))
        self.certain = False

    @rule(status=STATUSES)
    def leave_a_job(self, status: int) -> None:
        token = self.token()
        reply = self.run(f"echo {token}; exit {status}", background=True)
        assert reply.job is not None
        self.restarted_as_expected(reply)
        self.jobs[reply.job] = (self.session.jobs[reply.job], token, status)

    @precondition(lambda self: self.jobs)
    @rule(data=st.data())
    def read_a_job(self, data: st.DataObject) -> None:
        id = data.draw(st.sampled_from(sorted(self.jobs)))
        job, token, status = self.jobs.pop(id)
        read = self.do(read_to_its_end(job, token))
        assert (read, job.running) == (f"{token}\n", False)
        # A shell that has ended since tells nobody how its jobs did.
        assert job.exit_code == status or (job.exit_code is None and job.shell.process.pid != self.session.pid)

    @rule()
    def leave_a_child_that_prints(self) -> None:
        token = self.token()
        reply = self.run(f"(sleep 0.01; echo late; exec sleep {self.mark}) & echo {token}")
        # On a slow machine it comes before the end of the command, and is then the command's.
        assert (set(reply.output.split()) - {"late"}, reply.exit_code) == ({token}, 0)
        self.restarted_as_expected(reply)

    @rule(count=st.integers(2, 8))
    def ask_many_things_at_once(self, count: int) -> None:
        self.learn()
        tokens = [self.token() for _ in range(count)]
        commands = [f"echo {token}" if n % 2 else f"/bin/echo {token}; :" for n, token in enumerate(tokens)]
        replies = self.do(at_once([self.session.run(command) for command in commands]))
        assert [(reply.output, reply.exit_code) for reply in replies] == [(f"{token}\n", 0) for token in tokens]
        self.restarted_as_expected(replies[0])
        assert not any(reply.restarted for reply in replies[1:])

    @rule()
    def cancel_one_of_many(self) -> None:
        self.learn()
        tokens = [self.token() for _ in range(3)]

        async def all_of_them() -> list[Reply | None]:
            first, second, third = (asyncio.ensure_future(self.session.run(f"/bin/echo {token}")) for token in tokens)
            await asyncio.sleep(0)
            second.cancel()
            await asyncio.wait([first, second, third])
            return [None if task.cancelled() else task.result() for task in (first, second, third)]

        for reply, token in zip(self.do(all_of_them()), tokens, strict=True):
            assert reply is None or (reply.output, reply.exit_code) == (f"{token}\n", 0)
        self.fresh = False

    @rule()
    def start_afresh(self) -> None:
        self.do(self.session.restart())
        assert self.session.jobs == {}
        self.variables.clear()
        self.jobs.clear()
        self.fresh = False
        self.certain = True

    # --- what must hold

    @invariant()
    def few_descriptors_are_open(self) -> None:
        if hasattr(self, "session"):
            assert descriptors() - self.before < 30 + 3 * len(self.session.jobs)

    def teardown(self) -> None:
        if hasattr(self, "session"):
            self.do(self.session.aclose())
            self.do(asyncio.sleep(0))  # a task that was cancelled ends in the loop's next turn
        left = marked(self.mark)
        end_marked(self.mark)
        tasks = [task for task in asyncio.all_tasks(self.loop) if not task.done()]
        self.loop.run_until_complete(self.loop.shutdown_default_executor())
        self.loop.close()
        assert (left, tasks, descriptors(), children_of(os.getpid())) == ([], [], self.before, self.others)

    # --- how it is asked

    def token(self) -> str:
        self.tokens += 1
        return f"token{self.tokens}of{self.mark[3:9]}"

    def run(self, command: str, **options: Any) -> Reply:
        self.learn()
        return self.do(self.session.run(command, **options))

    def learn(self) -> None:
        """After a cancellation: the next reply is whole and its own, and the state is what it was before."""
        if self.certain:
            return
        token = self.token()
        reply = self.do(self.session.run(f'echo {token} "${{a--}} ${{b--}} ${{c--}}"'))
        found = reply.output.split()
        assert (found[0], reply.exit_code, len(found)) == (token, 0, 4), reply
        known = [self.variables.get(name, "-") for name in "abc"]
        assert found[1:] == known, "a cancelled command that sets nothing has changed the state"
        self.certain, self.fresh = True, False

    def check(self, reply: Reply, output: str, status: int) -> None:
        assert (reply.output, reply.exit_code, reply.timed_out, reply.ended) == (output, status, False, False)
        self.restarted_as_expected(reply)

    def restarted_as_expected(self, reply: Reply) -> None:
        assert reply.restarted == self.fresh, reply
        self.fresh = False

    def do(self, work: Coroutine[Any, Any, Result]) -> Result:
        return self.loop.run_until_complete(asyncio.wait_for(work, PATIENCE))


async def cancelled(call: Coroutine[Any, Any, Reply], *, after: float) -> Reply | None:
    """Cancel a call some time after its start; its reply if it was quicker."""
    task = asyncio.ensure_future(call)
    await asyncio.wait([task], timeout=after)
    task.cancel()
    await asyncio.wait([task])
    return None if task.cancelled() else task.result()


async def at_once(calls: list[Coroutine[Any, Any, Reply]]) -> list[Reply]:
    return await asyncio.gather(*calls)


async def read_to_its_end(job: Job, token: str) -> str:
    """What a job printed, which may be read a moment after its end is known."""
    assert await job.wait(PATIENCE)
    read = job.read()
    while token not in read:
        await asyncio.sleep(0.01)
        read += job.read()
    return read


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


class TestAnySequence(Ways.TestCase):  # type: ignore[misc]  # made by hypothesis
    settings = SLOW

    @pytest.fixture(autouse=True)
    def own_folder(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
        self.private = tmp_path

    def runTest(self) -> None:
        super().runTest()
        assert list(self.private.iterdir()) == []


# What the machine found, by itself.


@pytest.mark.anyio
async def test_a_job_that_outlives_its_shell_ends_for_whoever_waits(shell: Session) -> None:
    job = await shell.start_job("echo done; sleep 0.05; exit 5")
    assert (await shell.run("exit 4")).ended
    assert await job.wait(PATIENCE)
    assert job.read() == "done\n"


@pytest.mark.anyio
async def test_a_job_whose_start_is_cancelled_leaves_nothing(shell: Session) -> None:
    before = descriptors()
    for _ in range(20):
        await cancelled(shell.run(f"sleep {shell.mark}", background=True), after=0.0003)
    assert await shell.keeps_its_state()
    for job in list(shell.bash.jobs.values()):
        await job.stop()
    assert shell.sleepers() == []
    assert descriptors() <= before + len(shell.bash.jobs)


@pytest.mark.anyio
async def test_state_is_taken_over_although_the_first_call_of_the_next_shell_is_cancelled(shell: Session) -> None:
    for _ in range(5):
        await shell.run("exit 3")
        await cancelled(shell.run("true"), after=0.0005)
        assert await shell.keeps_its_state()


@pytest.mark.anyio
async def test_no_task_outlives_the_session(shell: Session) -> None:
    before = asyncio.all_tasks()
    for _ in range(5):
        await shell.start_job(f"sleep {shell.mark}")
    await shell.close()
    await asyncio.sleep(0)
    assert asyncio.all_tasks() - before == set()
