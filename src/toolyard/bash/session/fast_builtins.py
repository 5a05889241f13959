"""Running a builtin that starts nothing and reads nothing with as little around it as there can be.

Going through the event loop would double what such a command costs, and so would all that only others need. So it is
waited for in the loop's own time, for some milliseconds at most, and its record is read at a glance.
"""

from __future__ import annotations

import os
import select
from typing import TYPE_CHECKING

from toolyard.bash.session.protocol import HAS_NO_ERRORS

if TYPE_CHECKING:
    from toolyard.bash.session.channels import OwnOutput
    from toolyard.bash.session.control_channel import ControlLine


PATIENCE_MS = 10
"""A wait that ends before the next tick of the kernel's clock makes it set an alarm, which on a virtual machine costs
as much as all the rest."""
READ_SIZE = 1 << 16


class SwiftBuiltins:
    """Knows what a record looks like as long as a command has changed nothing but the status."""

    def __init__(self, control: ControlLine, output: OwnOutput) -> None:
        self._control = control
        self._output = output
        self._ask = control.ask(0).replace(b" 0 ", b" %b ", 1)
        self._same_as_before = b""
        """What a record says besides the status, as long as nothing has changed."""
        # They are looked at in this order, so that what was printed before the record is seen with it.
        self._poll = select.poll()
        self._poll.register(control.answers, select.POLLIN)
        self._poll.register(output.fd, select.POLLIN)

    def run(self, text: str, number: int) -> tuple[int | None, bytes]:
        """The status and what was printed; with no status, what was heard of one that is not over, or did more."""
        asked = b"%d" % number
        form = b"%b\n%b" if text in HAS_NO_ERRORS else b"%b 2>&1\n%b"
        self._control.send(form % (text.encode(), self._ask % asked))
        answers = self._control.answers
        ready = self._poll.poll(PATIENCE_MS)
        if ready and ready[0][0] != answers:
            ready = self._poll.poll(PATIENCE_MS)  # what it printed came first
        if not ready or ready[0][0] != answers:
            return None, b""
        heard = os.read(answers, READ_SIZE)
        words = heard.split(b" ", 4)
        if len(words) > 4 and words[2] == asked and words[4] == self._same_as_before:
            return int(words[3]), self._output.take() if len(ready) > 1 else b""
        return None, heard

    def learn(self, heard: bytes) -> None:
        """This is what a record looks like now."""
        words = heard.split(b" ", 4)
        if len(words) > 4:
            self._same_as_before = words[4]
