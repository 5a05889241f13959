"""The lines in which a bash script says something of itself, such as `# @describe` and `# @option`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal, TypeAlias

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


ParameterForm = Literal["option", "flag", "arg"]


class CommentFault(msgspec.Struct, frozen=True, kw_only=True):
    """One thing in the comments that cannot be part of a tool."""

    line: int
    message: str
    hint: str


class CommentValue(msgspec.Struct, frozen=True, kw_only=True):
    """What a value may be, and what it is when none is given; the functions are the script's own."""

    default: str | None = None
    default_function: str | None = None
    choices: tuple[str, ...] = ()
    choice_function: str | None = None
    choices_checked: bool = True
    """Whether a value must be among what `choice_function` prints."""


class CommentParameter(msgspec.Struct, frozen=True, kw_only=True):
    """One `@option`, `@flag` or `@arg`."""

    name: str
    """The property's name, in which a `-` is a `_`."""
    form: ParameterForm
    line: int
    flag: str = ""
    """How the command line writes it, such as `--dry-run`; empty for an `@arg`."""
    assigned: bool = False
    """Whether the command line must write `--name=value`."""
    prefixed: bool = False
    """Whether it is only the beginning of a word, as in `-Dname=value`: a mapping of names to values."""
    required: bool = False
    multiple: bool = False
    separator: str = ""
    takes_rest: bool = False
    notations: tuple[str, ...] = ()
    env: str | None = None
    """The environment variable that is used when no value is given."""
    value: CommentValue = CommentValue()
    description: str = ""

    @property
    def variable(self) -> str:
        """The shell variable in which the script finds the value."""
        return f"argc_{self.name}"

    @property
    def is_list(self) -> bool:
        """Whether that variable is an array."""
        several = len(self.notations) > 1 or any(notation.endswith(("*", "+")) for notation in self.notations)
        plain = self.form != "flag" and not self.prefixed
        return plain and (self.multiple or self.takes_rest or (several and self.form == "option"))


class CommentVariable(msgspec.Struct, frozen=True, kw_only=True):
    """One `@env`: an environment variable that the script reads."""

    name: str
    line: int
    required: bool = False
    value: CommentValue = CommentValue()
    description: str = ""


def has_comment_tags(source: str) -> bool:
    return DECLARING_TAG.search(source) is not None


RESERVED_NAMES = ("_args", "_fn", "_positionals")
TAGS_WITH_MORE_LINES = ("describe", "cmd", "option", "flag", "arg", "env")
KNOWN_TAGS = (*TAGS_WITH_MORE_LINES, "alias", "author", "meta", "version")

# Documentation generators write `@arg $1` for what a function takes; that declares no tool.
DECLARING_TAG = re.compile(r"^#+[ \t]*@(?:(?:describe|cmd|option|flag)\b|arg[ \t]+[^\s$])", re.MULTILINE)
COMMENT = re.compile(r"[ \t]*#")
TAG = re.compile(r"#+[ \t]*@([A-Za-z][\w-]*)(?:[ \t]+(.*))?")
MORE_TEXT = re.compile(r"#+[ \t]?(?![ \t]*@)(.*)")
FUNCTION_NAME = r"[^\s\"'`()\[\]{}<>$&\\;|#=]+"
FUNCTION = re.compile(rf"function[ \t]+({FUNCTION_NAME})|({FUNCTION_NAME})[ \t]*\([ \t]*\)")
HERE_DOCUMENT = re.compile(r"(?<!<)<<-?[ \t]*(?:'([^']+)'|\"([^\"]+)\"|\\?([A-Za-z_]\w*))")

# A choice in quotes may hold a bracket; atomic groups keep a line of many quotes from being tried in every way.
VALUE = r"""(?: = (?P<default> `[^`]*` | "[^"]*" | '[^']*' | \S* )
  | (?P<modifier> [!~] | [*+][,:;@|/]? )? (?: \[ (?P<choices> (?> "[^"]*" | '[^']*' | [^\]] )*+ ) \] )? )"""
