"""The keeper that sessions share which belong to no application: one for each event loop, as long as there is one."""

from __future__ import annotations

import asyncio
from weakref import WeakKeyDictionary

from toolyard.process.child import Children

__all__ = ["borrow_keeper", "return_keeper"]

SHARED: WeakKeyDictionary[asyncio.AbstractEventLoop, tuple[Children, list[int]]] = WeakKeyDictionary()


def borrow_keeper() -> Children:
    """The loop's keeper, a new one for the first session."""
    loop = asyncio.get_running_loop()
    children, users = SHARED.setdefault(loop, (Children(), [0]))
    users[0] += 1
    return children


async def return_keeper(children: Children) -> None:
    """A session is over; the last one ends the keeper."""
    loop = asyncio.get_running_loop()
    shared = SHARED.get(loop)
    if shared is None or shared[0] is not children:
        return
    shared[1][0] -= 1
    if shared[1][0] == 0:
        del SHARED[loop]
        await children.aclose()
