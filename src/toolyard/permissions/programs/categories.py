"""Lists of programs by what they do: run others, read code, need privileges, follow a folder's settings."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Sequence


Value = TypeVar("Value")


def names(text: str) -> frozenset[str]:
    """The words of a text, for lists that people can read."""
    return frozenset(text.split())


def each_name(table: dict[str, Value]) -> dict[str, Value]:
    """A table with a row for each name, of one whose rows are for several: `{"pip pip3": …}`."""
    return {name: value for several, value in table.items() for name in several.split()}


def name_lists(table: dict[str, str]) -> dict[str, frozenset[str]]:
    """The same for a table of lists of words."""
    return {name: names(text) for name, text in each_name(table).items()}


PRIVILEGED = names("""
    doas pkexec su sudo sudoedit
""")
"""Run others with more rights than one has."""
CARRIERS = names("""
    . aa-exec abduco asciinema at autossh batch bconsole builtin bunx busctl busybox bwrap byobu caffeinate capsh
    catchsegv cgexec choom chpst chronic chroot chrt code command concurrently coproc cpulimit cron crontab cross-env
    daemonize dbus-launch dbus-run-session dbus-send distcc distrobox dlv doppler dotenv dotenvx dtach eatmydata entr
    env envdir envuidgid eval exec expect fakechroot fakeroot faketime firejail flatpak flock gdb gdbserver gdbus
    genie gosu grc gtester hyperfine ifne ionice keychain linux32 linux64 lldb logsave lorri ltrace mosh multitime
    newgrp nice nodemon nohup npx nsenter numactl op open openvpn openvt parallel perf pexec pipx pkgx pnpx prlimit
    proot proxychains proxychains4 reptyr retry rlwrap rsh rsync run-mailcap run-one run-parts run0 runcon runit runsv
    runuser s6-setsid s6-setuidgid s6-svscan scp screen script scriptlive sem setarch setlock setpriv setsid setuidgid
    sftp sg softlimit source ssh ssh-agent ssh-copy-id sshfs sshpass start start-stop-daemon stdbuf strace su-exec
    supervisord systemd-inhibit systemd-nspawn systemd-run taskset teamocil time timeout tini tmate tmux tmuxinator
    torify torsocks toybox trap ts-node-dev tsocks ttyd uclampset unbuffer unshare uvx valgrind wait-for-it watch
    watchexec watchman wine with-contenv xargs xdg-open xdotool xvfb-run zellij
""")
"""Run what their arguments say."""
SHELLS = names("""
    ash bash csh dash elvish es fish ksh ksh93 mksh nu oil oksh osh pdksh posh rbash rc sh tcsh xonsh yash ysh zsh
""")
"""Read commands from an argument, a file or their input."""
INTERPRETERS = SHELLS | names("""
    alpine ansible ansible-playbook bb blender bpftrace bpython bun chef-client cling clisp clj clojure coffee crash
    crystal csi dc deno dotnet dtrace duk ecl ed elixir emacs emacsclient erl escript ex expect fennel fsi ftp gforth
    ghci gimp gnuplot gp groovy groovysh gs guile guix hy iex ipython irb janet java javaw joe jruby js jshell julia
    jupyter kotlin kotlinc lein less lf lftp logrotate lua luajit m4 mail mailx mariadb matlab maxima mc micro mongo
    mongosh mono more most mujs mutt mysql nano nc ncat neomutt netcat nim nix nix-shell nnn node nodejs nvim ocaml
    octave octave-cli osascript perl perl6 pg php pico picolisp pil powershell pry psql ptpython puppet pwsh pypy
    python qemu qjs quickjs r racket raku rakudo ranger rbx redis-cli root rscript ruby runghc runhaskell rview rvim
    s-nail sage salt-call sbcl scala scheme scilab smbclient socat sqlite3 stap swift systemtap tcc tclsh telnet
    ts-node tsx utop v vi view vigr vim vimdiff vipw wish zig zx
""")
"""Read code of any kind, from an argument, a file or their input."""
OBEYS_ITS_INPUT = names("""
    at batch dc ed ex ftp gnuplot lftp mariadb mongo mongosh mysql nc ncat netcat psql redis-cli smbclient socat sqlite3
    ssh telnet
""")
"""Programs whose input is commands, whatever their arguments are."""
LANGUAGES = SHELLS | names("""
    bb bpython bun clisp clj clojure coffee crystal csi deno duk ecl elixir erl escript expect fennel gforth ghci groovy
    guile hy iex ipython irb janet jruby js jshell julia lua luajit m4 mujs node nodejs ocaml octave osascript perl
    perl6 php picolisp powershell pry ptpython pwsh pypy python qjs quickjs r racket raku rscript ruby sbcl scala scheme
    swift tclsh ts-node tsx utop wish zx
