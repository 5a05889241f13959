"""Bash scripts of several lines, put together by chance from a grammar; the same for the same seed."""

from __future__ import annotations

import re
from random import Random

CHOICES = {
    "name": ["a", "b", "c", "total", "word"],
    "list": ["list", "rest"],
    "value": [
        "one",
        "'two words'",
        "3",
        "'x*y'",
        "''",
        '"$a"',
        '"${b:-none}"',
        '"it\'s"',
        "é",
        r"'a\tb'",
        "$((2 + 3))",
    ],
    "number": ["0", "1", "7", "12", "a", "total", "$#", "${#word}", "2 ** 3"],
    "words": ["1 2 3", "x y", '"$a" "$b"', "{a..c}", "$(echo p q)", '"${list[@]}"', "$a $b"],
    "test": [
        *("true", "false", '[ -n "$a" ]', "[[ $a == o* ]]", "((total > 3))", "[[ $word =~ ^[a-z]+$ ]]", "[ -e made ]"),
        *('[ "$a" = "$b" ]', "! true", 'grep -q o <<<"$a"', "[[ -v b && ! -v nothing ]]"),
    ],
}
"""What a name in braces becomes."""
SIMPLE = [
    "{name}={value}",
    "{name}+={value}",
    'echo "{name}: ${name}" $?',
    "echo {words}",
    'printf "%s|" {words}; echo',
    "((total += {number}))",
    "total=$(({number} * 2)); echo $total",
    "list=({words}); echo ${#list[@]} ${list[-1]}",
    'list+=({value}); printf "<%s>" "${list[@]}"; echo',
    "declare -A map=([k]={value} [m]=2); echo ${map[k]} ${#map[@]}",
    'echo "${a:-unset}" "${a:+set}" "${#a}" "${a^^}" "${a%e}" "${a/o/0}"',
    'echo "$LINENO" "$0" "$#" "$*"',
    'set -- {words}; echo $# $1; shift; echo "$@"',
    "export {name}; env | grep -c '^{name}='",
    "unset {name}",
    "echo {value} >made; cat made; wc -l <made",
    "echo more >>made; sort made | uniq -c | tr -s ' '",
    "cat <<EOF\nhere $a $((1 + 1))\nEOF",
    "cat <<'EOF'\nliteral $a `b`\nEOF",
    'read -r a b <<<{value}; echo "$a/$b"',
    "while read -r line; do echo \"<$line>\"; done < <(printf 'p\\nq\\n')",
    "printf 'p\\nq\\n' | while read -r c; do a=$c; done; echo \"$a\"",
    'mapfile -t list < <(seq 3); echo "${list[@]}"',
    "mkdir -p sub; cd sub; pwd | sed 's|.*/||'; cd ..",
    "( {name}={value}; cd /; echo $PWD; exit 3 ); echo $?",
    "echo $(echo {value}; false) $?",
    "false | true; echo ${PIPESTATUS[@]} $?",
    "seq 5 | sed -n 2,3p | paste -sd+",
    "echo {value} 2>&1 >&2 | cat",
    "{ echo out; echo err >&2; } 2>&1",
    "true && echo yes || echo no; false && echo yes || echo no",
    "(exit 5); echo $?",
    "sleep 0 & wait $!; echo $?",
    "printf -v word '%03d' {number}; echo $word",
    "declare -i count={number}; count+=2; echo $count",
    "alias say='echo said'; unalias say",
    "eval 'echo evaluated; {name}=e'; echo ${name}",
    "IFS=,; set -- $a; IFS=$' \\t\\n'; echo $#",
    "echo *; echo [m]ade; echo 'no*pe'",
    "let total={number}; echo $?",
    "type -t echo; command -v cd; hash -r",
    "trap 'echo usr' USR1; kill -USR1 $BASHPID; trap - USR1",
    "exec 5>log; echo logged >&5; exec 5>&-; cat log",
    "echo {value} | tee >(cat >tee.out) >/dev/null; wait; echo teed",
    "[[ $a < $b ]]; echo $?",
    "getopts xy: opt -x -y v; echo $opt $OPTIND; OPTIND=1",
]
COMPOUND = [
    "if {test}; then\n{body}\nelse\n{body}\nfi",
    "if {test}\nthen {simple}\nelif {test}; then\n{body}\nfi",
    "for {index} in {words}; do\n  echo ${index}\n{body}\ndone",
    "for (({index} = 0; {index} < 3; {index}++)); do\n  (({index} == 1)) && continue\n{body}\ndone",
    "{index}=0\nwhile (({index} < 3)); do\n  (({index} += 1))\n{body}\n  [[ ${index} == 2 ]] && break\ndone",
    "{index}=0\nuntil {test} || (({index} > 1)); do\n  (({index} += 1))\n{body}\ndone",
    "case $a in\n  o*) {simple} ;;\n  '' | x*)\n{body}\n    ;;\n  *) echo other ;;\nesac",
    "f() {\n  local a=$1\n{body}\n  return {status}\n}\nf {value}; echo $?",
    "f() {\n{body}\n}\nf {words} | cat",
    "{\n{body}\n} 2>&1 | cat",
    "(\n{body}\n)",
    'x=$(\n{body}\n)\necho "[$x]"',
    "for i in 1 2; do\n  for j in 1 2; do\n    [[ $i$j == 12 ]] && continue 2\n    echo $i$j\n  done\ndone",
    "coproc { cat; }; echo to >&${COPROC[1]}; read -r a <&${COPROC[0]}; echo $a; exec {COPROC[1]}>&-; wait",
]
OPTIONS = [
    "set -u",
    "set -e",
    "set -eu",
    "set -o pipefail",
    "set -euo pipefail",
    "set -f",
    "shopt -s nullglob",
    "set -x",
]
FAULTS = [
    'echo "$nothing" "${nothing:-}"', ': "${nothing:?is missing}"', "echo $((1 / 0))", "((1 / 0)); echo $?",
    "no_such_command", "cd /no/such/folder", "readonly r=1; r=2; echo after", "false", "false || true", "(exit 4)",
    "ls /no/such/file", "[ 1 -eq x ]", "return 3", "break", "local x=1", "unset -v 1x", "declare -i n=08",
    "echo ${a!b}", "printf '%d\\n' x", "echo 'open", "if true; then echo x", "echo )", "done",
    "for i in; do", "exec no_such_program", "shift 5; echo $?", "test a b c d", "kill -0 999999", "x=(1 2",
    "echo ${list[x y]}", "read -t 0 x; echo $?", "exit 6", "let 'a = '", "set -o nosuch",
]  # fmt: skip
DROPPING_FAULTS = [
    "echo 'open",
    "if true; then echo x",
    "echo )",
    "done",
    "for i in; do",
    "x=(1 2",
    "declare -i n=08",
    "echo ${list[x y]}",
]
"""They end `bash -c`, but not the shell of a session."""
TRAPS = [
    "trap 'echo bye' EXIT", "trap 'echo err $?' ERR", "trap 'echo dbg >/dev/null' DEBUG", "trap 'echo ret' RETURN",
    "trap 'echo err $LINENO' ERR; set -E", "trap '' USR2", "trap 'echo x; exit 9' EXIT",
]  # fmt: skip
ENDINGS = ["", "", "", "exit", "exit 3", "true", "false", "echo end", "(exit 7)", "echo no newline | tr -d '\\n'"]
BESIDE = re.compile(r"[|&]|coproc|[<>]\(")
"""What runs beside something else, so that a trace comes in any order and has process ids in it."""
PLACE = re.compile(r"\{([a-z]+)\}")


