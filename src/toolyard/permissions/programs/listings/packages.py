"""Package managers, build tools and what runs containers: which of their commands only list what there is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolyard.permissions.programs.listings.listing import Listing, lists_with

if TYPE_CHECKING:
    from toolyard.permissions.programs.options import Given


SECRET = ("auth", "token", "password", "key", "cert", "email", "user")


def is_setting(name: str | None) -> bool:
    """Whether the name of a setting is none of those that hold a secret."""
    return name is not None and not any(part in name.lower() for part in SECRET)


def prints_plainly(given: Given) -> bool:
    """Whether kubectl is told to print in a form of its own, and not by one that a file holds."""
    return all(value in ("json", "yaml", "wide", "name") for value in given.values("o", "output"))


NODE = ".npmrc .pnpmfile.cjs .pnpmfile.mjs pnpm-workspace.yaml .yarnrc .yarnrc.yml"
"""Files by which package managers of node run other code, or look elsewhere."""
RUST = ".cargo rust-toolchain rust-toolchain.toml"
"""Files that name other programs to cargo, or another cargo."""
NODE_LISTS = lists_with(
    flags="-alpg all json long parseable prod dev only-projects link production recursive -r",
    values="depth omit include",
    obeys=NODE,
    lists=lambda given: not given.has("g"),
)
PLAIN = lists_with(flags="-jvqah json verbose quiet all help")
PIP_LISTS = lists_with(
    flags="""
        -lvq local user not-required exclude-editable editable include-editable verbose quiet all no-index -e
        disable-pip-version-check no-color no-input
    """,
    values="exclude format",
    obeys="pyvenv.cfg",
    most=0,
)
CARGO_SHOWS = lists_with(
    flags="""
        offline locked frozen no-deps all-features no-default-features duplicates invert workspace all quiet verbose
        -deqv no-dedupe
    """,
    values="""
        depth prefix charset format edges package features target color format-version filter-platform exclude prune
        -pi
    """,
    obeys=RUST,
    is_git=True,
)
CONTAINERS = lists_with(
    flags="-aqsln all quiet size no-trunc latest digests human tree services orphans",
    values="-fn filter format last type",
)
SHOWS_UNITS = """
    status show list-units list-unit-files list-timers list-sockets list-dependencies list-jobs is-active is-enabled
    is-failed is-system-running get-default cat
