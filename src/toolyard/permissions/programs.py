"""Programs by what they do with their arguments: run others, read code, need privileges, follow a folder's settings."""

from __future__ import annotations

import re

__all__ = [
    "CHANGES_THE_SHELL",
    "DESTRUCTIVE",
    "PRIVILEGED",
    "SETTINGS_OF_THE_FOLDER",
    "is_carrier",
    "is_interpreter",
    "is_shell",
]

PRIVILEGED = frozenset({"sudo", "doas", "su", "pkexec", "sudoedit"})
"""Run others with more rights than one has."""

CARRIERS = frozenset({
    *("aoss", "at", "batch", "bwrap", "busybox", "capsh", "cgexec", "chpst", "chroot", "chrt", "command", "coproc"),
    *("cpulimit", "daemonize", "dbus-run-session", "dlv", "entr", "env", "eval", "exec", "expect", "fakechroot"),
    *("faketime", "firejail", "flatpak", "flock", "gdb", "gdbserver", "ionice", "kubectx", "ld.so", "lldb", "ltrace"),
    *("mosh", "newgrp", "nice", "nohup", "nsenter", "numactl", "parallel", "perf", "pipx", "pkgx", "prlimit", "proot", "proxychains"),
    *("rlwrap", "rsh", "runcon", "runuser", "run-parts", "screen", "script", "scriptlive", "setarch", "setpriv", "setsid"),
    *("sg", "softlimit", "ssh", "ssh-agent", "sshpass", "start-stop-daemon", "stdbuf", "strace", "systemd-run", "taskset"),
    *("tclkit", "time", "timeout", "tmux", "toybox", "torify", "torsocks", "trap", "unbuffer", "unshare", "uvx", "valgrind"),
    *("watch", "wine", "xargs", "xvfb-run", "zsudo", "npx", "pnpx", "bunx", "dlx", "builtin", "source", ".", "find2perl"),
    *("linux32", "linux64", "i386", "x86_64", "setlocale", "runsv", "runit", "s6-setsid", "catchsegv", "crontab"),
    *("autossh", "scp", "sftp", "rsync", "dtach", "abduco", "zellij", "byobu", "multitail", "inotifywait-run", "hyperfine"),
})  # fmt: skip
"""Run what their arguments say."""

SHELLS = frozenset({
    "sh", "bash", "rbash", "zsh", "dash", "ash", "ksh", "ksh93", "mksh", "pdksh", "oksh", "yash", "posh", "fish", "csh",
    "tcsh", "rc", "es", "nu", "elvish", "xonsh", "osh", "ysh", "oil",
})  # fmt: skip

INTERPRETERS = SHELLS | {
    *("python", "pypy", "ipython", "jupyter", "bpython", "ptpython", "perl", "ruby", "irb", "jruby", "rbx", "php", "node"),
    *("nodejs", "deno", "bun", "ts-node", "tsx", "coffee", "lua", "luajit", "tclsh", "wish", "expect", "osascript", "pwsh"),
    *("powershell", "r", "rscript", "julia", "octave", "octave-cli", "matlab", "scilab", "gnuplot", "sage", "maxima", "gp"),
    *("guile", "racket", "sbcl", "clisp", "ecl", "scheme", "csi", "emacs", "emacsclient", "ghci", "runghc", "runhaskell"),
    *("ocaml", "utop", "erl", "escript", "iex", "elixir", "scala", "groovy", "groovysh", "kotlin", "kotlinc", "jshell"),
    *("java", "javaw", "clojure", "clj", "lein", "bb", "swift", "dotnet", "mono", "csi.exe", "fsi", "gforth", "m4", "dc"),
    *("ed", "ex", "vi", "vim", "nvim", "view", "vimdiff", "rvim", "nano", "pico", "joe", "micro", "less", "more", "most"),
    *("pg", "sqlite3", "psql", "mysql", "mariadb", "mongo", "mongosh", "redis-cli", "ftp", "lftp", "telnet", "nc", "ncat"),
    *("netcat", "socat", "crash", "bpftrace", "dtrace", "stap", "systemtap", "gawk-debug", "mc", "ranger", "nnn", "lf"),
    *("gimp", "blender", "qemu", "gcc-run", "tcc", "go-run", "cling", "root", "zx", "quickjs", "qjs", "mujs", "duk", "js"),
    *("raku", "perl6", "rakudo", "pil", "picolisp", "janet", "hy", "fennel", "nim", "crystal", "v", "zig", "awk-debug"),
    *("ansible", "ansible-playbook", "puppet", "chef-client", "salt-call", "nix-shell", "nix", "guix"),
}  # fmt: skip
"""Read code of any kind, from an argument, a file or their input."""
VERSIONED = re.compile(r"(?P<name>[a-z][a-z_-]*?)(?:-?\d[\d.]*[a-z]?)?(?:\.exe)?")

