"""Package managers and build tools: they run the project's own code, and no option should make it another's."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from toolyard.permissions.programs.options import ELSEWHERE, RUNS, WRITES, Concern, Options

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from toolyard.bash.syntax.words import Word
    from toolyard.permissions.programs.options import FolderFacts, Guard


CARGO = Options(
    flags="""
        -vqr verbose quiet release lib bins tests benches examples all-targets workspace all all-features no-run
        no-default-features no-fail-fast doc offline frozen locked keep-going future-incompat-report check
    """,
    values="-pjF package features jobs profile target bin test bench example exclude message-format color edition",
    harms={
        "config -ZC": ELSEWHERE,
        "open": RUNS,
        "manifest-path target-dir out-dir artifact-dir lockfile-path": ELSEWHERE,
        "fix allow-dirty allow-staged": WRITES,
    },
)
GO = Options(
    flags="""
        v x n a race msan asan cover json short failfast list trimpath fix m u t e deps find test work i benchmem
    """,
    values="run count timeout tags mod p parallel cpu bench benchtime skip shuffle covermode coverpkg f",
    writes="o coverprofile cpuprofile memprofile blockprofile mutexprofile trace outputdir",
    harms={
        "exec toolexec vettool http": RUNS,
        "overlay modfile C pkgdir modcacherw pgo installsuffix": ELSEWHERE,
        "ldflags gcflags asmflags gccgoflags compiler": "may run another program",
        "w": "changes the settings of go",
    },
    style="single",
)
MAKE = Options(
    flags="""
        -bmBdeikKnqrRsStvwpLhO always-make debug environment-overrides ignore-errors keep-going just-print dry-run
        recon question no-builtin-rules no-builtin-variables silent quiet no-silent stop touch version print-directory
        no-print-directory warn-undefined-variables print-data-base check-symlink-times trace help
    """,
    optional="-jl jobs load-average output-sync max-load",
    values="-oW old-file assume-old what-if new-file assume-new",
    harms={"-f file makefile": ELSEWHERE, "-C directory": ELSEWHERE, "-I include-dir": ELSEWHERE, "-E eval": RUNS},
    complete=True,
)
CMAKE = Options(
    values="-GABT target parallel config preset",
    harms={"-CPE": RUNS, "-D": "may name another program", "-S": ELSEWHERE, "install open": "writes files"},
)
ANT = Options(
    harms={"f file buildfile lib logger listener logfile l D main propertyfile find s inputhandler": ELSEWHERE},
    style="single",
)


def guard_make(words: Sequence[Word], _folder: FolderFacts) -> Iterator[Concern]:
    """Targets, but no variables: one may be the shell that runs everything."""
    given = MAKE.scan(words[1:])
    yield from given.concerns
    for operand in given.operands:
        if operand.value is None or not re.fullmatch(r"[\w.%/+@:-]+", operand.value):
            yield Concern(message=f"'{operand.text}' sets a variable of make")


def guard_cmake(words: Sequence[Word], folder: FolderFacts) -> Iterator[Concern]:
    """What is built belongs to the workspace."""
    yield from CMAKE.scan(words[1:]).concerns
    for word in words[1:]:
        if re.match(r"/|~|\.\.", word.prefix) and not folder.contains(word.value or "/"):
            yield Concern(message=f"'{word.text}' is outside of the workspace")


def guard_ant(words: Sequence[Word], folder: FolderFacts) -> Iterator[Concern]:
    """A definition is glued to its letter."""
    yield from ANT(words, folder)
    if any(word.prefix.startswith("-D") for word in words):
        yield Concern(message="-D changes what is built")


def guard_go(words: Sequence[Word], folder: FolderFacts) -> Iterator[Concern]:
    """What is built or run belongs to the workspace."""
    given = GO.scan(words[2:])
    yield from given.concerns
    if len(words) > 1 and words[1].value == "env" and given.has("u", "w"):
        yield Concern(message="go env changes the settings of go")
    if len(words) > 1 and words[1].value in ("run", "install", "get"):
        for operand in given.operands[:1]:
            path = operand.value or ""
            if not path.startswith(".") or not folder.contains(path.removesuffix("...")):
                yield Concern(message=f"'{operand.text}' is code from elsewhere")


def guard_cargo(words: Sequence[Word], _folder: FolderFacts) -> Iterator[Concern]:
    """A toolchain that is named is another program."""
    if len(words) > 1 and words[1].prefix.startswith("+"):
        yield Concern(message="another toolchain is named")
    ended = next((at for at, word in enumerate(words) if word.value == "--"), len(words))
    given = CARGO.scan(words[1:ended])
    yield from given.concerns
    for value in given.values("target"):
        if value is None or not re.fullmatch(r"[\w-]+", value):
            yield Concern(message="a target in a file names its own linker")
    if any(word.value is None for word in words[ended:]):
        yield Concern(message="what the tests are given is not certain")


BUILD_GUARDS: dict[str, Guard] = {
    "npm pnpm yarn": Options(
        flags="""
        -sdDPBEOqvhyf silent quiet verbose save save-dev save-exact save-prod save-optional json long parseable
        if-present workspaces include-workspace-root ignore-scripts production dry-run no-audit no-fund force yes
        version help offline prefer-offline no-save loglevel audit fund
    """,
        values="-w workspace omit include depth tag otp",
        harms={
            "-C prefix cwd dir": ELSEWHERE,
            "-g global location": "installs for all projects",
            "script-shell shell node-options init-module onload-script git node-gyp editor viewer browser": RUNS,
            "-cx call eval exec package": RUNS,
            "userconfig globalconfig config use-yarnrc registry": ELSEWHERE,
            "ca cafile key cert https-proxy http-proxy proxy": ELSEWHERE,
            "cache cache-folder modules-folder store-dir global-folder link-folder": WRITES,
        },
    ),
    "cargo": guard_cargo,
    "go": guard_go,
    "make gmake": guard_make,
    "pip pip3 uv": Options(
        harms={
            "-t target root prefix log cache-dir build src": WRITES,
            "python config-settings global-option install-option build-option": RUNS,
            "-i index-url extra-index-url find-links -f trusted-host proxy cert client-cert": ELSEWHERE,
        }
    ),
    "cmake": guard_cmake,
    "ninja": Options(values="-jkldw", harms={"-f": ELSEWHERE, "-C": ELSEWHERE, "-t": "does more than to build"}),
    "meson": Options(harms={"-C": ELSEWHERE, "-D": ELSEWHERE, "native-file cross-file wrap-mode prefix": ELSEWHERE}),
    "just": Options(
        flags="-lnqv list dry-run quiet verbose summary evaluate dump show unsorted fmt check",
        harms={
            "-fd justfile working-directory": ELSEWHERE,
            "-ce command edit choose chooser shell shell-arg shell-command dotenv-path dotenv-filename set": RUNS,
        },
    ),
    "task": Options(
        flags="-alnsvp list list-all dry silent verbose parallel status summary force",
        harms={"-tdg taskfile dir global entrypoint init": ELSEWHERE},
    ),
    "rake": Options(
        harms={"-frRILeEpCg rakefile require rakelibdir libdir execute execute-print system require": ELSEWHERE}
    ),
    "mvn": Options(harms={"-fsgtlD file settings global-settings toolchains log-file define": ELSEWHERE}),
    "gradle": Options(
        harms={
            "-bIpgcPD build-file init-script project-dir gradle-user-home settings-file include-build": ELSEWHERE,
            "project-prop system-prop project-cache-dir scan": ELSEWHERE,
        }
    ),
    "ant": guard_ant,
    "scons waf": Options(harms={"-fCYI file directory makefile sconstruct include-dir site-dir repository": ELSEWHERE}),
}
BUILD_TABLES = {"make gmake": MAKE, "cmake": CMAKE}
