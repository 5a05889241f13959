"""A live bash as two tools: `bash` runs commands in it, `bash_job` looks after what was left running."""

from __future__ import annotations

import asyncio
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from toolyard.bash.session.command_text import why_not_runnable
from toolyard.core.reach import is_beyond
from toolyard.core.screen_text import readable
from toolyard.core.text import first_line, joined, one_line
from toolyard.core.tool import Hints, JsonInput, Plan, ToolResult, ToolSpec
from toolyard.errors import NoSandbox, ProcessError, ShellError
from toolyard.kinds.shell.idle_shells import IdleShells
from toolyard.kinds.shell.limits_text import with_limits
from toolyard.kinds.shell.reach_arguments import ASKS_REACH, REACH_PROPERTIES, wanted_reach
from toolyard.process.waiting import cancelled_with

if TYPE_CHECKING:
    from toolyard.bash.session.handover import CarriedState
    from toolyard.bash.session.jobs import Job
    from toolyard.bash.session.reply import Reply
    from toolyard.bash.session.session import BashSession
    from toolyard.core.reach import Reach
    from toolyard.core.tool import CallContext, JsonObject
    from toolyard.kinds.shell.reference import SessionOptions
    from toolyard.process.runner import Runner

NO_OUTPUT = "(no output)"
HELD_BACK = "[the end of what was printed is held back until more comes: it may be the beginning of a secret]"
WAIT = 30.0
FOREGROUND = "foreground"
"""The id of a command that waits for input in the session itself."""
BASH_SCHEMA: JsonObject = {
    "type": "object",
    "properties": {
        "command": {"type": "string", "description": "The command line or script for bash."},
        "restart": {"type": "boolean", "description": "Start a fresh shell: no state, no processes of the old one."},
        "timeout": {
            "type": "number",
            "exclusiveMinimum": 0,
            "description": "How many seconds the command may take, instead of the usual limit.",
        },
        "background": {
            "type": "boolean",
            "description": "Leave the command running and get a job id at once; see the tool bash_job.",
        },
        "interactive": {
            "type": "boolean",
            "description": "Let the command read what is typed with bash_job, instead of an empty input.",
        },
        **REACH_PROPERTIES,
    },
    "additionalProperties": False,
}
JOB_SCHEMA: JsonObject = {
    "type": "object",
    "properties": {
        "action": {
            "type": "string",
            "enum": ["list", "read", "wait", "write", "stop"],
            "description": "list all jobs; read what a job printed since the last time; wait for its end; write to its "
            "input; stop it.",
        },
        "id": {
            "type": "string",
            "description": f"The job; '{FOREGROUND}' is a command that waits for input. Without one, wait takes any.",
        },
        "text": {"type": "string", "description": "What to write; most programs read whole lines, so end with one."},
        "timeout": {
            "type": "number",
            "exclusiveMinimum": 0,
            "description": "How many seconds to wait at most: 30 for a job, the session's limit for a command.",
        },
    },
    "required": ["action"],
    "additionalProperties": False,
}


