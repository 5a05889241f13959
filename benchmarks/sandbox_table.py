"""`python -m benchmarks.sandbox_table [--write]`: what each backend keeps in for whom, found out by trying.

Run as root, which can be everybody. `--write` puts the table into docs/security.md.
"""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from toolyard.core.sandbox_properties import PROPERTIES, PROPERTY_DESCRIPTIONS  # noqa: E402
from users import as_other  # noqa: E402

PAGE = ROOT / "docs" / "security.md"
WHO = {
    "root": as_other(),
    "user": as_other(ordinary=True),
    "root, contained": as_other(contained=True),
    "user, contained": as_other(ordinary=True, contained=True),
}
PATIENCE = 120


def main(arguments: list[str]) -> int:
    if os.geteuid() != 0:
        print("only root can be everybody", file=sys.stderr)
        return 2
    found = {who: probe(prefix) for who, prefix in WHO.items()}
    text = "\n".join(
        [f"Found on Linux {platform.release().partition('-')[0]}, {platform.machine()}:", "", *table(found)]
    )
    print(text)
    if "--write" in arguments:
        page = re.sub(r"(?s)(<!-- table -->\n).*(<!-- end -->)", lambda m: f"{m[1]}{text}\n{m[2]}", PAGE.read_text())
        PAGE.write_text(page)
    return 0


def probe(prefix: list[str]) -> dict[str, dict]:
    argv = [*prefix, sys.executable, "-m", "toolyard.process.sandbox.self_test.probe"]
    ran = subprocess.run(argv, capture_output=True, timeout=PATIENCE, cwd="/", check=True)
    return json.loads(ran.stdout)


def table(found: dict[str, dict[str, dict]]) -> list[str]:
    """A row for each property, a column for each backend and user; backends that nobody here can have are left out."""
    columns = [(backend, who) for backend in next(iter(found.values())) for who in found if has(found[who][backend])]
    return [
        f"| | {' | '.join(f'{backend}: {who}' for backend, who in columns)} |",
        f"|---|{'---|' * len(columns)}",
        *(
            f"| `{name}`: {PROPERTY_DESCRIPTIONS[name]} | {' | '.join(cell(found, name, *one) for one in columns)} |"
            for name in PROPERTIES
        ),
        "",
        *(f"- {backend}: {who}: {reason(found[who][backend])}" for backend, who in missing(found)),
        *open_ways(found),
    ]


def open_ways(found: dict[str, dict[str, dict]]) -> list[str]:
    """A line for each property that a backend does not keep, with all the ways out by their names."""
    ways: dict[tuple[str, str], list[str]] = {}
    for backends in found.values():
        for backend, one in backends.items():
            for name, ways_out in one["open"].items() if backend != "none" and has(one) else ():
                ways.setdefault((backend, name), []).extend(ways_out)
    rows = ((backend, name, dict.fromkeys(names)) for (backend, name), names in ways.items() if names)
    return [
        f"- {backend} leaves open, of `{name}`: {', '.join(way.replace('_', ' ') for way in names)}"
        for backend, name, names in rows
    ]


def has(one: dict) -> bool:
    return one["failure"] is None


def reason(one: dict) -> str:
    """Its first sentence."""
    return str(one["failure"]).partition(". ")[0]


def missing(found: dict[str, dict[str, dict]]) -> list[tuple[str, str]]:
    return [(backend, who) for who in found for backend in found[who] if not has(found[who][backend])]


def cell(found: dict[str, dict[str, dict]], name: str, backend: str, who: str) -> str:
    """`kept`, or how many of the tries got out."""
    out = found[who][backend]["open"][name]
    return f"{len(out)} ways out" if len(out) > 1 else "1 way out" if out else "kept"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
