"""`toolyard chat`: a conversation at the terminal, or with -p one turn for scripts."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from toolyard.cli.application import agent_option, known_agent, open_application
from toolyard.cli.call import explain
from toolyard.cli.chat.answers import answer_option, approver_for, late_answer_option, take_up_questions
from toolyard.cli.chat.piped import read_piped, with_piped
from toolyard.cli.render import is_terminal
from toolyard.cli.running import run_to_end

if TYPE_CHECKING:
    from toolyard.cli.main import GlobalOptions


@click.command()
@click.argument("prompt", required=False)
@click.option(
    "-p", "--print", "headless", metavar="PROMPT", help="One turn, and its answer; - for what standard input holds."
)
@click.option("--session", metavar="ID", help="Go on with this session; the beginning of its id is enough.")
@click.option("--model", metavar="M", help="Another model than the configured one.")
@agent_option
@click.option("--json", "as_json", is_flag=True, help="Print every event as a line of JSON.")
@answer_option
@late_answer_option
@click.pass_obj
def chat(
    options: GlobalOptions,
    prompt: str | None,
    headless: str | None,
    session: str | None,
    model: str | None,
    agent: str | None,
    as_json: bool,
    answer: bool | None,
    late_answer: str | None,
) -> int:
    """Talk with an agent, at once about PROMPT if there is one.

    With -p, with --json and in a pipe it is one turn: the answer goes to standard output, what the agent does meanwhile
    to standard error. What is piped in is said with PROMPT, or is what is said. With --session and nothing said, a turn
    that was cut off goes on, and its questions are asked again. Exit status: 0 answered or left, 1 an error or a bound,
    2 wrong usage or configuration, 3 refused, 4 a question waits for an answer, 130 interrupted.
    """
    if headless is None and not as_json and answer is None and late_answer is None and is_at_terminal():
        from toolyard.cli.chat.interactive import converse

        return run_to_end(converse(options, prompt, session=session, model=model, agent=agent))
    said = headless if headless is not None else prompt
    if said == "-" or (said is None and session is None and not is_terminal(sys.stdin)):
        said = read_piped(patient=True)
    elif said:
        said = with_piped(said)
    elif answer is None and late_answer is None:
        said = read_piped(patient=False) or None
    if session is None and not (said and said.strip()):
        raise click.UsageError("say something: toolyard chat -p 'What is in this folder?'")
    return run_to_end(
        one_turn(options, said, session, model, agent, as_json=as_json, answer=answer, late_answer=late_answer)
    )


def is_at_terminal() -> bool:
    return is_terminal(sys.stdin) and is_terminal(sys.stdout)


async def one_turn(
    options: GlobalOptions,
    prompt: str | None,
    session_id: str | None,
    model: str | None,
    agent: str | None,
    *,
    as_json: bool,
    answer: bool | None,
    late_answer: str | None = None,
) -> int:
    from toolyard.agents.sessions.database import StoreError
    from toolyard.cli.chat.headless import JsonListener, TextListener, listen_to_turn

    approver = approver_for(answer, late_answer)
    async with open_application(options, approver=approver) as app:
        explain(app, None)
        if not app.has_configuration:
            return 2
        name = known_agent(app.agents(), agent) if agent or not session_id else None
        try:
            session = await app.open_session(name, id=session_id, model=model)
        except StoreError as error:
            raise click.UsageError(str(error)) from None
        if prompt is None and not session.history().is_open:
            raise click.UsageError(f"the session {session.id} has no turn to go on with; say something with -p")
        take_up_questions(approver, session, late_answer)
        listener = JsonListener(session.id) if as_json else TextListener(session.id)
        return await listen_to_turn(session, prompt, listener)
