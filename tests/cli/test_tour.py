"""`toolyard tour`: it works from anywhere, leaves nothing behind, and notices when a step goes wrong."""

from __future__ import annotations

import sys

import pytest

from support import CommandLine, Terminal
from toolyard.cli.tour import LAST_STEPS, STEPS

TOUR = [sys.executable, "-m", "toolyard", "tour"]


def test_the_tour_shows_every_step_with_its_command_and_what_came_of_it(toolyard: CommandLine):
    ran = toolyard.run(TOUR)
    assert ran.code == 0, ran.err
    commands = [line for line in ran.out.splitlines() if line.startswith("$ ")]
    assert len(commands) == len(STEPS) + len(LAST_STEPS) + 2
    assert commands[0] == "$ toolyard tools"
    for step in (*STEPS, *LAST_STEPS):
        assert step.shows in ran.out + ran.err
    assert '"failure":"exit_code","exit":3' in ran.out


def test_the_tour_leaves_nothing_behind(toolyard: CommandLine):
    before = sorted(toolyard.folder.parent.rglob("*"))
    toolyard.run(TOUR)
    assert sorted(toolyard.folder.parent.rglob("*")) == before


def test_the_tour_does_not_mind_where_it_is_taken(toolyard: CommandLine):
    toolyard.file("toolyard.json", "{broken")
    assert toolyard.run(TOUR).code == 0


def test_the_tour_on_a_terminal_stands_out_by_its_commands(toolyard: CommandLine):
    with Terminal(toolyard, *TOUR, env={"TERM": "xterm"}) as terminal:
        assert terminal.finish() == 0
    assert terminal.text.count("\x1b[1m$ ") == len(STEPS) + len(LAST_STEPS) + 2
    assert "\n\n\n" not in terminal.text


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("tour.STEPS = (tour.TourStep(about='', words=['tools'], shows='nonsense'),)", "'nonsense' shown"),
        ("tour.STEPS = (tour.TourStep(about='', words=['tools'], exit_code=3, shows=''),)", "exit status 3"),
    ],
)
def test_a_step_that_goes_wrong_fails_the_tour(toolyard: CommandLine, change, said):
    ran = toolyard.run([sys.executable, "-c", f"from toolyard.cli import tour; {change}; exit(tour.take_tour())"])
    assert ran.code == 1
    assert said in ran.err


def test_the_tour_ends_with_a_command_that_can_be_typed(toolyard: CommandLine):
    ran = toolyard.run(TOUR)
    assert ran.out.splitlines()[-1] == "$ toolyard tool new my_tool"
    ran = toolyard.run(TOUR, env={"PATH": "/usr/bin:/bin"})
    command, advice = ran.out.splitlines()[-2:]
    assert command == f"$ {toolyard.path} tool new my_tool"
    assert toolyard.run(["bash", "-c", command.removeprefix("$ ")], env={"PATH": "/usr/bin:/bin"}).code == 0
    assert advice == f"`. {toolyard.path.with_name('activate')}` lets you call it just `toolyard`."
    ran = toolyard.run(TOUR, env={"PATH": "/usr/bin:/bin"}, cwd=toolyard.path.parent.parent)
    assert ran.out.splitlines()[-2] == "$ bin/toolyard tool new my_tool"
