"""Lines that nobody thought up: harmless ones with something hostile put in, and hostile ones in another dress."""

from __future__ import annotations

import random
import re
import shlex
from collections.abc import Callable, Iterator

from effects.corpus import by_hand
from effects.harmless import looking, working

OUTSIDE = (
    *("../neighbour/secret.txt", "@NEIGHBOUR@/secret.txt", "links/file", "links/f*", "links/folder/secret.txt"),
    *("~/notes/private.txt", "{links/file,x}", "../neighbour", "links/folder", "links", "/etc/passwd"),
    *("$HOME/notes/private.txt", "links/deep", "l*/*", ".{.,}/neighbour/secret.txt", "[l]inks/file"),
    *("ways/self/cwd/../neighbour/secret.txt", "../n*/s*", "repos/pointer", "/proc/self/environ", "links/folder/*"),
    *("/dev/fd/0", "~+/../neighbour/secret.txt", "src/../links/file"),
)  # fmt: skip
OPTIONS = (
    *("-o made", "-omade", "--output=made", "-f evil/outside.list", "-f../neighbour/secret.txt", "-R", "-L", "-H"),
    *("-r", "-delete", "-exec ./p ;", "--files0-from=evil/outside.list0", "-i", "-n", "-e '1e ./p'"),
    *("-c core.fsmonitor=./p", "--no-index", "-C ../neighbour", "-C repos/planted", "-C repos/pointer"),
    *("--ext-diff", "--textconv", "-O./p", "-w made", "--follow", "--include=x", "--exclude-from=links/file"),
    *("-D exec", "-fprint made", "-fls made", "--file=links/file", "--compress-program=./p", "-T ../neighbour"),
    *("--rawfile x links/file", "--", "-t links/folder", "-F links/file", "--l"),
)  # fmt: skip
CARRIERS = (
    "echo $({})",
    'echo "$({})"',
    "cat <({})",
    "{} | cat",
    "{} | sort",
    "{} | head -3",
    "cat notes.txt | {}",
    "true && {}",
    "false || {}",
    "if true; then {}; fi",
    "for i in 1; do {}; done",
    "( {} )",
    "{{ {}; }}",
    "! {}",
    "{} &",
    "{} & wait",
    "cd src && {}",
    "cd odd/plain && {}",
    "cd links && {}",
    "cd repos/planted && {}",
    "cd repos/pointer; {}",
    "timeout 2 {}",
    "command {}",
    "nice {}",
    "time {}",
    "env {}",
    "{} 2>/dev/null",
    "{} 2>&1",
    "{} > made",
    "{} >> notes.txt",
    "{} < links/file",
    "set -e; {}",
    "while read f; do {}; done < evil/names.txt",
    "case x in x) {};; esac",
    "cat <<E\n$({})\nE",
    "x=1; {}",
    "echo links/file | xargs {}",
    "find links -name 'f*' | xargs {}",
    "find links -exec {} \\;",
    "find . -maxdepth 1 -name p -exec {} {{}} +",
    'for f in links/*; do {} "$f"; done',
    "for f in 'links/file x'; do {} $f; done",
    "while read f; do {} $f; done < evil/outside.list",
    "{} $(cat evil/outside.list)",
    "{} links/*",
    "{} {{links/file,notes.txt}}",
)
"""`{}` is a line; `{{` is a brace."""


def mutants(seed: int = 1) -> Iterator[str]:
    """Without end, and the same for the same seed."""
    chance = random.Random(seed)
    harmless = [line for line in (*looking(), *working()) if "\n" not in line]
    hostile = [line for lines in by_hand().values() for line in lines if isinstance(line, str) and "\n" not in line]
    while True:
        line = chance.choice(harmless if chance.random() < 0.7 else hostile)
        for _ in range(chance.choice((1, 1, 2, 3))):
            line = chance.choice(MUTATIONS)(line, chance)
        if line.count("sleep") == 0 and len(line) < 400:
            yield line


def replace_word(line: str, chance: random.Random) -> str:
    """A word that names something becomes one that names something outside."""
    return change_word(line, chance, lambda _: chance.choice(OUTSIDE))


def add_word(line: str, chance: random.Random) -> str:
    words = line.split(" ")
    words.insert(chance.randint(1, len(words)), chance.choice((*OUTSIDE, *OPTIONS)))
    return " ".join(words)


def carry(line: str, chance: random.Random) -> str:
    return chance.choice(CARRIERS).format(line)


def join(line: str, chance: random.Random) -> str:
    other = chance.choice(looking() if chance.random() < 0.5 else by_hand()["programs"])
    return chance.choice((" ; ", " && ", " || ", " | ", "\n", " & ")).join((line, str(other)))


def respell(line: str, chance: random.Random) -> str:
    """A word in another spelling of the same."""
    spellings: tuple[Callable[[str], str], ...] = (
        lambda word: re.sub(r"(\w)", r"\\\1", word),
        lambda word: "$'" + "".join(f"\\x{ord(letter):02x}" for letter in word) + "'",
        lambda word: f"{{{word},}}",
        lambda word: f"{{{word},{word}}}",
        lambda word: f"{word[:1]}''{word[1:]}",
        lambda word: f'{word[:2]}"{word[2:]}"',
        lambda word: f"[{word[:1]}]{word[1:]}",
        lambda word: f"{word[:-1]}?",
        lambda word: f"{word[: len(word) // 2]}*",
        lambda word: f"$(echo {shlex.quote(word)})",
        lambda word: f"${{x:-{word}}}",
        lambda word: f"./{word}",
        lambda word: f"src/../{word}",
    )
    return change_word(line, chance, lambda word: chance.choice(spellings)(word))


def join_option(line: str, chance: random.Random) -> str:
    """An option and its value become one word, or two options one."""
    found = list(re.finditer(r"(?<= )(-{1,2}\w[\w-]*) (?=\S)", line))
    if not found:
        return add_word(line, chance)
    one = chance.choice(found)
    return f"{line[: one.end(1)]}{chance.choice(('', '='))}{line[one.end() :]}"


def shorten_option(line: str, chance: random.Random) -> str:
    """A long option by its beginning, as GNU programs take it."""
    found = list(re.finditer(r"(?<= )--\w[\w-]{3,}", line))
    if not found:
        return replace_word(line, chance)
    one = chance.choice(found)
    return f"{line[: one.start()]}{one[0][: chance.randint(3, len(one[0]))]}{line[one.end() :]}"


def change_word(line: str, chance: random.Random, change: Callable[[str], str]) -> str:
    places = list(re.finditer(r"(?<= )[\w./*~-]+(?= |$)", line))
    if not places:
        return add_word(line, chance)
    place = chance.choice(places)
    return f"{line[: place.start()]}{change(place[0])}{line[place.end() :]}"


MUTATIONS = (
    replace_word,
    replace_word,
    add_word,
    add_word,
    carry,
    carry,
    join,
    respell,
    respell,
    join_option,
    shorten_option,
)