class ScriptMaker:
    """Makes one script after the other."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)

    def script(self) -> str:
        """Some options, some statements, and sometimes what goes wrong."""
        chance = self._random
        lines = [chance.choice(OPTIONS)] if chance.random() < 0.4 else []
        lines += [self._statement(depth=2) for _ in range(chance.randint(2, 5))]
        fault = chance.choice(FAULTS) if chance.random() < 0.5 else ""
        lines.insert(chance.randint(0, len(lines)), fault)
        lines.append(chance.choice(ENDINGS))
        if chance.random() < 0.3:
            lines.insert(0, trap := chance.choice(TRAPS))
            if trap.endswith("EXIT"):  # only an end of the shell itself runs it
                lines.append("exit")
                lines = [line for line in lines if line not in DROPPING_FAULTS]
        text = "\n".join(filter(None, lines))
        return text.replace("set -x\n", "") if BESIDE.search(text) else text

    def _statement(self, depth: int) -> str:
        kinds = SIMPLE + COMPOUND * 2 if depth > 0 else SIMPLE
        return self._filled(self._random.choice(kinds), depth)

    def _filled(self, text: str, depth: int) -> str:
        return PLACE.sub(lambda place: self._chosen(place[1], depth), text)

    def _chosen(self, name: str, depth: int) -> str:
        if name == "body":
            count = self._random.randint(1, 2)
            return "\n".join(self._statement(depth - 1) for _ in range(count))
        if name == "simple":
            return self._filled(self._random.choice([each for each in SIMPLE if "\n" not in each]), 0)
        if name == "index":
            return f"i{depth}"
        if name == "status":
            return str(self._random.randint(0, 4))
        return self._random.choice(CHOICES[name]) if name in CHOICES else "{" + name + "}"
