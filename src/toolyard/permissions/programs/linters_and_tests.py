"""Linters, formatters and test runners: options name code, settings or files, in many spellings."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from toolyard.permissions.programs.categories import each_name, names
from toolyard.permissions.programs.options import ELSEWHERE, RUNS, WRITES, Concern, Options, uncertain_option

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from toolyard.bash.syntax.words import Word
    from toolyard.permissions.programs.options import FolderFacts, Guard


NAMES_FILES = names("""
    appendconfig basedir bootstrap browserprovider buildfile cachedir cachedirectory cachefile cachelocation
    confcutdir config configfile configprecedence configuration coveragedirectory coveragehtml
    coveragereportsdirectory customtypeshed customtypesheddir customtypingmodule declarationdir dependencyextractor
    dir enableextensions env environment exportfixes file filter format formatter generatecpuprofile generatetrace
    globalconfig globalsetup globalteardown haste htmlreport ignorepath import importplugin includepath inifile
    inihook init inithook initscript installtypes javascript jsonoutput junitxml load loader loadplugins logfile
    logjunit moduleloader node nodeoption nodeoptions noxfile options out outdir outfile output outputdir outputfile
    outputformat outputpath package parser plugin plugins preset prettierpath printer project projects python
    pythonexecutable rcfile reporter reporteroption reporteroptions reporters reportfile reportsdirectory require
    resolvepluginsrelativeto resolver root rootdir roots rules rulesdir runner settings settingsfile settingspath
    setupfile setupfiles setupfilesafterenv shadowfile snapshotresolver sp stdinfilename tee testenvironment
    testresultsprocessor testrunner testsequencer transform tsbuildinfofile tsconfig ui watchplugins workdir
    working-directory workingdirectory
""")
"""Long options, in small letters and without dashes, that take code, settings or files from elsewhere, or write one."""
REPORTS = re.compile(r"\w*report")
BUILT_IN = names("""
    basic checkstyle codeframe colorized compact concise default doc dot full github github-actions gitlab grouped
    happy-dom html jsdom json json-lines junit list line min minimal msvs node nyan parseable pep8 progress spec
    stylish summary tap text tree unix verbose visualstudio xunit json-stream landing azure sarif edge-runtime bdd tdd
    qunit exports pretty
""")
"""Values that name something of the program's own."""
SHORT = each_name(
    {
        "eslint": "cof",
        "jest vite golangci-lint playwright black": "c",
        "vitest": "cr",
        "mocha": "rRuOn",
        "webpack stylelint bandit": "co",
        "rollup": "cop",
        "tsc": "pb",
        "babel": "od",
        "mypy flake8 ava tap prettier biome isort clang-format shellcheck gofmt rustfmt shfmt": "",
        "pyright clang-tidy": "p",
        "pylint nox": "f",
        "tox": "cx",
        "rspec": "rIOfo",
        "rubocop": "rcof",
        "phpunit": "cd",
        "cypress": "CP",
        "ruff": "o",
        "ctags": "fo",
    }
)
"""For each program the letters that do the same."""
DUAL = names("tsc clang-tidy clang-format gofmt")
"""Programs whose long options may have a single dash."""
PYTEST = Options(
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
        "-c config-file rootdir confcutdir cov-config inifile": ELSEWHERE,
        "-p": "loads a plugin",
        "-o override-ini": "changes the settings",
        "pdbcls pdb trace": RUNS,
        "basetemp debug cov-append": WRITES,
        "pastebin": "sends the results elsewhere",
        "pyargs import-mode pythonpath doctest-modules": ELSEWHERE,
    },
)


def guard_pytest(words: Sequence[Word], folder: FolderFacts) -> Iterator[Concern]:
    """Tests of the workspace, with no plugin or setting from elsewhere."""
    given = PYTEST.scan(without_unloading(words[1:]))
    yield from given.concerns
    for value in given.values("W"):
        if value is None or not re.fullmatch(r"\w+(?:::\w*)?", value):
            yield Concern(message="-W may load a module")
    for value in given.values("cov-report"):
        if value is None or not re.fullmatch(r"term(?:-missing)?(?::skip-covered)?|", value):
            yield Concern(message="a report is written")
    for operand in given.operands:
        path = operand.prefix.partition("::")[0]
        if operand.prefix.startswith("@") or (path and not folder.contains(path)):
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


def guard_tester(words: Sequence[Word], folder: FolderFacts) -> Iterator[Concern]:
    """Tests and lints the workspace by its own settings."""
    name = words[0].value or ""
    for at, word in enumerate(words[1:], 1):
        text = word.prefix
        follower = words[at + 1].value if at + 1 < len(words) else None
        if word.value is None and word.may_be_option and not re.match(r"--[a-z-]+=", text):
            yield uncertain_option(word)
        elif text.startswith("@"):
            yield Concern(message=f"'{word.text}' names a file of options")
        elif leads_elsewhere(name, text, follower):
            yield Concern(message=f"'{word.text}' takes code or settings from elsewhere, or writes a file")
        elif not text.startswith("-") and re.match(r"/|~|\.\./", text) and not folder.contains(text):
            yield Concern(message=f"'{word.text}' is outside of the workspace")


def leads_elsewhere(name: str, text: str, follower: str | None) -> bool:
    """Whether an option takes something that is not the program's own."""
    if not text.startswith("-") or text in ("-", "--"):
        return False
    if text.startswith("--") or name in DUAL:
        option, glued, value = text.partition("=")
        plain = re.sub(r"[-_.]", "", option).lower()
        chosen = value if glued else follower
        return (plain in NAMES_FILES or bool(REPORTS.fullmatch(plain))) and chosen not in BUILT_IN
    for at, letter in enumerate(text[1:], 2):
        if letter in SHORT.get(name, ""):
            return (text[at:] or follower) not in BUILT_IN
    return False


TESTER_GUARDS: dict[str, Guard] = {**dict.fromkeys(SHORT, guard_tester), "pytest py.test": guard_pytest}
