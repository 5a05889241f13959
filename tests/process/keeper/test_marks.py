"""The numbers by which a keeper tells apart what belongs to which call."""

from __future__ import annotations

import resource

import pytest

from toolyard.process.keeper.spawn import Marks

AROUND_US = 5 * 10**15


@pytest.fixture
def found_by_a_mark():
    """This process carries the mark of a keeper around it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_RTTIME)
    resource.setrlimit(resource.RLIMIT_RTTIME, (AROUND_US, hard))
    yield
    resource.setrlimit(resource.RLIMIT_RTTIME, (soft, hard))


def spawn_three(marks: Marks) -> tuple[list[range], list[int]]:
    """The marks of a child, a shell with five and another child, and which soft limits were set meanwhile."""
    carried: list[tuple[int, int]] = []
    marks.set = carried.append
    given = []
    for count in (1, 5, 1):
        given.append(marks.carry_next(count))
        assert carried[-1][0] == given[-1].start, "what is started now inherits another mark"
        marks.after_spawn()
    return given, [soft for soft, _ in carried]


def test_every_child_has_marks_of_its_own_and_the_next_one_is_carried_before_it_is_asked_for():
    given, carried = spawn_three(Marks(1000))
    assert given == [range(1001, 1002), range(1002, 1007), range(1007, 1008)]
    assert carried == [1001, 1002, 1007, 1008]


def test_a_keeper_that_another_one_finds_by_a_mark_carries_that_between_its_children(found_by_a_mark):
    given, carried = spawn_three(Marks(1000))
    assert given == [range(1001, 1002), range(1002, 1007), range(1007, 1008)]
    assert carried == [1001, AROUND_US, 1002, AROUND_US, 1007, AROUND_US]