""")
"""Interpreters whose input is a program when no other is given."""
GIVES_PROGRAM = re.compile(r"-[a-zA-Z]*[cemprE]$|--(?:eval|execute|expression|command|print|run|test)\b")
GIVES_PROGRAM_TO_A_SHELL = re.compile(r"-[a-zA-Z]*c[a-zA-Z]*$")
"""An option behind which the program stands."""
VERSIONED = re.compile(r"(?P<name>[a-z][a-z_-]*?)(?:-?\d[\d.]*[a-z]?)?(?:\.exe)?")
CHANGES_THE_SHELL = names("""
    alias bind compgen complete compopt declare enable export fc getopts hash history let local mapfile readarray
    readonly set shopt suspend typeset ulimit umask unalias unset
""")
"""Builtins after which other commands may mean something else."""
SETTINGS_OF_THE_FOLDER = names("""
    ansible ant asdf bandit bazel black buck2 bun bundle cargo clang-format clang-tidy cmake composer ctags deno
    direnv docker docker-compose dotnet emacs eslint flake8 gdb gem gh git gmake go golangci-lint gradle gradlew
    hatch helm hg hub isort jest jj just lerna make meson mise mix mocha mvn mvnw mypy ninja nix node nox npm npx
    nvim nx pants pdm php phpunit pip pip3 pipenv pnpm poetry pre-commit prettier pulumi py.test pylint pyright
    pytest python python3 rake rebar3 rollup rspec rubocop ruff rustc sbt serverless skaffold stylelint svn swift
    task terraform tofu tox tsc turbo uv vagrant vim vite vitest webpack xcodebuild yarn
""")
"""Do what files of the folder they are started in say, and so may run anything in a folder of others."""
DESTRUCTIVE = names("""
    apt apt-get aws az brew chattr chgrp chmod chown chpasswd curl dd dnf docker dpkg fdisk fly gcloud groupdel halt
    heroku ifconfig init install ip iptables kill killall ln mkfs mount mv netlify nft pacman parted passwd patch
    pkill podman poweroff reboot rm rmdir route rpm service setfacl shred shutdown snap srm swapoff systemctl tee
    telinit terraform tofu truncate twine umount unlink useradd userdel usermod vercel visudo wget wipe wipefs xkill
    yum zypper
""")
"""What they do cannot be taken back, or reaches beyond this machine."""


ONLY_LOOKS = names("""
    ls cat head wc grep egrep fgrep stat du df pwd cd readlink realpath basename dirname diff cmp comm cut tr nl tac
    rev fold fmt paste join column od hexdump strings md5sum sha1sum sha256sum sha512sum cksum b2sum base64 base32
    echo true false : which type seq expr sleep id whoami uname uptime nproc free exit break continue zcat zgrep
    locate whereis groups who w last tty arch lscpu lsblk lsusb lspci pgrep pidof vmstat iostat cal factor numfmt
    expand unexpand look tsort pr getconf locale
""")
"""Programs of which no option runs or writes anything."""
SPEAKS_ONLY = names("""
    : [ arch basename break cal command continue dirname echo exit expr factor false free getconf groups id jobs locale
    nproc numfmt pidof printenv printf pwd read seq sleep test true tty type uname uptime wait which whoami
""")
"""Programs to which no argument is a file to look at or to write."""
TAKES_WORDS = names(
    "cp mv ln mkdir touch rm rmdir chmod chown kill command printenv help apropos whatis tldr export set unset"
)
"""Further programs whose arguments are no command."""


def program_name(written: str | None) -> str:
    return (written or "").rpartition("/")[2]


@lru_cache(maxsize=4096)
def is_carrier(name: str) -> bool:
    return name in CARRIERS or name in PRIVILEGED or name.startswith(("ld-linux", "ld-musl", "ld.so", "qemu-"))


@lru_cache(maxsize=4096)
def is_shell(name: str) -> bool:
    return name in SHELLS or unversioned(name) in SHELLS


@lru_cache(maxsize=4096)
def is_interpreter(name: str) -> bool:
    return name in INTERPRETERS or unversioned(name) in INTERPRETERS


def obeys_its_input(words: Sequence[str | None]) -> bool:
    """Whether a command would run what it reads from its standard input; a word that is not certain may be anything."""
    first, *rest = words
    written = program_name(first)
    name = unversioned(written)
    if any(word in ("--version", "-V", "-v", "--help", "-h") for word in rest):
        return False
    if written in OBEYS_ITS_INPUT or name in OBEYS_ITS_INPUT:
        return True
    if name not in LANGUAGES or any(word is not None and not word.startswith("-") for word in rest):
        return False
    gives_program = GIVES_PROGRAM_TO_A_SHELL if name in SHELLS else GIVES_PROGRAM
    return not any(gives_program.match(word or "") for word in rest)


def unversioned(name: str) -> str:
    """A program's name without its version, as in python3.11."""
    match = VERSIONED.fullmatch(name.lower())
    return match["name"] if match else name.lower()
