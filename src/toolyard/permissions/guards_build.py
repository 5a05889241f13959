"""Programs that build, test and deploy: they run the project's own code, and no option should make it another's."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from toolyard.permissions.options import Concern, options

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from toolyard.permissions.options import Options
    from toolyard.permissions.places import Place
    from toolyard.shell.words import Word

__all__ = ["BUILD_GUARDS", "SUBCOMMANDS", "subcommand_concerns"]

RUNS = "runs another program"
WRITES = "writes a file"
OTHER = "takes the code or the settings from elsewhere"

NPM = options(
    flags="-sdDPBEOqvhyf silent quiet verbose save save-dev save-exact save-prod save-optional json long parseable"
    " if-present workspaces include-workspace-root ignore-scripts production dry-run no-audit no-fund force yes version help"
    " offline prefer-offline no-save loglevel audit fund",
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
    flags="-vqslxh verbose quiet exitfirst lf last-failed ff failed-first nf new-first sw stepwise co collect-only"
    " no-header no-summary showlocals no-cov strict-markers strict-config help version cache-show setup-show setup-only",
    values="-kmnWr maxfail tb durations durations-min timeout ignore ignore-glob deselect color capture dist numprocesses"
    " randomly-seed cov-fail-under seed last-failed-no-failures show-capture assert junit-prefix junitprefix lfnf",
    optional="cov cov-report cov-branch reruns",
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
    flags="-vqr verbose quiet release lib bins tests benches examples all-targets workspace all all-features no-run"
    " no-default-features no-fail-fast doc offline frozen locked keep-going future-incompat-report check",
    values="-pjF package features jobs profile target bin test bench example exclude message-format color edition",
    harms={
        "config -ZC": OTHER,
        "manifest-path target-dir out-dir artifact-dir lockfile-path": OTHER,
        "fix allow-dirty allow-staged": WRITES,
    },
)
GO = options(
    flags="v x n a race msan asan cover json short failfast list trimpath fix m u t e deps find test work i benchmem",
    values="run count timeout tags mod p parallel cpu bench benchtime skip shuffle covermode coverpkg f",
    writes="o coverprofile cpuprofile memprofile blockprofile mutexprofile trace outputdir",
    harms={
        "exec toolexec vettool": RUNS,
        "overlay modfile C pkgdir modcacherw pgo installsuffix": OTHER,
        "ldflags gcflags asmflags gccgoflags compiler": "may run another program",
        "w": "changes the settings of go",
    },
    single_dash=True,
)
MAKE = options(
    flags="-bmBdeikKnqrRsStvwpLhO always-make debug environment-overrides ignore-errors keep-going just-print dry-run recon"
    " question no-builtin-rules no-builtin-variables silent quiet no-silent stop touch version print-directory"
    " no-print-directory warn-undefined-variables print-data-base check-symlink-times trace help",
    optional="-jl jobs load-average output-sync max-load",
    values="-oW old-file assume-old what-if new-file assume-new",
    harms={"-f file makefile": OTHER, "-C directory": OTHER, "-I include-dir": OTHER, "-E eval": RUNS},
    complete=True,
)
CONFIGURED = options(
    harms={
        "-c config config-file rcfile settings-file rulesdir resolve-plugins-relative-to ignore-path": OTHER,
        "-r require plugin plugins load-plugins init-hook import-plugin parser": "loads other code",
        "-o output output-file out-file outfile outdir report-file cache-dir cache-location": WRITES,
        "-p project root rootdir globalsetup setup-file resolver transform env runner reporter reporters": OTHER,
        "python-executable python custom-typeshed-dir install-types": OTHER,
    }
)
FORMATTER = options(harms={"config plugin config-file stdin-filename": OTHER})
PIP = options(
    harms={
        "-t target root prefix log cache-dir build src": WRITES,
        "python config-settings global-option install-option build-option": RUNS,
        "-i index-url extra-index-url find-links -f trusted-host proxy cert client-cert": OTHER,
    }
)
BUILD_FOLDER = options(harms={"-CfP": OTHER, "-E": RUNS, "D": OTHER})


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
        if value is not None and (not isinstance(value, str) or not re.fullmatch(r"term(?:-missing)?(?::skip-covered)?|", value)):
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


def guard_go(words: Sequence[Word], place: Place) -> Iterator[Concern]:
    """What is built or run belongs to the workspace."""
    given = GO.scan(words[2:])
    yield from given.concerns
    if len(words) > 1 and words[1].value in ("run", "install", "get"):
        for operand in given.operands[:1]:
            if not (operand.value or "").startswith(".") or not place.contains((operand.value or "").removesuffix("...")):
                yield Concern(message=f"'{operand.text}' is code from elsewhere")


def guard_cargo(words: Sequence[Word], place: Place) -> Iterator[Concern]:  # noqa: ARG001 - the form of all guards
    """A toolchain that is named is another program."""
    if len(words) > 1 and words[1].prefix.startswith("+"):
        yield Concern(message="another toolchain is named")
    ended = next((at for at, word in enumerate(words) if word.value == "--"), len(words))
    yield from CARGO.scan(words[1:ended]).concerns
    if any(word.value is None for word in words[ended:]):
        yield Concern(message="what the tests are given is not certain")


SUBCOMMANDS: dict[str, tuple[frozenset[str], frozenset[str]]] = {
    "npm": (
        frozenset("test t tst run run-script start stop restart ls list ll la view info show outdated audit ping version help"
                  " ci install i add pack search why explain fund doctor root prefix bin whoami dedupe prune rebuild".split()),
        frozenset("exec x explore edit config set get init create innit link publish unpublish login adduser token docs repo"
                  " bugs home owner access team hook profile deprecate star dist-tag".split()),
    ),
    "pnpm": (
        frozenset("test t run run-script start ls list outdated audit why install i add remove rm update up ci".split()),
        frozenset("exec dlx create node env config publish setup self-update server store patch".split()),
    ),
    "yarn": (
        frozenset("test run install add remove list info why outdated audit build lint start check".split()),
        frozenset("exec dlx node create config publish global link set plugin".split()),
    ),
    "cargo": (
        frozenset("build b check c test t bench doc d clippy fmt tree metadata clean update search fetch run r version help"
                  " locate-project pkgid verify-project read-manifest".split()),
        frozenset("install publish login logout owner yank new init fix vendor package uninstall add remove rm".split()),
    ),
    "go": (
        frozenset("build test vet list doc version env fmt mod run help".split()),
        frozenset("generate tool install get work clean bug fix telemetry".split()),
    ),
    "docker": (
        frozenset("ps images logs inspect info version top stats port diff history search".split()),
        frozenset("run exec create compose build buildx cp commit load import save export login logout plugin context volume"
                  " network system swarm stack service node secret config trust manifest attach start kill rm rmi push pull".split()),
    ),
    "podman": (
        frozenset("ps images logs inspect info version top stats port diff history search".split()),
        frozenset("run exec create compose build cp commit load import save export login logout machine play kube".split()),
    ),
    "kubectl": (
        frozenset("get describe logs version cluster-info explain api-resources api-versions top".split()),
        frozenset("exec run debug attach cp apply create edit replace patch delete proxy port-forward plugin config auth".split()),
    ),
    "gh": (
        frozenset("status browse search pr issue repo run release workflow label cache project org ruleset".split()),
        frozenset("alias extension ext api codespace auth secret ssh-key gpg-key config".split()),
    ),
    "uv": (
        frozenset("tree version help lock sync".split()),
        frozenset("run tool x pip python add remove publish build cache venv init self auth".split()),
    ),
    "poetry": (frozenset("show check version env list".split()), frozenset("run shell publish config".split())),
    "pip": (frozenset("list show freeze check help".split()), frozenset("config download wheel".split())),
    "pip3": (frozenset("list show freeze check help".split()), frozenset("config download wheel".split())),
    "ip": (
        frozenset("addr a address link l route r neigh n rule maddr".split()),
        frozenset("netns exec vrf xfrm monitor".split()),
    ),
}  # fmt: skip
"""For each program the commands that a rule for the whole program covers, and those that only a rule for them does."""
CARRYING = {
    "npm": {"exec", "x", "explore", "init", "create", "innit", "config", "set", "edit"},
    "pnpm": {"exec", "dlx", "create", "node", "config"},
    "yarn": {"exec", "dlx", "node", "create", "config"},
    "go": {"generate", "tool"},
    "docker": {"run", "exec", "create", "compose", "build", "buildx", "cp", "plugin", "context"},
    "podman": {"run", "exec", "create", "compose", "build", "cp", "play", "kube"},
    "kubectl": {"exec", "run", "debug", "attach", "cp", "edit", "proxy", "plugin", "config"},
    "gh": {"alias", "extension", "ext", "api", "codespace", "auth"},
    "uv": {"run", "tool", "x", "python"},
    "poetry": {"run", "shell"},
    "ip": {"netns", "vrf"},
}
"""Commands that run what their arguments say, and so are covered by no rule with `**`."""
SPELLED_OUT = {
    "uv": {"run"},
    "poetry": {"run"},
    "npm": {"exec"},
    "pnpm": {"exec"},
    "yarn": {"exec"},
    "kubectl": {"config"},
}
"""Those of them that a rule covers which spells out what they run, and leaves open only the arguments of that."""
ELSEWHERE = {
    "docker": r"-H|--host|-c|--context|--config|--tls.*|-l|-D",
    "podman": r"--url|--connection|-c|--remote|-r|--identity|--root|--runroot|--config|--module",
    "kubectl": r"-s|--server|--kubeconfig|--token|--as.*|--context|--cluster|--user|-f|--filename|--raw|--template.*|-k|-o.*template.*|-o.*-file.*",
    "gh": r"--hostname|-R.*|--repo",
    "uv": r"--python|-p|--config-file|--directory|--project|--index.*|--default-index|-i|--find-links|-f",
    "poetry": r"-C|--directory|-P|--project",
    "ip": r"-b.*|-batch|-n.*|-netns|-force",
}
"""Options by which a program talks to another server, or follows other settings."""


def subcommand_concerns(words: Sequence[Word], named: int) -> Iterator[Concern]:
    """Whether a rule covers a command of a program that has many; `named` says how many words the rule spells out."""
    name = words[0].value or ""
    usual, special = SUBCOMMANDS[name]
    for word in words[1:]:
        option = (word.value if word.value is not None else word.prefix).partition("=")[0]
        if name in ELSEWHERE and re.fullmatch(ELSEWHERE[name], option):
            yield Concern(message=f"'{word.text}' is about another place")
    first = next((word for word in words[1:] if not (word.value or "").startswith(("-", "+"))), None)
    if first is None:
        return
    if first.value is None:
        yield Concern(message=f"what {name} does is not certain")
    elif first.value in CARRYING.get(name, ()):
        if not (named >= 3 and first is words[1] and first.value in SPELLED_OUT.get(name, ())):
            yield Concern(message=f"'{name} {first.value}' runs what it is given")
    elif named < 2 and first.value not in usual:
        why = "is more than looking" if first.value in special else "is not known"
        yield Concern(message=f"'{name} {first.value}' {why}")


BUILD_GUARDS: dict[str, Callable[[Sequence[Word], Place], Iterator[Concern]]] = {
    **dict.fromkeys(("npm", "pnpm", "yarn"), guard_by(NPM)),
    **dict.fromkeys(("pytest", "py.test"), guard_pytest),
    "cargo": guard_cargo,
    "go": guard_go,
    **dict.fromkeys(("make", "gmake"), guard_make),
    **dict.fromkeys(
        ("eslint", "jest", "vitest", "mocha", "tsc", "stylelint", "webpack", "vite", "rollup", "mypy", "pyright", "flake8",
         "pylint", "tox", "nox", "rspec", "rubocop", "phpunit", "golangci-lint", "playwright", "cypress", "ava", "tap"),
        guard_by(CONFIGURED),
    ),
    **dict.fromkeys(("prettier", "black", "ruff", "isort", "gofmt", "rustfmt", "biome", "shfmt", "shellcheck"), guard_by(FORMATTER)),
    **dict.fromkeys(("pip", "pip3", "uv"), guard_by(PIP)),
    **dict.fromkeys(("ninja", "cmake", "meson", "just", "task", "rake", "mvn", "gradle", "ant", "sbt"), guard_by(BUILD_FOLDER)),
}  # fmt: skip