DASHES = r"(?: [-+] [\w!#$%*+,./:=?@\[\]^{}~] [ \t]+ (?=[-+]) )? (?P<dash> -- | - | \+ ) (?!-)"
NAME = r"(?P<name> [\w.:@-]+ )"
ENV = r"(?: [ \t]+ \$ (?P<env> \$ | [A-Z_][A-Z0-9_]* ) (?!\S) )?"
NOTATION = r"(?: [ \t]+ < (?: [^<>] | <[^<>]*> )* > )"
DESCRIPTION = r"(?: [ \t]+ (?P<description> .* ) )?"
PATTERNS = {
    "option": rf"{DASHES} {NAME} {VALUE} {ENV} (?P<notations> {NOTATION}* ) {DESCRIPTION}",
    "flag": rf"{DASHES} {NAME} (?P<modifier> \* )? {ENV} {DESCRIPTION}",
    "arg": rf"{NAME} {VALUE} {ENV} (?P<notations> {NOTATION}? ) {DESCRIPTION}",
    "env": rf"(?P<name> [A-Za-z_]\w* ) {VALUE} {NOTATION}? {DESCRIPTION}",
}
WRITTEN_FORMS = {
    "option": "# @option --name! <TEXT> What it is",
    "flag": "# @flag --name What it does",
    "arg": "# @arg name! <TEXT> What it is",
    "env": "# @env NAME! What it is",
}
Parts: TypeAlias = "dict[str, str]"
"""Those of the named parts of a pattern that a text has."""


class Tag(msgspec.Struct, frozen=True, kw_only=True):
    """A comment line with a tag, and the text of the lines that go on with it."""

    line: int
    name: str
    text: str
    more: str

    @property
    def whole_text(self) -> str:
        return f"{self.text}\n{self.more}".strip()


class Function(msgspec.Struct, frozen=True, kw_only=True):
    """The line that begins a function."""

    line: int
    name: str


def without_here_documents(lines: Sequence[str]) -> list[str]:
    """The same lines, empty where they are the text of a here-document."""
    result: list[str] = []
    ends: list[str] = []
    for number, line in enumerate(lines):
        result.append("" if ends else line)
        if ends:
            ends = ends[1:] if line.lstrip("\t") == ends[0] else ends
        elif not COMMENT.match(line) and (found := HERE_DOCUMENT.findall(line)):
            # `<<` may also shift bits: only what ends somewhere is a here-document.
            rest = {following.lstrip("\t") for following in lines[number + 1 :]}
            ends = [end for groups in found if (end := "".join(groups)) in rest]
    return result


def declarations(lines: Sequence[str]) -> Iterator[Tag | Function]:
    """The tags and the functions, in the order of the file."""
    for number, line in enumerate(lines, start=1):
        if found := TAG.fullmatch(line):
            more = more_text(lines[number:]) if found[1] in TAGS_WITH_MORE_LINES else ()
            yield Tag(line=number, name=found[1], text=(found[2] or "").strip(), more="\n".join(more))
        elif found := FUNCTION.match(line):
            yield Function(line=number, name=found[1] or found[2])


def more_text(lines: Sequence[str]) -> Iterator[str]:
    """The comment lines that go on with a tag's text; `\\@` is an `@` that begins no tag."""
    for line in lines:
        found = MORE_TEXT.fullmatch(line)
        if found is None or found[1].startswith("shellcheck "):
            return
        yield found[1].removeprefix("\\") if found[1].startswith("\\@") else found[1]


