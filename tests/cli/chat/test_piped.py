"""What is piped in is waited for, but not for ever."""

from __future__ import annotations

import os

from toolyard.cli.chat import piped


def test_a_pipe_that_nobody_writes_to_holds_up_nobody(monkeypatch, capsys):
    monkeypatch.setattr(piped, "FIRST_BYTE", 0.01)
    reader, writer = os.pipe()
    try:
        assert not piped.has_begun(reader)
        assert "nothing was piped in" in capsys.readouterr().err
        os.write(writer, b"x")
        assert piped.has_begun(reader)
    finally:
        os.close(reader)
        os.close(writer)


def test_a_device_is_not_read(tmp_path):
    with open(os.devnull) as nothing, open(tmp_path / "file", "w+") as file:
        assert (piped.has_begun(nothing.fileno()), piped.has_begun(file.fileno())) == (False, True)
