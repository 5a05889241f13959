"""Programs that build, test and deploy: they run the project's own code, and no option should make it another's."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from toolyard.permissions.programs.known import names
from toolyard.permissions.programs.options import Concern, options

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from toolyard.bash.syntax.words import Word
    from toolyard.permissions.places import Place
    from toolyard.permissions.programs.options import Options


RUNS = "runs another program"
WRITES = "writes a file"
OTHER = "takes the code or the settings from elsewhere"

NPM = options(
    flags="""
        -sdDPBEOqvhyf silent quiet verbose save save-dev save-exact save-prod save-optional json long parseable
        if-present workspaces include-workspace-root ignore-scripts production dry-run no-audit no-fund force yes
        version help offline prefer-offline no-save loglevel audit fund
    """,
    values="-w workspace omit include depth tag otp",
    harms={
        "-C prefix cwd dir": OTHER,
        "-g global location": "installs for all projects",
        "script-shell shell node-options init-module onload-script git node-gyp editor viewer browser": RUNS,
        "-cx call eval exec package": RUNS,
        "userconfig globalconfig config use-yarnrc registry ca cafile key cert https-proxy http-proxy proxy": OTHER,
        "cache cache-folder modules-folder store-dir global-folder link-folder": WRITES,
    },
)
PYTEST = options(
    flags="""
        -vqslxh verbose quiet exitfirst lf last-failed ff failed-first nf new-first sw stepwise co collect-only
        no-header no-summary showlocals no-cov strict-markers strict-config help version cache-show setup-show
        setup-only
    """,
    values="""
        -kmnWr maxfail tb durations durations-min timeout ignore ignore-glob deselect color capture dist numprocesses
        randomly-seed cov-fail-under seed last-failed-no-failures show-capture assert junit-prefix junitprefix lfnf
        cov-report
    """,
    optional="cov cov-branch reruns",
    writes="junitxml junit-xml log-file report-log resultlog html json-report-file",
    harms={
        "-c config-file rootdir confcutdir cov-config inifile": OTHER,
        "-p": "loads a plugin",
        "-o override-ini": "changes the settings",
        "pdbcls pdb trace": RUNS,
        "basetemp debug cov-append": WRITES,
        "pastebin": "sends the results elsewhere",
        "pyargs import-mode pythonpath doctest-modules": OTHER,
    },
)
CARGO = options(
    flags="""
        -vqr verbose quiet release lib bins tests benches examples all-targets workspace all all-features no-run
        no-default-features no-fail-fast doc offline frozen locked keep-going future-incompat-report check
    """,
    values="-pjF package features jobs profile target bin test bench example exclude message-format color edition",
    harms={
        "config -ZC": OTHER,
        "open": RUNS,
        "manifest-path target-dir out-dir artifact-dir lockfile-path": OTHER,
        "fix allow-dirty allow-staged": WRITES,
    },
)
GO = options(
    flags="""
        v x n a race msan asan cover json short failfast list trimpath fix m u t e deps find test work i benchmem
    """,
    values="run count timeout tags mod p parallel cpu bench benchtime skip shuffle covermode coverpkg f",
    writes="o coverprofile cpuprofile memprofile blockprofile mutexprofile trace outputdir",
    harms={
        "exec toolexec vettool http": RUNS,
        "overlay modfile C pkgdir modcacherw pgo installsuffix": OTHER,
        "ldflags gcflags asmflags gccgoflags compiler": "may run another program",
        "w": "changes the settings of go",
    },
    single_dash=True,
)
MAKE = options(
    flags="""
        -bmBdeikKnqrRsStvwpLhO always-make debug environment-overrides ignore-errors keep-going just-print dry-run
        recon question no-builtin-rules no-builtin-variables silent quiet no-silent stop touch version print-directory
        no-print-directory warn-undefined-variables print-data-base check-symlink-times trace help
    """,
    optional="-jl jobs load-average output-sync max-load",
    values="-oW old-file assume-old what-if new-file assume-new",
    harms={"-f file makefile": OTHER, "-C directory": OTHER, "-I include-dir": OTHER, "-E eval": RUNS},
    complete=True,
)
PIP = options(
    harms={
        "-t target root prefix log cache-dir build src": WRITES,
        "python config-settings global-option install-option build-option": RUNS,
        "-i index-url extra-index-url find-links -f trusted-host proxy cert client-cert": OTHER,
    }
)
CMAKE = options(
    values="-GABT target parallel config preset",
    harms={"-CPE": RUNS, "-D": "may name another program", "-S": OTHER, "install open": "writes files"},
)
NINJA = options(values="-jkldw", harms={"-f": OTHER, "-C": OTHER, "-t": "does more than to build"})
MESON = options(harms={"-C": OTHER, "-D": OTHER, "native-file cross-file wrap-mode prefix": OTHER})
JUST = options(
    flags="-lnqv list dry-run quiet verbose summary evaluate dump show unsorted fmt check",
    harms={
        "-fd justfile working-directory": OTHER,
        "-ce command edit choose chooser shell shell-arg shell-command dotenv-path dotenv-filename set": RUNS,
    },
)
TASK = options(
    flags="-alnsvp list list-all dry silent verbose parallel status summary force",
    harms={"-tdg taskfile dir global entrypoint init": OTHER},
)
RAKE = options(harms={"-frRILeEpCg rakefile require rakelibdir libdir execute execute-print system require": OTHER})
MAVEN = options(harms={"-fsgtlD file settings global-settings toolchains log-file define": OTHER})
GRADLE = options(
    harms={
        "-bIpgcPD build-file init-script project-dir gradle-user-home settings-file include-build": OTHER,
        "project-prop system-prop project-cache-dir scan": OTHER,
    }
)
ANT = options(
    harms={"f file buildfile lib logger listener logfile l D main propertyfile find s inputhandler": OTHER},
    single_dash=True,
)
SCONS = options(harms={"-fCYI file directory makefile sconstruct include-dir site-dir repository": OTHER})


def guard_by(table: Options) -> Callable[[Sequence[Word], Place], Iterator[Concern]]:
    """A guard that needs no more than the table of options."""

    def guard(words: Sequence[Word], place: Place) -> Iterator[Concern]:  # noqa: ARG001 - the form of all guards
        yield from table.scan(words[1:]).concerns

    return guard


def guard_pytest(words: Sequence[Word], place: Place) -> Iterator[Concern]:
    """Tests of the workspace, with no plugin or setting from elsewhere."""
    given = PYTEST.scan(without_unloading(words[1:]))
    yield from given.concerns
    for value in given.values("W"):
        text = value if isinstance(value, str) else value.value if value else None
        if text is None or not re.fullmatch(r"\w+(?:::\w*)?", text):
            yield Concern(message="-W may load a module")
    for value in given.values("cov-report"):
        text = value if isinstance(value, str) else value.value if value else None
        if text is None or not re.fullmatch(r"term(?:-missing)?(?::skip-covered)?|", text):
            yield Concern(message="a report is written")
    for operand in given.operands:
        path = (operand.value or operand.prefix).partition("::")[0]
        if operand.prefix.startswith("@") or (path and not place.contains(path)):
            yield Concern(message=f"'{operand.text}' is not a test of the workspace")


def without_unloading(words: Sequence[Word]) -> list[Word]:
    """The words without those that only say which plugins shall not be loaded."""
    left: list[Word] = []
    for word in words:
        if left and left[-1].value == "-p" and re.fullmatch(r"no:[\w.-]+", word.value or ""):
            left.pop()
        elif not re.fullmatch(r"-pno:[\w.-]+", word.value or ""):
            left.append(word)
    return left


def guard_make(words: Sequence[Word], place: Place) -> Iterator[Concern]:  # noqa: ARG001 - the form of all guards
    """Targets, but no variables: one may be the shell that runs everything."""
    given = MAKE.scan(words[1:])
    yield from given.concerns
    for operand in given.operands:
        if operand.value is None or not re.fullmatch(r"[\w.%/+@:-]+", operand.value):
            yield Concern(message=f"'{operand.text}' sets a variable of make")


def guard_cmake(words: Sequence[Word], place: Place) -> Iterator[Concern]:
    """What is built belongs to the workspace."""
    yield from CMAKE.scan(words[1:]).concerns
    for word in words[1:]:
        if re.match(r"/|~|\.\.", word.value or word.prefix) and not place.contains(word.value or "/"):
            yield Concern(message=f"'{word.text}' is outside of the workspace")


def guard_ant(words: Sequence[Word], place: Place) -> Iterator[Concern]:
    """A definition is glued to its letter."""
    yield from guard_by(ANT)(words, place)
    if any(word.prefix.startswith("-D") for word in words):
        yield Concern(message="-D changes what is built")


def guard_go(words: Sequence[Word], place: Place) -> Iterator[Concern]:
    """What is built or run belongs to the workspace."""
    given = GO.scan(words[2:])
    yield from given.concerns
    if len(words) > 1 and words[1].value == "env" and given.has("u", "w"):
        yield Concern(message="go env changes the settings of go")
    if len(words) > 1 and words[1].value in ("run", "install", "get"):
        for operand in given.operands[:1]:
            if not (operand.value or "").startswith(".") or not place.contains(
                (operand.value or "").removesuffix("...")
            ):
                yield Concern(message=f"'{operand.text}' is code from elsewhere")


def guard_cargo(words: Sequence[Word], place: Place) -> Iterator[Concern]:  # noqa: ARG001 - the form of all guards
    """A toolchain that is named is another program."""
    if len(words) > 1 and words[1].prefix.startswith("+"):
        yield Concern(message="another toolchain is named")
    ended = next((at for at, word in enumerate(words) if word.value == "--"), len(words))
    given = CARGO.scan(words[1:ended])
    yield from given.concerns
    for value in given.values("target"):
        text = value if isinstance(value, str) else value.value if value else None
        if text is None or not re.fullmatch(r"[\w-]+", text):
            yield Concern(message="a target in a file names its own linker")
    if any(word.value is None for word in words[ended:]):
        yield Concern(message="what the tests are given is not certain")


BUILD_GUARDS: dict[str, Callable[[Sequence[Word], Place], Iterator[Concern]]] = {
    **dict.fromkeys(names("npm pnpm yarn"), guard_by(NPM)),
    **dict.fromkeys(names("pytest py.test"), guard_pytest),
    "cargo": guard_cargo,
    "go": guard_go,
    **dict.fromkeys(names("make gmake"), guard_make),
    **dict.fromkeys(names("pip pip3 uv"), guard_by(PIP)),
    "cmake": guard_cmake,
    "ninja": guard_by(NINJA),
    "meson": guard_by(MESON),
    "just": guard_by(JUST),
    "task": guard_by(TASK),
    "rake": guard_by(RAKE),
    "mvn": guard_by(MAVEN),
    "gradle": guard_by(GRADLE),
    "ant": guard_ant,
    **dict.fromkeys(names("scons waf"), guard_by(SCONS)),
}