def read_value(tag: Tag) -> CommentParameter | CommentVariable | CommentFault:
    """Read the text of `@option`, `@flag`, `@arg` or `@env`."""
    found = re.fullmatch(PATTERNS[tag.name], tag.text, re.VERBOSE | re.ASCII)
    parts = {name: text for name, text in found.groupdict().items() if text is not None} if found else {}
    if reason := part_fault(tag, parts):
        return CommentFault(line=tag.line, message=reason, hint=f"write it as: {WRITTEN_FORMS[tag.name]}")
    description = f"{parts.get('description', '')}\n{tag.more}".strip()
    value, modifier = read_choices(parts), parts.get("modifier", "")
    required = modifier[:1] in ("!", "+") and value.default is None
    if tag.name == "env":
        name = parts["name"]
        return CommentVariable(name=name, line=tag.line, required=required, value=value, description=description)
    name = property_name(parts)
    return CommentParameter(
        name=name,
        form="option" if tag.name == "option" else "flag" if tag.name == "flag" else "arg",
        line=tag.line,
        flag=parts["dash"] + bare_name(parts) if "dash" in parts else "",
        assigned="dash" in parts and ends_with_single(":", parts["name"]),
        prefixed=tag.name == "option" and ends_with_single("-", parts["name"]),
        required=required,
        multiple=modifier[:1] in ("*", "+"),
        separator=modifier[1:],
        takes_rest=modifier == "~",
        notations=tuple(re.findall(r"<((?:[^<>]|<[^<>]*>)*)>", parts.get("notations", ""))),
        env=name.upper() if parts.get("env") == "$" else parts.get("env"),
        value=value,
        description=description,
    )


def part_fault(tag: Tag, parts: Parts) -> str | None:
    """Why no tool can have a value of these parts, or None."""
    if not parts:
        return f"'@{tag.name} {tag.text}' is not understood" if tag.text else f"@{tag.name} says nothing"
    if tag.name == "env":
        several = parts.get("modifier", "!") != "!"
        return f"the environment variable {parts['name']} can only hold a single value" if several else None
    name = property_name(parts)
    if name in RESERVED_NAMES or not name.strip("_"):
        return f"'{parts['name']}' cannot be a name: the variable argc_{name} is not free"
    if tag.name == "flag" and ends_with_single("-", parts["name"]):
        return f"'{parts['name']}' is only the beginning of a name, which no flag can be"
    if tag.name == "option" and ends_with_single("-", parts["name"]) and {"default", "env"} & parts.keys():
        return f"'{parts['name']}' is only the beginning of a name, and has no value of its own"
    if parts.get("env") == "$" and not name.isidentifier():
        return f"'{name.upper()}' cannot be the name of an environment variable"
    return None


def property_name(parts: Parts) -> str:
    prefix = "plus_" if parts.get("dash") == "+" else ""
    return prefix + re.sub(r"[-.:@]", "_", bare_name(parts))


def bare_name(parts: Parts) -> str:
    """The name without the mark at its end; a doubled mark stands for itself."""
    name = parts["name"]
    return name[:-1] if "dash" in parts and name.endswith((":", "-")) else name


def ends_with_single(mark: str, name: str) -> bool:
    return name.endswith(mark) and not name.endswith(mark * 2)


def read_choices(parts: Parts) -> CommentValue:
    """Choices and default: words as they are or in quotes, functions in backquotes."""
    choices, default = parts.get("choices", ""), parts.get("default")
    if found := re.fullmatch(r"(\??)`(.+)`", choices):
        return CommentValue(choice_function=found[2], choices_checked=not found[1])
    if default is not None and (found := re.fullmatch(r"`(.+)`", default)):
        return CommentValue(default_function=found[1])
    words = tuple(unquoted(word) for word in re.findall(r"\"[^\"]*\"|'[^']*'|[^|]+", choices.removeprefix("=")))
    if choices.startswith("=") and words:
        return CommentValue(choices=words, default=words[0])
    return CommentValue(choices=words, default=None if default is None else unquoted(default))


def unquoted(word: str) -> str:
    return word[1:-1] if len(word) > 1 and word[0] == word[-1] and word[0] in "\"'" else word
