"""The rules that every line is tried under."""

from __future__ import annotations

from effects.judge import Setup

LOOKERS = (
    *("git **", "grep **", "find **", "cat **", "ls **", "sed **", "awk **", "jq **", "sort **", "uniq **", "tar **"),
    *("diff **", "tree **", "head **", "tail **", "wc **", "file **", "xargs **", "rg **", "fd **", "less **", "od **"),
    *("unzip **", "zip **", "gzip **", "xxd **", "strings **", "column **", "cut **", "tee **", "man **", "echo **"),
    *("date **", "ps **", "du **", "printf **", "env **", "cd **", "test **", "for **", "split **", "gunzip **"),
)
RUNNERS = (
    *("npm test **", "npm run **", "npm **", "python3 **", "make **", "docker **", "pytest **", "node **", "cargo **"),
    *("pip **", "bash **", "sh **", "perl **", "gcc **", "curl **", "wget **", "ssh **", "rm **", "mv **", "chmod **"),
)
SETUPS = {
    setup.name: setup
    for setup in (
        Setup(name="read-only", permissions={"preset": "read-only"}, confined=True, changes=False),
        Setup(name="workspace", permissions={"preset": "workspace"}, confined=True),
        Setup(name="allowlist", permissions={"preset": "allowlist"}),
        Setup(name="ask-everything", permissions={"preset": "ask-everything"}, confined=True, changes=False),
        Setup(
            name="lookers",
            permissions={"preset": "workspace", "allow": list(LOOKERS)},
            writers=r"\b(?:git|zip|unzip|gzip|gunzip|tar|split|tee)\b",
        ),
        Setup(name="runners", permissions={"preset": "workspace", "allow": list(RUNNERS)}, runs=True),
        Setup(name="sandboxed", permissions={}, runs=True),
        Setup(name="trusted", permissions={"preset": "trusted"}, runs=True),
    )
}
