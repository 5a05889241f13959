"""`is_complete`: whether a text can stand between others without running into them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tree_sitter import Node


def is_complete(text: str) -> bool:
    """Whether nothing in it is open at its end: no quote, no bracket, no here-document. What is doubtful is open."""
    if text.endswith("\\"):
        return False
    try:
        from toolyard.bash.syntax.tree import parser

        root = parser().parse(text.encode("utf-8", "replace")).root_node
    except ImportError:  # a parser that is not installed has proven nothing
        return False
    return not root.has_error and all(has_end(node) for node in here_documents(root))


def here_documents(node: Node) -> Iterator[Node]:
    if node.type == "heredoc_redirect":
        yield node
    for child in node.children:
        yield from here_documents(child)


def has_end(node: Node) -> bool:
    return any(child.type == "heredoc_end" and child.text for child in node.children)
