"""The tools that the suite calls; their names and texts are the suite's."""

from __future__ import annotations

import base64
import time

from toolyard import AudioPart, FilePart, ImagePart, TextPart, tool
from toolyard.errors import ToolError

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
)
WAVE = b"RIFF" + bytes([36, 0, 0, 0]) + b"WAVEfmt " + bytes(20) + b"data" + bytes(4)


@tool
def test_simple_text() -> str:
    """Answer with text."""
    return "This is a simple text response for testing."


@tool
def test_image_content() -> ImagePart:
    """Answer with an image."""
    return ImagePart(media_type="image/png", data=PIXEL)


@tool
def test_audio_content() -> AudioPart:
    """Answer with sound."""
    return AudioPart(media_type="audio/wav", data=WAVE)


@tool
def test_embedded_resource() -> FilePart:
    """Answer with a file."""
    return FilePart(media_type="text/plain", data=b"This is an embedded resource content.", name="a.txt")


@tool
def test_multiple_content_types() -> list[TextPart | ImagePart | FilePart]:
    """Answer with several parts."""
    return [
        TextPart(text="Multiple content types test:"),
        ImagePart(media_type="image/png", data=PIXEL),
        FilePart(media_type="application/json", data=b'{"test": "data", "value": 123}', name="a.json"),
    ]


@tool
def test_error_handling() -> str:
    """Fail."""
    raise ToolError("This tool intentionally returns an error for testing")


@tool
def test_tool_with_progress() -> str:
    """Print while it runs."""
    for done in (0, 50, 100):
        print(done, flush=True)
        time.sleep(0.05)
    return "done"


@tool
def test_elicitation(message: str) -> str:
    """Run after a person said yes."""
    return f"User response: {message}"


@tool
def test_input_required_result_elicitation() -> str:
    """Run after a person said yes."""
    return "Hello, Alice!"


@tool
def test_input_required_result_request_state() -> str:
    """Run after a person said yes, whose answer comes with the state."""
    return "state-ok"


@tool
def test_input_required_result_tampered_state() -> str:
    """Run after a person said yes; an answer with another state is none."""
    return "done"


ASKED_ABOUT = (
    "test_elicitation",
    "test_input_required_result_elicitation",
    "test_input_required_result_request_state",
    "test_input_required_result_tampered_state",
)
"""Those that a person is asked about first."""
TOOLS = [
    test_simple_text,
    test_image_content,
    test_audio_content,
    test_embedded_resource,
    test_multiple_content_types,
    test_error_handling,
    test_tool_with_progress,
    test_elicitation,
    test_input_required_result_elicitation,
    test_input_required_result_request_state,
    test_input_required_result_tampered_state,
]