""".strip()
PACKAGES: dict[str, dict[str, Listing]] = {
    "pip pip3": {
        "list freeze": PIP_LISTS,
        "show": lists_with(flags="-fvq files verbose quiet", obeys="pyvenv.cfg"),
        "check": lists_with(flags="-q", obeys="pyvenv.cfg", most=0),
        "config list": lists_with(flags="-v user global site", most=0),
        "cache dir": lists_with(most=0),
        "inspect": lists_with(flags="-lq local user", most=0, obeys="pyvenv.cfg"),
        "debug": lists_with(flags="-v", most=0),
    },
    "npm": {
        "ls list ll la": NODE_LISTS,
        "root prefix bin": lists_with(flags="-g global", obeys=NODE, most=0),
        "config get": lists_with(
            obeys=NODE, most=1, lists=lambda given: is_setting(given.operands[0].value if given.operands else None)
        ),
        "explain why": lists_with(flags="json", obeys=NODE),
        "pkg get": lists_with(flags="json", obeys=NODE),
        "help": lists_with(most=1),
        "-l": lists_with(most=0),
        "query": lists_with(obeys=NODE, most=1),
    },
    "pnpm": {"ls list la ll": NODE_LISTS, "root bin": lists_with(flags="-g", obeys=NODE, most=0), "why": NODE_LISTS},
    "yarn": {"list": lists_with(flags="json", values="depth pattern", obeys=NODE), "why": lists_with(obeys=NODE)},
    "cargo": {
        "tree metadata pkgid locate-project read-manifest verify-project": CARGO_SHOWS,
        "help": lists_with(most=1),
        "--list": lists_with(most=0),
        "version": PLAIN,
    },
    "rustup": {
        "show": lists_with(flags="-v", most=1),
        "toolchain list": PLAIN,
        "target list": lists_with(flags="installed"),
        "component list": lists_with(flags="installed"),
    },
    "go": {
        "list": lists_with(
            flags="m json e deps find test versions retracted u",
            values="f mod",
            single=True,
            obeys="go.work",
            is_git=True,
            lists=lambda given: set(given.values("mod")) <= {"readonly", "mod"},
        ),
        "env": lists_with(flags="json changed", single=True),
        "version": lists_with(flags="m v", operands="read*", single=True),
        "help doc": lists_with(flags="all short src u c cmd", single=True, obeys="go.work"),
        "mod graph": lists_with(most=0, obeys="go.work"),
        "mod why": lists_with(flags="m", single=True, obeys="go.work"),
        "mod verify": lists_with(most=0),
    },
    "uv": {
        "pip list": PIP_LISTS,
        "pip freeze": PIP_LISTS,
        "pip show": lists_with(flags="-f"),
        "python list": lists_with(flags="only-installed offline", needs="only-installed offline"),
        "version": lists_with(flags="short", most=0),
        "tool list": PLAIN,
        "cache dir": lists_with(most=0),
    },
    "poetry": {"version": lists_with(flags="-s short", most=0)},
    "gem": {
        "list": lists_with(flags="-ladi local all details installed no-versions", most=1),
        "environment": lists_with(most=1),
        "which": PLAIN,
        "contents": PLAIN,
        "help": PLAIN,
    },
    "bundle": {"--version": PLAIN},
    "composer": {"--version": PLAIN},
    "brew": {
        "list ls": lists_with(flags="-1lrt versions formula formulae cask casks full-name pinned multiple"),
        "config": lists_with(most=0),
        "deps uses": lists_with(flags="tree installed include-build direct", needs="installed tree"),
        "leaves": PLAIN,
        "--prefix": lists_with(most=1),
    },
    "conda mamba": {
        "list": lists_with(flags="json export", most=1),
        "info": lists_with(flags="-e envs json", most=0),
        "env list": PLAIN,
    },
    "apt": {
        "list": lists_with(flags="-a installed upgradable manual-installed all-versions"),
        "show policy depends rdepends search": lists_with(flags="-a names-only full installed -nf"),
    },
    "apt-cache": {
        "policy show search depends rdepends pkgnames stats madison showpkg": lists_with(
            flags="-nfa names-only full installed"
        )
    },
    "apt-mark": {"showmanual showauto showhold": PLAIN},
    "snap": {"list version": lists_with(flags="all")},
    "flatpak": {"list": lists_with(flags="app runtime user system")},
    "docker podman nerdctl": {
        "ps images": CONTAINERS,
        "image ls": CONTAINERS,
        "image list": CONTAINERS,
        "container ls": CONTAINERS,
        "container list": CONTAINERS,
        "volume ls": CONTAINERS,
        "network ls": CONTAINERS,
        "compose ps": CONTAINERS,
        "compose ls": CONTAINERS,
        "context ls": CONTAINERS,
        "version info": lists_with(values="-f format", most=0),
        "inspect history port top diff": lists_with(flags="-sqH size human no-trunc quiet", values="-f format type"),
        "logs": lists_with(flags="-t timestamps details", values="-n tail since until"),
        "system df": lists_with(flags="-v", values="format"),
        "stats": lists_with(flags="no-stream -a", values="format", needs="no-stream"),
    },
    "docker-compose": {"ps ls images version": CONTAINERS},
    "kubectl": {
        "get describe": lists_with(
            flags="-A all-namespaces show-labels no-headers",
            values="-lonL namespace selector output sort-by field-selector label-columns",
            lists=prints_plainly,
        ),
        "version": lists_with(flags="client short", values="-o output"),
        "api-resources api-versions cluster-info explain": PLAIN,
        "config get-contexts": PLAIN,
        "config current-context": PLAIN,
    },
    "helm": {"version": lists_with(flags="short client")},
    "terraform tofu": {"version": lists_with(flags="json", single=True)},
    "systemctl": {
        SHOWS_UNITS: lists_with(
            flags="-alqr all full quiet recursive no-pager no-legend plain value user system failed",
            values="-tpnos type property lines output state",
        ),
        "--version": PLAIN,
        "--failed": PLAIN,
    },
    "ip": {
        "a addr address l link r route n neigh rule": lists_with(
            lists=lambda given: all(word.value in IP_WORDS for word in given.operands[:1])
        ),
        "-br -brief -4 -6 -c -o -j": lists_with(
            flags="-br4", lists=lambda given: [word.value for word in given.operands] in IP_SHORT
        ),
    },
    "code": {"--list-extensions": lists_with(flags="show-versions", most=0)},
}
IP_WORDS: tuple[str | None, ...] = ("show", "list", "ls", "sh", None)
IP_SHORT: tuple[list[str | None], ...] = (
    ["a"],
    ["addr"],
    ["address"],
    ["link"],
    ["route"],
    ["addr", "show"],
    ["a", "show"],
)
FLAT: dict[str, Listing] = {
    "dpkg": lists_with(
        flags="""
            -lLsSpI list listfiles status search print-avail get-selections print-architecture
            print-foreign-architectures audit -C
        """,
        needs="""
            l L s S p list listfiles status search print-avail get-selections print-architecture
            print-foreign-architectures
        """,
    ),
    "dpkg-query": lists_with(
        flags="-lWLsSp list show listfiles status search no-pager",
        values="-f showformat",
        needs="l W L s S list show listfiles status search",
    ),
    "rpm": lists_with(
        flags="""
            -qalficdvRp query all list info configfiles docfiles provides requires whatprovides whatrequires last
            changelog nosignature -V
        """,
        values="qf queryformat",
        needs="q query",
        lists=lambda given: not given.has("p", "V", "qf", "queryformat"),
    ),
    "pacman": lists_with(flags="-Qeinmqlkdtsouvg query info list explicit", needs="Q query"),
    "apk": lists_with(
        flags="-vive", lists=lambda given: [word.value for word in given.operands[:1]] in (["info"], ["list"])
    ),
}
