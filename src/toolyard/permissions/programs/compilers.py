"""Compilers, and programs that make documents: options load code into them, run others, or write elsewhere."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from toolyard.permissions.programs.categories import each_name
from toolyard.permissions.programs.options import LOADS, RUNS, Concern, Options, guard_by_pattern

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from toolyard.bash.syntax.words import Word
    from toolyard.permissions.programs.options import FolderFacts, Guard


def compiler(pattern: str) -> Guard:
    """What is made must be inside the workspace."""
    by_pattern = guard_by_pattern(pattern, LOADS)

    def guard(words: Sequence[Word], folder: FolderFacts) -> Iterator[Concern]:
        yield from by_pattern(words, folder)
        for word, before in zip(words[1:], words, strict=False):
            glued = (word.value or "")[2:] if re.match(r"-o.|-d$", word.value or "") else ""
            target = word.value if before.value in ("-o", "-d", "--out-dir", "-outputdir", "-odir") else glued
            if target is None or (target and (folder.moves or not folder.contains(target))):
                yield Concern(message=f"'{word.text}' may be outside of the workspace", writes=word)

    return guard


COMPILER_GUARDS: dict[str, Guard] = {
    "gcc g++ cc c++ clang clang++ cpp gfortran c89 c99 tcc icc nvcc": compiler(
        r"-wrapper|-f(?:pass-)?plugin|-B|--?specs|-Xclang|-Xlinker|-load|-iplugindir|@|--?ld-path|-fuse-ld=.*/|--config"
        r"|-Wl,.*(?:plugin|,-o|dynamic-linker)|-MF|-dump|-fprofile-(?:dir|use)|-fdump|-save-temps=|-aux-info|--sysroot|-T"
    ),
    "ld gold ld.lld ld.gold ld.bfd lld mold as nasm yasm": compiler(
        r"--?plugin|@|-dynamic-linker|-T|--script|--?dynamic-list|-Map|--reproduce"
    ),
    "rustc": compiler(
        r"(?:-C|--codegen=?)?(?:linker|link-args?|ar|link-self-contained)=|-Z|@|--sysroot|--emit=.*=|--print=.*="
    ),
    "javac": compiler(r"-J|@|--?processor|--?plugin|-Xplugin|--?processor-?path|-Xlint:x|-h$"),
    "ghc": compiler(r"-e$|-F$|-pgm|-f?plugin|--interactive|@|-package-db|-i\w|-main-is|-fbyte"),
    "protoc": guard_by_pattern(r"--plugin|@|--descriptor_set_out|-o", LOADS),
    "pandoc": Options(
        values="-frtwMVTHBAD from to read write metadata variable columns toc-depth number-offset wrap",
        writes="-o output log extract-media",
        harms={
            "-FL filter lua-filter pdf-engine pdf-engine-opt": RUNS,
            "-d defaults data-dir template syntax-definition include-in-header": "takes its settings from a file",
        },
    ),
    "pdflatex latex xelatex lualatex tex pdftex luatex xetex latexmk context tectonic": guard_by_pattern(
        r"--?(?:shell-escape|enable-write18|shell-restricted|output-directory|aux-directory|jobname|fmt|ini|progname|cnf-line"
        r"|e$|r$|pdflatex|latex|use-make|outdir|auxdir|lua|luaonly)",
        RUNS,
    ),
    "dot neato fdp sfdp twopi circo": Options(
        values="-TGNEAKlns", writes="-o", harms={"-O": "writes files beside its input"}
    ),
    "groff troff nroff tbl eqn pic soelim": Options(harms={"-UPMFI unsafe": RUNS}, values="-dfLmnorTKw"),
    "xsltproc": Options(writes="o output", harms={"writesubtree": "writes files", "load-trace": LOADS}, style="single"),
    "info": Options(
        writes="-o output dribble", harms={"restore init-file": "types keys from a file"}, values="-fnd file node"
    ),
    "patch": Options(
        harms={"-e ed get=": RUNS},
        writes="-o output -r reject-file",
        values="-pFDYzB strip",
        reads="-di directory input",
    ),
}
COMPILERS = frozenset(each_name(COMPILER_GUARDS))