class LiveSessions:
    """The bash of each conversation, started by its first command; agents of one conversation have one each."""

    def __init__(self, runner: Runner, options: SessionOptions) -> None:
        self.options = options
        self.runner = runner
        self._bashes: dict[tuple[str, str], BashSession] = {}
        self._idle = IdleShells(options.idle_seconds)
        self._shown: dict[tuple[str, str], tuple[str, str, CarriedState | None]] = {}
        """What was shown of a session in the last question about it, and the call and the command that it was about."""

    def cwd(self, context: CallContext) -> Path:
        """Where the session of a call is; where it will begin, if it has not begun."""
        bash = self._bashes.get((context.session, context.agent))
        return path_of(bash.cwd) if bash else context.cwd

    async def show_state(self, context: CallContext, command: str) -> str:
        """What a command elsewhere would take along from its session, in words. It takes along what was shown."""
        key = (context.session, context.agent)
        state = await self._bashes[key].state() if key in self._bashes else None
        if state is None:
            return ""
        env = self.runner.environment.current()
        shown = state.shown_for(command, env)
        self._shown[key] = (context.call_id, command, shown)
        return shown.described(env)

    async def state_for(self, context: CallContext, command: str) -> CarriedState | None:
        """What a command elsewhere takes along: what was shown; where nobody was asked, nothing that programs get.

        A command that reaches further has neither the options nor the umask of the session then.
        """
        key = (context.session, context.agent)
        call, about, shown = self._shown.pop(key, ("", "", None))
        if (call, about) == (context.call_id, command):
            return shown
        state, env = await self._bashes[key].state(), self.runner.environment.current()
        keeps_options = not is_beyond(context.reach, context.usual_reach)
        return state.unseen(env, command, keeps_options=keeps_options) if state else None

    async def at_usual_reach(self, context: CallContext) -> BashSession:
        """The session of a call, moved to where the calls of its conversation run now."""
        bash = self.get(context)
        if bash.children is not (children := self.runner.children[context.usual_reach]):
            before = bash.children.sandbox if bash.children else None
            unseen = before is not None and before.reach == "look" and children.sandbox != before
            await bash.move(children, unseen=unseen)
        return bash

    def reach_of_job(self, context: CallContext, id: str) -> Reach | None:
        """How far a job reaches, or a command that waits; None when there is no such, or nothing to tell reaches by."""
        bash = self._bashes.get((context.session, context.agent))
        shell = bash.shell_of(None if id == FOREGROUND else id) if bash else None
        if shell is None or all(children.sandbox is None for children in self.runner.children.values()):
            return None
        return shell.sandbox.reach if shell.sandbox else "outside"

    def get(self, context: CallContext) -> BashSession:
        """The session of a call, which begins in the directory of its first."""
        key = (context.session, context.agent)
        if key not in self._bashes:
            # Only here: who lists tools, as many a client does at its start, needs no session.
            from toolyard.bash.session.session import BashSession

            options = self.options
            self._bashes[key] = BashSession(
                context.cwd,
                limits=self.runner.limits,
                tty=options.tty,
                timeout=options.timeout_seconds,
                output_limit=context.output_limit,
                spill_dir=context.spill_folder,
                max_jobs=options.max_jobs,
                on_timeout=options.on_timeout,
                children=self.runner.children[context.usual_reach],
                parent=self.runner.environment,
            )
        self._idle.used(self._bashes[key])
        return self._bashes[key]

    async def end(self, session: str | None = None) -> None:
        """End those of a conversation, or all, with everything that they started."""
        for key in [key for key in self._bashes if session is None or key[0] == session]:
            await self._idle.forget(bash := self._bashes.pop(key))
            await bash.aclose()


