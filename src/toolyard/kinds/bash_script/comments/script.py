"""A whole script that declares itself in comments: its tools, and all that is wrong with it."""

from __future__ import annotations

import difflib
import re
from typing import TYPE_CHECKING, Literal

import msgspec

from toolyard.kinds.bash_script.comments.tags import (
    COMMENT,
    KNOWN_TAGS,
    CommentFault,
    CommentParameter,
    CommentVariable,
    Function,
    Tag,
    declarations,
    read_value,
    without_here_documents,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


class CommentTool(msgspec.Struct, frozen=True, kw_only=True):
    """One tool of a script, and how the script wants to be called."""

    description: str = ""
    parameters: tuple[CommentParameter, ...] = ()
    env: tuple[CommentVariable, ...] = ()
    required_tools: tuple[str, ...] = ()
    version: str = ""
    dotenv: str | None = None
    function: str | None = "main"
    """`main`, or the function of a `@cmd`; None when the script does its work at its top level."""
    command: tuple[str, ...] = ()
    """The words that choose the `@cmd` on a command line; empty without one."""
    has_argc_line: bool = True
    """Whether the script itself evaluates what `argc --argc-eval` prints."""


class CommentScript(msgspec.Struct, frozen=True, kw_only=True):
    """The tools of a script: one for each `@cmd`, or one for the whole."""

    tools: tuple[CommentTool, ...]

    def tool(self, function: str) -> CommentTool | None:
        """The tool of a function; of a script with a single one, that."""
        found = (tool for tool in self.tools if len(self.tools) == 1 or tool.function == function)
        return next(found, None)

    def name_of(self, tool: CommentTool, *, file: str) -> str:
        """A command is named after its function, what is the whole of its file after that."""
        alone = not tool.command or (len(self.tools) == 1 and tool.function == "main")
        return file.replace("-", "_") if alone else tool_name(tool.command)


def parse_comments(source: str) -> CommentScript | tuple[CommentFault, ...]:
    """Read the comments of a script; every fault at once."""
    lines = without_here_documents([line.removesuffix("\r") for line in source.split("\n")])
    reader = ScriptReader(
        code=[(number, line) for number, line in enumerate(lines, start=1) if not COMMENT.match(line)]
    )
    for declaration in declarations(lines):
        reader.take(declaration)
    faults = [*reader.faults, *command_faults(reader), *name_faults(reader), *call_faults(reader)]
    return tuple(sorted(faults, key=lambda fault: fault.line)) or CommentScript(tools=tuple(reader.tools()))


ARGC_LINE = 'eval "$(argc --argc-eval "$0" "$@")"'
ARGC_CALL = re.compile(r"\bargc\b.*--argc-eval\b")
OWN_CALL = re.compile(r"^(main)(?![\w=-])(?![ \t]*\()|(?<![\w.-])(main|_argc_run)[ \t]+\"\$@\"")
OTHER_WORDS = {"argument": "arg", "command": "cmd", "desc": "describe", "description": "describe", "opt": "option"}
"""What people write for a tag that is called otherwise."""
NEAR = 0.72
"""How alike a tag and its misspelling are: `@optoin` is that, `@end` is no `@env`."""


class CommentSection(msgspec.Struct, kw_only=True):
    """What stands above a function: of the whole script, or of one `@cmd`."""

    line: int = 1
    description: str = ""
    function: str | None = None
    required_tools: list[str] = msgspec.field(default_factory=list)
    parameters: list[CommentParameter] = msgspec.field(default_factory=list)
    env: dict[str, CommentVariable] = msgspec.field(default_factory=dict)
    metas: set[str] = msgspec.field(default_factory=set)

    @property
    def words(self) -> tuple[str, ...]:
        """How a command line chooses it: `git::log_` is `git log`."""
        return tuple(part.rstrip("_") for part in (self.function or "").split("::"))


class ScriptReader(msgspec.Struct, kw_only=True):
    """What has been read of a script so far."""

    code: Sequence[tuple[int, str]]
    place: Literal["top", "command", "below"] = "top"
    version: str = ""
    dotenv: str | None = None
    root: CommentSection = msgspec.field(default_factory=CommentSection)
    commands: list[CommentSection] = msgspec.field(default_factory=list)
    functions: set[str] = msgspec.field(default_factory=set)
    faults: list[CommentFault] = msgspec.field(default_factory=list)

    @property
    def section(self) -> CommentSection:
        return self.commands[-1] if self.commands else self.root

    @property
    def has_argc_line(self) -> bool:
        return any(ARGC_CALL.search(line) for _, line in self.code)

    def take(self, declaration: Tag | Function) -> None:
        if isinstance(declaration, Tag):
            self.take_tag(declaration)
            return
        self.functions.add(declaration.name)
        if self.place == "command":
            self.section.function = declaration.name
        self.place = "below"

    def take_tag(self, tag: Tag) -> None:
        match tag.name:
            case "cmd":
                self.commands.append(CommentSection(line=tag.line, description=tag.whole_text))
                self.place = "command"
            case name if name not in KNOWN_TAGS:
                self.take_unknown(tag)
            case _ if self.place == "below":
                message = f"@{tag.name} stands below a function, where it belongs to nothing"
                self.faults.append(CommentFault(line=tag.line, message=message, hint="move it above the functions"))
            case "describe":
                self.section.description = tag.whole_text
            case "version":
                self.version = tag.text
            case "meta":
                self.take_meta(*tag.text.partition(" ")[::2])
            case "alias" | "author":
                return  # for people at a command line
            case _:
                self.take_value(tag)

    def take_unknown(self, tag: Tag) -> None:
        """A misspelt tag would be lost without a word; others are for other readers of comments."""
        if self.place != "below" and (near := near_tag(tag.name)):
            message = f"@{tag.name} is no tag"
            self.faults.append(CommentFault(line=tag.line, message=message, hint=f"did you mean @{near}?"))

    def take_meta(self, name: str, text: str) -> None:
        self.section.metas.add(name)
        match name:
            case "version":
                self.version = text.strip()
            case "dotenv":
                self.dotenv = text.strip() or ".env"
            case "require-tools":
                self.section.required_tools += [tool.strip() for tool in text.split(",") if tool.strip()]

    def take_value(self, tag: Tag) -> None:
        section = self.section
        match read_value(tag):
            case CommentFault() as fault:
                self.faults.append(fault)
            case CommentVariable() as variable:
                section.env[variable.name] = variable
            case parameter:
                section.parameters.append(parameter)

    def tools(self) -> Iterator[CommentTool]:
        """The script as a whole, or each of its commands but for those that only hold others."""
        if not self.commands:
            yield self.tool(self.root, "main" if "main" in self.functions else None)
        holders = {command.words[:length] for command in self.commands for length in range(1, len(command.words))}
        several = len(self.commands) > 1
        for command in self.commands:
            if not (several and (command.words in holders or (command.function or "").startswith("_"))):
                yield self.tool(command, command.function)

    def tool(self, section: CommentSection, function: str | None) -> CommentTool:
        root = self.root
        inherited = [] if section is root else [each for each in root.parameters if each.form != "arg"]
        own_env = {} if section is root or "no-inherit-env" in section.metas else root.env
        return CommentTool(
            description=section.description or root.description,
            parameters=(*inherited, *section.parameters),
            env=tuple((own_env | section.env).values()),
            required_tools=tuple(dict.fromkeys([*root.required_tools, *section.required_tools])),
            version=self.version,
            dotenv=self.dotenv,
            function=function,
            command=() if section is root else section.words,
            has_argc_line=self.has_argc_line,
        )


def near_tag(name: str) -> str | None:
    """The tag that was meant."""
    if name in OTHER_WORDS:
        return OTHER_WORDS[name]
    swapped = (tag for tag in KNOWN_TAGS if sorted(tag) == sorted(name))
    return next(swapped, None) or next(iter(difflib.get_close_matches(name, KNOWN_TAGS, n=1, cutoff=NEAR)), None)


def command_faults(reader: ScriptReader) -> Iterator[CommentFault]:
    names: dict[str, int] = {}
    for command in reader.commands:
        if command.function is None:
            hint = "write the function right below its comments"
            yield CommentFault(line=command.line, message="no function follows @cmd", hint=hint)
        elif (line := names.setdefault(tool_name(command.words), command.line)) != command.line:
            message = f"two commands are called '{tool_name(command.words)}', the first at line {line}"
            yield CommentFault(line=command.line, message=message, hint="give one of the two another name")


def tool_name(words: Sequence[str]) -> str:
    """The name of a command's tool, in characters that every model takes."""
    return re.sub(r"[^A-Za-z0-9_]", "_", "_".join(words))


def name_faults(reader: ScriptReader) -> Iterator[CommentFault]:
    """Names that stand for two parameters, and functions that the script does not define."""
    for section in [reader.root, *reader.commands]:
        inherited = [] if section is reader.root else [each for each in reader.root.parameters if each.form != "arg"]
        first: dict[str, int] = {}
        for parameter in [*inherited, *section.parameters]:
            if (line := first.setdefault(parameter.name, parameter.line)) != parameter.line:
                message = f"'{parameter.name}' is declared twice, first at line {line}"
                yield CommentFault(line=parameter.line, message=message, hint="give one of the two another name")
        declared: list[CommentParameter | CommentVariable] = [*section.parameters, *section.env.values()]
        for each in declared:
            for function in {each.value.default_function, each.value.choice_function} - {None, *reader.functions}:
                message = f"'{each.name}' needs the function {function}, which the script does not define"
                yield CommentFault(line=each.line, message=message, hint=f"define it: {function}() {{ … }}")


def call_faults(reader: ScriptReader) -> Iterator[CommentFault]:
    """Why nobody else can call the function of a script that does not evaluate what argc prints."""
    if reader.has_argc_line or reader.commands:
        return
    if "main" not in reader.functions:
        hint = f"define main() {{ … }}, or let the script evaluate its arguments: {ARGC_LINE}"
        yield CommentFault(line=1, message="the script has no function main that could be called", hint=hint)
    for number, line in reader.code:
        if found := OWN_CALL.search(line):
            message = f"the script calls {found[1] or found[2]} itself, before it has its arguments"
            yield CommentFault(line=number, message=message, hint=f"write in its place: {ARGC_LINE}")