CHANGES_THE_SHELL = frozenset({
    "alias", "bind", "compgen", "complete", "compopt", "declare", "enable", "export", "fc", "getopts", "hash", "history",
    "let", "local", "mapfile", "readarray", "readonly", "set", "shopt", "suspend", "typeset", "unalias", "unset",
})  # fmt: skip
"""Builtins after which other commands may mean something else."""

SETTINGS_OF_THE_FOLDER = frozenset({
    *("git", "gh", "hub", "hg", "svn", "jj", "npm", "pnpm", "yarn", "bun", "node", "deno", "npx", "make", "gmake", "ninja"),
    *("cmake", "meson", "just", "task", "rake", "bundle", "gem", "cargo", "rustc", "go", "pytest", "py.test", "tox", "nox"),
    *("python", "python3", "pip", "pip3", "uv", "poetry", "pdm", "hatch", "pipenv", "pre-commit", "mvn", "mvnw", "gradle"),
    *("gradlew", "ant", "sbt", "mix", "rebar3", "dotnet", "composer", "phpunit", "php", "docker", "docker-compose", "tsc"),
    *("eslint", "prettier", "jest", "vitest", "mocha", "webpack", "vite", "rollup", "turbo", "nx", "lerna", "stylelint"),
    *("ruff", "black", "mypy", "pyright", "flake8", "pylint", "isort", "bandit", "rubocop", "rspec", "swift", "xcodebuild"),
    *("direnv", "asdf", "mise", "terraform", "tofu", "pulumi", "serverless", "vagrant", "ansible", "helm", "skaffold"),
    *("bazel", "buck2", "pants", "nix", "ctags", "vim", "nvim", "emacs", "gdb", "clang-tidy", "clang-format", "golangci-lint"),
})  # fmt: skip
"""Do what files of the folder they are started in say, and so may run anything in a folder of others."""

DESTRUCTIVE = frozenset({
    *("rm", "rmdir", "unlink", "shred", "srm", "wipe", "dd", "mkfs", "fdisk", "parted", "wipefs", "truncate", "chmod"),
    *("chown", "chgrp", "chattr", "setfacl", "mv", "ln", "install", "kill", "pkill", "killall", "xkill", "reboot"),
    *("shutdown", "halt", "poweroff", "init", "telinit", "systemctl", "service", "mount", "umount", "swapoff", "userdel"),
    *("useradd", "usermod", "groupdel", "passwd", "chpasswd", "visudo", "iptables", "nft", "ip", "route", "ifconfig"),
    *("apt", "apt-get", "dpkg", "yum", "dnf", "rpm", "pacman", "zypper", "brew", "snap", "tee", "patch", "curl", "wget"),
    *("docker", "podman", "terraform", "tofu", "aws", "gcloud", "az", "twine", "fly", "vercel", "netlify", "heroku"),
})  # fmt: skip
"""What they do cannot be taken back, or reaches beyond this machine."""


def is_carrier(name: str) -> bool:
    """Whether a program runs what its arguments say."""
    return name in CARRIERS or name in PRIVILEGED or name.startswith(("ld-linux", "ld-musl", "ld.so", "qemu-"))


def is_shell(name: str) -> bool:
    """Whether a program is a shell."""
    return name in SHELLS or base_name(name) in SHELLS


def is_interpreter(name: str) -> bool:
    """Whether a program reads code."""
    return name in INTERPRETERS or base_name(name) in INTERPRETERS


def base_name(name: str) -> str:
    """A program's name without its version, as in python3.11."""
    match = VERSIONED.fullmatch(name.lower())
    return match["name"] if match else name.lower()