class BashTool:
    """Commands in the live session."""

    kind = "shell_session"
    confined = True
    asks_reach = ASKS_REACH
    spec = ToolSpec(
        name="bash",
        description="Run a command in a live bash session. Variables, functions, working directory and background jobs "
        "stay from call to call. Standard input is empty, and both output streams come back as one.",
        input=JsonInput(schema=BASH_SCHEMA),
        native={"anthropic": {"type": "bash_20250124", "name": "bash"}},
        hints=Hints(destructive=True, parallel=False),
    )

    def __init__(self, sessions: LiveSessions) -> None:
        self.spec = with_limits(self.spec, sessions.runner.policy)
        self._sessions = sessions

    def plan(self, arguments: JsonObject, context: CallContext) -> Plan | ToolResult:
        """The command, or that the session starts afresh, which comes first."""
        command = arguments.get("command")
        if not arguments.get("restart") and command is None:
            return ToolResult(text="Error: command is required", failure="invalid_arguments")
        if command is not None and (reason := why_not_runnable(command)):
            return ToolResult(text=f"Error: {reason}", failure="invalid_arguments")
        reach, why = wanted_reach(arguments)
        return Plan(
            reach=reach,
            why_reach=why,
            arguments=arguments,
            command=None if arguments.get("restart") else command,
            cwd=self._sessions.cwd(context),
            env_keys=self._sessions.runner.passed_names(),
        )

    async def preview(self, plan: Plan, context: CallContext) -> str:
        """The first line; where the command would run in a shell of its own, also what that takes along."""
        if plan.command is None:
            return "start the bash session afresh"
        line = first_line(plan.command)
        if context.reach == context.usual_reach:
            return line
        told = await self._sessions.show_state(context, plan.command)
        return f"{line} [{told}]" if told else line

    async def run(self, plan: Plan, context: CallContext) -> ToolResult:
        try:
            session = await self._sessions.at_usual_reach(context)
            if plan.command is None:
                await session.restart()
                return ToolResult(text="Bash session restarted")
            emit, is_away = context.emit, context.reach != context.usual_reach
            reply = await session.run(
                plan.command,
                timeout=plan.arguments.get("timeout"),
                on_output=(lambda text: emit("stdout", text)) if emit else None,
                interactive=bool(plan.arguments.get("interactive")),
                background=bool(plan.arguments.get("background")),
                redactor=context.redactor,
                within=self._sessions.runner.children[context.reach] if is_away else None,
                carrying=await self._sessions.state_for(context, plan.command) if is_away else None,
            )
        except asyncio.CancelledError as error:
            live = self._sessions.get(context)
            await live.settled()  # as with every other kind, nothing of it goes on
            raise cancelled_with(live.take_cancelled()) from error
        except NoSandbox:
            raise
        except (ShellError, ProcessError) as error:
            return ToolResult(text=f"Error: {error}", failure="crash")
        return as_result(reply, plan.arguments.get("timeout") or self._sessions.options.timeout_seconds)


class BashJobTool:
    """What was left running in the live session."""

    kind = "shell_session"
    confined = True
    spec = ToolSpec(
        name="bash_job",
        description="Look after commands that were left running in the bash session: list, read, wait, write, stop.",
        input=JsonInput(schema=JOB_SCHEMA),
        hints=Hints(parallel=False),
    )

    def __init__(self, sessions: LiveSessions) -> None:
        self._sessions = sessions

    def plan(self, arguments: JsonObject, context: CallContext) -> Plan | ToolResult:
        """What to do, if it has all that it needs."""
        action = arguments["action"]
        if action in ("read", "write", "stop") and "id" not in arguments:
            return ToolResult(text=f"Error: {action} needs the id of a job", failure="invalid_arguments")
        if action == "write" and "text" not in arguments:
            return ToolResult(text="Error: write needs a text", failure="invalid_arguments")
        return Plan(arguments=arguments, cwd=self._sessions.cwd(context), reach=self._reach(arguments, context))

    def _reach(self, arguments: JsonObject, context: CallContext) -> Reach | None:
        """What is written to a job does whatever the job can do."""
        return self._sessions.reach_of_job(context, arguments["id"]) if arguments["action"] == "write" else None

    async def preview(self, plan: Plan, context: CallContext) -> str:  # noqa: ARG002 - the interface
        text = plan.arguments.get("text") if plan.arguments["action"] == "write" else None
        words = [plan.arguments["action"], plan.arguments.get("id", ""), repr(text) if text is not None else ""]
        return " ".join(filter(None, words))

    async def run(self, plan: Plan, context: CallContext) -> ToolResult:
        session = self._sessions.get(context)
        arguments = plan.arguments
        reach = self._reach(arguments, context)
        if reach and is_beyond(reach, context.reach):
            return ToolResult(text=f"Error: the job reaches '{reach}', and this call may not", failure="denied")
        try:
            if arguments.get("id") == FOREGROUND:
                return await self._in_foreground(session, arguments)
            return await self._with_jobs(session, arguments)
        except asyncio.CancelledError:
            await session.settled()
            raise
        except (ShellError, ProcessError) as error:
            return ToolResult(text=f"Error: {error}", failure="crash")

    async def _in_foreground(self, session: BashSession, arguments: JsonObject) -> ToolResult:
        """A command that waits for input in the session itself can be answered or ended."""
        if arguments["action"] == "write":
            reply = await session.write(arguments["text"], timeout=arguments.get("timeout"))
        elif arguments["action"] == "stop":
            reply = await session.end_waiting()
        else:
            return ToolResult(text="Error: a command that waits can only be written to or stopped", failure="crash")
        return as_result(reply, arguments.get("timeout") or self._sessions.options.timeout_seconds)

    async def _with_jobs(self, session: BashSession, arguments: JsonObject) -> ToolResult:
        action, id = arguments["action"], arguments.get("id")
        if action == "list":
            return ToolResult(text="\n".join(map(describe, session.jobs.values())) or "no jobs")
        if id is None:
            job = await session.wait_any(arguments.get("timeout", WAIT))
            return report(job) if job else ToolResult(text="no job has ended")
        job = session.jobs.get(id)
        if job is None:
            known = ", ".join(session.jobs) or "none"
            return ToolResult(text=f"Error: there is no job {id}; there are: {known}", failure="invalid_arguments")
        if action == "wait":
            await job.wait(arguments.get("timeout", WAIT))
        elif action == "write":
            await job.write(arguments["text"])
            return ToolResult(text=f"written to job {id}")
        elif action == "stop":
            await job.stop()
        return report(job)


@lru_cache(maxsize=16)
def path_of(folder: str) -> Path:
    """Asked for again and again of the same few folders."""
    return Path(folder)


def as_result(reply: Reply, limit: float) -> ToolResult:
    data = {
        "exitCode": reply.exit_code,
        "cwd": reply.cwd,
        "timedOut": reply.timed_out,
        "restarted": reply.restarted,
        "waitingForInput": reply.waiting_for_input,
        "ended": reply.ended,
        "job": reply.job,
        "note": reply.note,
    }
    failed = reply.exit_code not in (None, 0)
    return ToolResult(
        text=text_of(reply, limit),
        failure="timeout" if reply.timed_out and reply.job is None else "exit_code" if failed else None,
        exit_code=reply.exit_code,
        bytes_out=reply.printed_bytes,
        truncated=reply.truncated,
        data=data,
    )


def text_of(reply: Reply, limit: float) -> str:
    """What was printed as a person would see it, after what else there is to know."""
    seen = joined(readable(reply.output), HELD_BACK if reply.held_back else None)
    if reply.timed_out:
        return "\n".join([*out_of_time(reply, limit), *([f"Output so far:\n{seen}"] if seen else [])])
    if reply.job is not None:
        return joined(reply.note, f"job {reply.job} runs in the background; see it with bash_job")
    if reply.waiting_for_input:
        how = f'[the command waits for input: bash_job with "id": "{FOREGROUND}" can write to it or stop it]'
        return joined(reply.note, seen, how)
    silent = NO_OUTPUT if not reply.exit_code else f"{NO_OUTPUT}\nexit code: {reply.exit_code}"
    return joined(reply.note, seen or silent)


def out_of_time(reply: Reply, limit: float) -> list[str]:
    said = f"command did not finish within {limit:g} seconds"
    if reply.job is not None:
        return [f"The {said} and goes on as job {reply.job}; see it with bash_job"]
    advice = (
        "It was ended. Start it with `&` and its output in a file to leave it running, or, where the tool takes them, "
        "give a higher `timeout` in seconds or `background: true`."
    )
    return [f"Error: {said}", joined(advice, reply.note)]


def describe(job: Job) -> str:
    code = "" if job.exit_code is None else f" with status {job.exit_code}"
    state = "running" if job.running else f"ended{code}"
    return f"{job.id}: {state}: {one_line(job.command.strip())}"


def report(job: Job) -> ToolResult:
    """How a job stands, and what it printed since the last time."""
    printed = job.take()
    seen = joined(readable(printed.text), HELD_BACK if printed.held_back else None)
    return ToolResult(
        text=joined(describe(job), seen or NO_OUTPUT),
        exit_code=job.exit_code,
        bytes_out=printed.total_bytes,
        truncated=printed.truncated,
        data={"job": job.id, "running": job.running, "exitCode": job.exit_code},
    )
