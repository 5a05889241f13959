"""More that could take a session away: words with another meaning, options, variables, traps, descriptors, texts."""

from __future__ import annotations

import asyncio
import os
import re
import signal
from pathlib import Path

import pytest

from console import PATIENCE, Console, Session, normalised
from support import until
from toolyard.bash import ShellError

pytestmark = pytest.mark.anyio

ENOUGH = 50.0
"""A limit that nothing here comes near, also beside others who are busy; below the patience of the console."""
LINES = "for i in 1 2\ndo\n  echo $i\ndone\n(exit 7)"

REDEFINED = {
    "dot": ".() { echo fake; }",
    "dot_as_function": "function . { echo fake; }",
    "dot_by_eval": "eval '.() { echo fake; }'",
    "dot_by_a_file": ". ./defines",
    "dot_by_declare": "eval \"$(echo '. () { echo fake; }'; declare -f)\"",
    "source": "source() { echo fake; }",
    "eval": "eval() { echo fake; }",
    "builtin": "builtin() { echo fake; }",
    "builtin_and_dot": "builtin() { :; }; .() { :; }",
    "command": "command() { echo fake; }",
    "trap_set_exit": "trap() { :; }; set() { :; }; exit() { :; }",
    "declare_printf_cd": "declare() { :; }; printf() { :; }; cd() { :; }; pwd() { :; }; umask() { :; }",
    "test_and_bracket": "test() { false; }; [() { false; }",
    "true_false_colon": "true() { false; }; false() { true; }; :() { false; }",
    "unset_and_unalias": "unset() { :; }; unalias() { :; }; shopt() { :; }; alias() { :; }",
    "all_at_once": 'for w in . source eval builtin command trap set exit printf test; do \\eval "$w() { :; }"; done',
    "not_found_handle": "command_not_found_handle() { echo handled; return 3; }",
    "alias_of_dot": "alias .='echo fake' source='echo fake'",
    "alias_of_eval": "alias eval='echo fake' builtin='echo fake'",
    "alias_of_not": "alias '!'='echo fake'",
    "alias_of_not_to_comment": "alias '!'='#'",
    "alias_of_conditional": "alias '[['='echo fake'",
    "alias_of_keywords": "alias if=echo then=echo '{'=echo for='echo fake' trap='#' ",
    "disabled_dot": "enable -n . source",
    "disabled_eval": "enable -n eval",
    "disabled_builtin": "enable -n builtin command",
}
"""Whatever a user calls so, our own words still work."""

OPTIONS = (
    *("allexport", "emacs", "errexit", "errtrace", "functrace", "histexpand", "history", "ignoreeof", "keyword"),
    *("noclobber", "noexec", "noglob", "nolog", "notify", "nounset", "onecmd", "physical", "pipefail", "posix"),
    *("privileged", "verbose", "vi", "xtrace"),
)
WITHOUT = ("braceexpand", "hashall", "interactive-comments", "monitor")

VARIABLES = (
    *("BASHOPTS", "BASHPID", "BASH_ARGV0", "BASH_COMMAND", "BASH_COMPAT", "BASH_ENV", "BASH_SOURCE", "BASH_XTRACEFD"),
    *("CDPATH", "DIRSTACK", "ENV", "EUID", "EXECIGNORE", "FIGNORE", "FUNCNAME", "FUNCNEST", "GLOBIGNORE"),
    *("HISTCONTROL", "HISTFILE", "HISTSIZE", "HOME", "IFS", "IGNOREEOF", "INPUTRC", "LANG", "LC_ALL", "LC_CTYPE"),
    *("LINENO", "MAIL", "MAILCHECK", "MAILPATH", "OLDPWD", "OPTERR", "OPTIND", "PATH", "PIPESTATUS"),
    *("POSIXLY_CORRECT", "PPID", "PROMPT_COMMAND", "PROMPT_DIRTRIM", "PS0", "PS1", "PS2", "PS3", "PS4", "PWD"),
    *("RANDOM", "REPLY", "SECONDS", "SHELL", "SHELLOPTS", "SHLVL", "TERM", "TIMEFORMAT", "TMOUT", "UID"),
)
HOSTILE = "'/nonexistent $(exit 3) \"*\" `false`'"

EATERS = {
    "a_prompt_command_that_exits": "PROMPT_COMMAND='exit 9'",
    "a_trace_prompt_that_reads": "PS4='$(cat)'",
    "a_return_trap_that_reads": "trap 'cat >/dev/null' RETURN",
}
"""They run between commands, too, when bash's own input is where commands come from."""

DESCRIPTORS = {
    "stdin_replaced": "exec </etc/passwd",
    "stdin_closed": "exec <&-",
    "stdout_replaced": "exec >elsewhere",
    "stdout_closed": "exec >&-",
    "stderr_replaced": "exec 2>elsewhere",
    "stderr_closed": "exec 2>&-",
    "all_closed": "exec <&- >&- 2>&-",
    "high_ones_taken": "exec 10>elsewhere 11>elsewhere 12>elsewhere 13>elsewhere",
    "high_ones_closed": "exec 10>&- 11>&- 12>&- 13>&-",
    "all_of_them_closed": 'for fd in /proc/$$/fd/*; do fd=${fd##*/}; eval "exec $fd>&-"; done 2>/dev/null',
    "the_one_for_the_terminal_closed": "exec 255>&-",
    "noise_on_all": "for fd in {3..30}; do echo noise >&$fd; done 2>/dev/null",
    "more_than_there_may_be": "ulimit -Sn 64; for i in {1..100}; do exec {fd}>elsewhere || break; done 2>/dev/null",
}


@pytest.mark.parametrize("command", REDEFINED.values(), ids=REDEFINED.keys())
async def test_words_may_mean_something_else(console: Console, shell: Session, command: str) -> None:
    console.file("defines", ".() { echo fake; }\nsource() { echo fake; }\n")
    await shell.run(command)
    assert await shell.answer('echo "$KEEP"') == ("42\n", 0)
    assert await shell.answer("echo 1\necho 2\nsh -c 'exit 7'") == ("1\n2\n", 7)
    assert await shell.answer("sh -c 'exit 8'") == ("", 8)
    assert (await shell.keeps_its_state(), (await shell.run("echo\necho")).restarted) == (True, False)


async def test_a_shell_that_has_no_way_left_to_read_a_file_is_replaced_with_words(shell: Session) -> None:
    replies = [await shell.run("enable -n . source eval builtin command exec trap set unset declare")]
    replies += [await shell.run(f"echo {number}\nsh -c 'exit 7'", timeout=ENOUGH) for number in range(2)]
    assert (replies[-1].output, replies[-1].exit_code) == ("1\n", 7)
    assert not any(reply.restarted for reply in replies) or any(reply.note for reply in replies)


@pytest.mark.parametrize("name", OPTIONS)
async def test_options_may_be_set(shell: Session, name: str) -> None:
    await shell.run(f"set -o {name}")
    output, status = await shell.answer('echo "$KEEP"')
    assert (output.splitlines()[-1:], status) == (["42"], 0)
    output, _ = await shell.answer(LINES)
    assert output.splitlines()[-1:] in (["2"], ["+ exit 7"], ["++ exit 7"], ["(exit 7)"])
    output, status = await shell.answer('echo "$KEEP"')
    assert (output.splitlines()[-1:], status) == (["42"], 0)


@pytest.mark.parametrize("name", WITHOUT)
async def test_options_may_be_unset(shell: Session, name: str) -> None:
    assert await shell.answer(f"set +o {name}") == ("", 0)
    assert await shell.answer(LINES) == ("1\n2\n", 7)
    assert await shell.answer("sleep 0.01 & wait $!; echo $?") == ("0\n", 0)
    assert await shell.keeps_its_state()


async def test_every_other_option_may_be_turned_over(shell: Session) -> None:
    settings = [line.split() for line in (await shell.output("shopt")).splitlines()]
    assert len(settings) > 40
    for name, value in settings:
        await shell.run(f"shopt -{'u' if value == 'on' else 's'} {name}")
        assert await shell.answer(LINES) == ("1\n2\n", 7), name
        assert await shell.keeps_its_state(), name
        await shell.run(f"shopt -{'s' if value == 'on' else 'u'} {name}")


async def test_all_globbing_options_together(shell: Session) -> None:
    await shell.run("shopt -s extglob nullglob failglob dotglob nocaseglob globstar extdebug")
    output, status = await shell.answer("echo *.none")
    assert (status, "no match: *.none" in output) == (1, True)
    assert await shell.keeps_its_state()


async def test_a_restricted_shell_does_what_it_still_can_or_is_replaced(shell: Session) -> None:
    await shell.run("set -r")
    await shell.run("echo x")
    assert await shell.answer("echo usable") == ("usable\n", 0)


async def test_lastpipe_works_without_job_control(shell: Session) -> None:
    assert await shell.answer("set +m; shopt -s lastpipe; echo a | read x; echo $x") == ("a\n", 0)
    assert await shell.keeps_its_state()


@pytest.mark.parametrize("change", ["{}={}", "unset -v {}", "readonly {}={}", "export {}={}"])
async def test_variables_that_bash_itself_uses_may_be_changed(shell: Session, change: str) -> None:
    for name in VARIABLES:
        await shell.run(change.format(name, HOSTILE))
        output, status = await shell.answer('echo "$KEEP"')
        assert (output.splitlines()[-1:], status) == (["42"], 0), name
        output, status = await shell.answer("echo 1\necho 2\n(exit 7)")
        assert (output.splitlines()[-2:], status) == (["1", "2"], 7), name


async def test_variables_may_be_readonly_with_their_own_values(shell: Session) -> None:
    await shell.run("readonly IFS PATH HOME PWD OLDPWD PS1 PS2 PS4 OPTIND LC_ALL PROMPT_COMMAND TMOUT BASH_XTRACEFD")
    assert await shell.answer(LINES) == ("1\n2\n", 7)
    assert await shell.keeps_its_state()


async def test_a_shell_that_would_log_out_when_idle_stays_or_hands_over(shell: Session) -> None:
    await shell.run("TMOUT=1")
    assert await shell.answer("sleep 1.3; echo slept") == ("slept\n", 0)
    os.sched_yield()
    await until(IdleFor(1.5))
    assert await shell.keeps_its_state()


class IdleFor:
    """True after some looks, which are a hundredth of a second apart at least."""

    def __init__(self, seconds: float) -> None:
        self._looks = seconds * 100

    def __call__(self) -> bool:
        self._looks -= 1
        return self._looks < 0


async def test_tracing_into_a_descriptor_of_ones_own(shell: Session) -> None:
    assert await shell.answer("exec 5>trace; BASH_XTRACEFD=5; set -x; echo hi; set +x") == ("hi\n", 0)
    assert await shell.answer("unset BASH_XTRACEFD; echo hi") == ("hi\n", 0)
    assert (shell.folder / "trace").read_text().lstrip("+").startswith(" echo hi\n")
    assert await shell.keeps_its_state()


async def test_the_trace_shows_nothing_of_ours(console: Console, shell: Session) -> None:
    await shell.run("set -x")
    for command in ("x=1; echo $x", "echo a\necho b", "false", "f() { echo in; }\nf"):
        output, _ = await shell.answer(command)
        expected, _ = await console.bash_c(f"set -x\n{command}")
        assert [line.lstrip("+") for line in output.splitlines()] == [
            line.lstrip("+") for line in expected.splitlines()
        ]  # fmt: skip


async def test_verbose_shows_nothing_of_ours(shell: Session) -> None:
    await shell.run("set -v")
    for command in ("echo one", "echo one\necho two"):
        words = (await shell.output(command)).split()
        assert {"one"} <= set(words) <= set(command.split())


@pytest.mark.parametrize("command", EATERS.values(), ids=EATERS.keys())
async def test_what_runs_between_commands_does_not_eat_them(shell: Session, command: str) -> None:
    await shell.run(command, timeout=ENOUGH)
    reply = await shell.run('echo "$KEEP"', timeout=ENOUGH)
    assert (reply.output, reply.exit_code, reply.timed_out) == ("42\n", 0, False)
    assert await shell.answer("echo 1\necho 2\n(exit 7)", timeout=ENOUGH) == ("1\n2\n", 7)


@pytest.mark.parametrize("command", DESCRIPTORS.values(), ids=DESCRIPTORS.keys())
async def test_descriptors_may_be_replaced_and_closed(shell: Session, command: str) -> None:
    await shell.run(f"{command}; (exit 3)", timeout=ENOUGH)
    assert await shell.answer("echo 1\necho 2 >&2\n(exit 7)", timeout=ENOUGH) == ("1\n2\n", 7)
    assert await shell.answer("cat; read x; echo $?", timeout=ENOUGH) == ("1\n", 0)
    assert await shell.answer("/bin/echo program; sleep 0 | cat", timeout=ENOUGH) == ("program\n", 0)


async def test_a_descriptor_stays_open_for_later_commands(shell: Session) -> None:
    await shell.run("exec 3>three 4</etc/passwd {own}>own 20>twenty")
    await shell.run("echo first >&3; echo own >&$own; echo 20 >&20")
    assert (await shell.output("read -r line <&4; echo second >&3; echo ${line%%:*}")) == "root\n"
    assert await shell.answer("exec 3>&- 4<&- {own}>&- 20>&-; cat three own twenty") == ("first\nsecond\nown\n20\n", 0)
    assert await shell.keeps_its_state()


async def test_a_lock_is_held_over_calls(shell: Session) -> None:
    assert await shell.answer("exec 9>lock; flock -n 9 && echo locked") == ("locked\n", 0)
    assert await shell.answer("( exec 8>lock; flock -n 8 || echo taken )") == ("taken\n", 0)
    assert await shell.answer("exec 9>&-; ( exec 8>lock; flock -n 8 && echo free )") == ("free\n", 0)


async def test_children_inherit_nothing_of_ours(console: Console, shell: Session) -> None:
    command = "ls -l /proc/self/fd | sed -n 's/.* \\([0-9]*\\) -> .*/\\1/p' | tr '\\n' ' '"
    assert await shell.answer(command) == await console.bash_c(command)
    assert await shell.answer(f"true\n{command}") == await console.bash_c(command)


async def test_files_of_no_bytes_may_be_the_limit(shell: Session) -> None:
    output, status = await shell.answer("ulimit -f 0; echo seen; (echo lost > file); echo $?")
    assert (output.splitlines()[0], status) == ("seen", 0)
    assert await shell.answer("echo 1\necho 2\n(exit 7)") == ("1\n2\n", 7)
    assert await shell.keeps_its_state()


async def test_hardly_any_descriptors_may_be_the_limit(shell: Session) -> None:
    await shell.run("ulimit -n 6")
    for _ in range(3):
        await shell.run("echo x\ntrue | cat", timeout=5)
    reply = await shell.run("echo usable", timeout=ENOUGH)
    assert reply.output == "usable\n" or "Too many open files" in reply.output + (reply.note or "")


async def test_processor_time_may_be_the_limit(shell: Session) -> None:
    reply = await shell.run("ulimit -St 1; while :; do :; done", timeout=ENOUGH)
    assert (reply.exit_code, reply.ended, reply.timed_out) == (128 + signal.SIGXCPU, True, False)
    assert await shell.answer("echo usable") == ("usable\n", 0)


TRAPS = {
    "debug": ("trap 'x=$((x+1))' DEBUG", "echo hi", "hi\n"),
    "err": ("trap 'x=1' ERR", "false; echo hi", "hi\n"),
    "return": ("trap 'x=1' RETURN", "echo hi\necho there", "hi\nthere\n"),
    "chld": ("trap 'x=1' CHLD", "/bin/echo hi", "hi\n"),
    "winch": ("trap 'x=1' WINCH; kill -WINCH $$", "echo hi", "hi\n"),
    "pipe_ignored": ("trap '' PIPE", "echo hi", "hi\n"),
    "hup_ignored": ("trap '' HUP TERM QUIT TSTP TTIN TTOU", "echo hi", "hi\n"),
}


@pytest.mark.parametrize(("trap", "command", "output"), TRAPS.values(), ids=TRAPS.keys())
async def test_traps_may_be_set(shell: Session, trap: str, command: str, output: str) -> None:
    assert await shell.answer(trap) == ("", 0)
    assert await shell.answer(command) == (output, 0)
    assert await shell.answer("(exit 7)") == ("", 7)
    assert await shell.keeps_its_state()


async def test_a_trap_that_skips_every_command_does_not_take_the_session_away(shell: Session) -> None:
    await shell.run("shopt -s extdebug; trap 'false' DEBUG", timeout=3)
    await shell.run("echo skipped", timeout=3)
    await shell.run("trap - DEBUG", timeout=3)
    await shell.restart()
    assert await shell.answer("echo usable") == ("usable\n", 0)


async def test_no_trap_of_ours_is_listed(shell: Session) -> None:
    assert await shell.answer("trap; trap -p EXIT") == ("", 0)


async def test_functions_know_their_names_and_callers(console: Console, shell: Session) -> None:
    command = 'f() { echo "${FUNCNAME[0]} ${#FUNCNAME[@]}"; }\nf'
    output, status = await shell.answer(command)
    assert (output.split()[0], status) == ("f", 0)
    command = '[[ "${BASH_SOURCE[0]}" == "$0" ]] && echo main || echo sourced\ntrue'
    assert await shell.answer(command) == await console.bash_c(command)


async def test_nothing_of_ours_is_in_the_environment(shell: Session) -> None:
    variables = dict(line.partition("=")[::2] for line in (await shell.output("env")).splitlines())
    assert not [name for name, value in variables.items() if "private" in value or "toolyard" in (name + value).lower()]
    assert {"KEEP", "PATH", "PWD"} <= variables.keys()


async def test_nothing_of_ours_is_among_variables_functions_and_aliases(shell: Session) -> None:
    await shell.run("true\ntrue")
    for command in ("declare -p", "declare -f", "alias", "export -p", "set"):
        lines = (await shell.output(command)).splitlines()
        assert not [
            line
            for line in lines
            if "private" in line and not re.match(r"(declare .. )?(_|BASH_ARGV|BASH_SOURCE)=", line)
        ], command


async def test_history_stays_empty(shell: Session) -> None:
    await shell.run("echo one")
    await shell.run("echo two\ntrue")
    assert await shell.answer("history") == ("", 0)
    assert await shell.answer("echo $HISTFILE") == ("\n", 0)


FOLDERS = {
    "with_spaces_and_quotes": "a 'b' \"c\" $d `e` \\f",
    "with_a_newline": "line one\nline two",
    "with_a_tab": "a\tb",
    "with_an_escape": "a\x1b[1mb",
    "with_umlauts": "größe ✓",
    "with_an_equals_sign": "a=0123456789abcdef: 1 0",
    "with_a_dash": "-P",
}


@pytest.mark.parametrize("name", FOLDERS.values(), ids=FOLDERS.keys())
@pytest.mark.parametrize("locale", ["C.UTF-8", "C"])
async def test_folders_may_have_any_name(shell: Session, name: str, locale: str) -> None:
    folder = shell.folder / name
    os.mkdir(folder)
    quoted = "'" + name.replace("'", "'\\''") + "'"
    reply = await shell.run(f"LC_ALL={locale}; cd -- {quoted}; touch here")
    assert (reply.output, reply.exit_code, reply.cwd) == ("", 0, str(folder))
    assert (folder / "here").exists()
    reply = await shell.run("exit 4")
    assert (reply.exit_code, reply.ended) == (4, True)
    assert await shell.answer("ls; cd ..") == ("here\n", 0)
    assert await shell.keeps_its_state()


async def test_a_folder_s_name_may_be_no_text(shell: Session) -> None:
    folder = shell.folder / "bytes \udcff\udcfe"
    os.mkdir(folder)
    reply = await shell.run("cd bytes*; touch here")
    assert (reply.output, reply.exit_code, os.fsencode(reply.cwd)) == ("", 0, os.fsencode(folder))
    assert (await shell.run("exit 4")).ended
    assert await shell.answer("ls; cd ..") == ("here\n", 0)
    assert await shell.keeps_its_state()


async def test_a_folder_may_be_as_deep_as_paths_go(shell: Session) -> None:
    reply = await shell.run("for i in {1..18}; do d=$(printf 'd%.0s' {1..200}); mkdir $d && cd $d; done")
    assert (reply.exit_code, len(reply.cwd) > 3600) == (0, True)
    assert await shell.answer("touch x; ls; (exit 7)") == ("x\n", 7)
    assert await shell.keeps_its_state()


async def test_the_folder_may_be_deleted(shell: Session) -> None:
    await shell.run("mkdir gone; cd gone; rmdir ../gone")
    assert await shell.answer("echo here; ls; (exit 7)") == ("here\n", 7)
    assert await shell.keeps_its_state()
    reply = await shell.run("exit")
    assert reply.ended
    assert await shell.keeps_its_state()
    assert (await shell.run(f"cd {shell.folder}")).cwd == str(shell.folder)


async def test_links_to_folders_keep_their_names(shell: Session) -> None:
    reply = await shell.run("mkdir real; ln -s real link; cd link; pwd; pwd -P")
    assert (reply.output, reply.cwd) == (f"{shell.folder}/link\n{shell.folder}/real\n", f"{shell.folder}/link")
    assert await shell.answer("cd ..; echo ${PWD##*/}; cd -") == (f"{shell.folder.name}\n{shell.folder}/link\n", 0)
    assert (await shell.run("cd -P .; pwd")).output == f"{shell.folder}/real\n"


TEXTS = {
    "nothing": "",
    "blanks": " \t \n\n ",
    "a_comment": "# nothing",
    "carriage_returns": "echo a\r\necho b\r\n",
    "control_characters": f"echo 'a{''.join(map(chr, range(1, 32)))}\x7fb' | od -c",
    "control_characters_unquoted": "echo a\x01b\x7fc\x04d | od -c",
    "every_quote": 'echo \'a\'\\\'\'b\' "c\\"d" $\'e\\\'f\' $"g" "`echo \\"h\\"`" "$(echo "i")"',
    "nested_substitutions": 'echo "$(echo "$(echo "$(echo "$(echo deep)")")")"',
    "quotes_in_here_documents": 'cat <<E\n\'unclosed "quotes` \\` ${KEEP:-"x"}\nE',
    "here_documents_in_a_loop": "for i in 1 2 3; do cat <<A; cat <<'B'; done\n$i\nA\n$i\nB",
    "a_brace_that_closes_nothing": "}; echo x",
    "a_bracket_that_closes_nothing": ") ; echo x",
    "an_operator_at_the_start": "&& echo x",
    "a_redirection_at_the_end": "echo x >",
    "a_backslash_alone": "\\",
    "a_quote_alone": "'",
    "a_here_document_without_end": "cat <<EOF\ntext",
    "a_here_document_without_anything": "cat <<EOF",
    "a_line_continued_forever": "echo a \\\n\\\n\\\n",
    "a_semicolon_at_the_end": "echo x;",
    "a_pipe_at_the_end": "echo x |",
    "a_byte_order_mark": "\ufeffecho x",
    "a_no_break_space": "echo\u00a0x",
    "a_line_separator": "echo a\u2028b",
    "a_word_of_100_000": f"echo {'w' * 100_000} | wc -c",
    "many_words": f"set -- {'a ' * 50_000}; echo $#",
    "deep_groups": "(" * 50 + "echo deep" + ")" * 50,
    "deep_loops": "for a in 1; do " * 40 + "echo deep" + "; done" * 40,
    "our_own_words": "\\. /nonexistent </dev/null; ! [[ a ]]<'/-/x'; echo $?",
    "a_function_that_calls_itself_a_lot": "f() { (($1)) && f $(($1 - 1)) || echo bottom; }; f 500",
}


@pytest.mark.parametrize("command", TEXTS.values(), ids=TEXTS.keys())
async def test_texts_mean_what_they_mean_to_bash(console: Console, shell: Session, command: str) -> None:
    expected, status = await console.bash_c(command)
    output, found = await shell.answer(command)
    assert (normalised(output), found) == (normalised(expected), status)
    assert await shell.keeps_its_state()


async def test_a_command_of_20_000_lines(shell: Session) -> None:
    assert await shell.answer("x=0\n" + "x=$((x+1))\n" * 20_000 + "echo $x; (exit 7)") == ("20000\n", 7)
    assert await shell.keeps_its_state()


async def test_a_command_of_10_MB(console: Console, shell: Session) -> None:
    line = "0123456789abcdef'\"$`\\\n"
    assert await shell.answer(f"wc -c <<'END'\n{line * 500_000}END\n(exit 7)") == (f"{len(line) * 500_000}\n", 7)
    assert await shell.answer("echo small") == ("small\n", 0)
    assert await shell.answer(f": '{'x' * 10_000_000}'; echo ${{#_}}") == ("10000000\n", 0)
    assert await shell.keeps_its_state()


@pytest.mark.parametrize("command", ["echo a\0b", "\0", "echo \ud800", f"echo {chr(0xDCFF)}"])
async def test_what_bash_could_not_be_given_is_refused(shell: Session, command: str) -> None:
    with pytest.raises(ShellError):
        await shell.run(command)
    assert await shell.keeps_its_state()


async def test_a_huge_environment(shell: Session) -> None:
    await shell.run("for i in {1..200}; do export V$i=$(printf 'x%.0s' {1..1000}); done")
    assert await shell.answer("env | wc -c | sed 's/....../many/'") == ("many\n", 0)
    await shell.run("export TOO_MUCH=$(head -c 3000000 /dev/zero | tr '\\0' x)")
    output, status = await shell.answer("ls")
    assert (status, "Argument list too long" in output) == (126, True)
    assert await shell.keeps_its_state()
    assert await shell.answer("unset TOO_MUCH; /bin/echo again") == ("again\n", 0)


async def test_the_status_is_there_for_the_next_command(shell: Session) -> None:
    for command in ("echo $?", "echo ${?}", 'echo "$?"', "x=$?; echo $x", "true $?\necho $?"):
        await shell.run("(exit 5)")
        assert await shell.answer(command) == ("0\n" if command.startswith("true") else "5\n", 0), command
    await shell.run("status() { echo $?; }")
    await shell.run("(exit 6)")
    assert await shell.answer("status") == ("6\n", 0)
    assert await shell.answer("echo $?") == ("0\n", 0)


async def test_background_processes_are_known_to_later_commands(shell: Session) -> None:
    assert await shell.answer("(sleep 0.2; exit 9) & (exit 4)") == ("", 4)
    assert await shell.answer("kill -0 $! && echo runs; jobs | wc -l") == ("runs\n1\n", 0)
    assert await shell.answer("wait $!; echo $?") == ("9\n", 0)
    assert await shell.answer("jobs; wait; echo none") == ("none\n", 0)


async def test_no_notices_of_jobs(shell: Session) -> None:
    assert await shell.answer("sleep 0.05 &") == ("", 0)
    assert await shell.answer("sleep 0.2; echo a") == ("a\n", 0)
    assert await shell.answer("true & wait; (exit 3) & wait; echo b") == ("b\n", 0)
    assert await shell.answer("sleep 30 & disown; kill $!; echo c") == ("c\n", 0)
    assert await shell.answer("sleep 30 & kill %+; wait 2>/dev/null; echo d\ntrue") == ("d\n", 0)
    assert await shell.keeps_its_state()


async def test_jobs_by_number(shell: Session) -> None:
    await shell.run(f"sleep {shell.mark} &")
    await shell.run(f"sleep {shell.mark} &")
    output = await shell.output("jobs")
    assert [line.split()[0] for line in output.splitlines()] == ["[1]-", "[2]+"]
    assert await shell.answer("kill %1 %2") == ("", 0)
    await until(lambda: not shell.sleepers())
    assert await shell.keeps_its_state()


async def test_foreground_and_background(shell: Session) -> None:
    await shell.run("sleep 0.3 &")
    for command in ("fg", "bg", "fg %1", "%1", "fg %7"):
        output, status = await shell.answer(command, timeout=ENOUGH)
        assert (output, status) == ("sleep 0.3\n", 0) or (status == 1 and output.startswith("bash: ")), command
    assert await shell.keeps_its_state()


async def test_a_coprocess_lives_over_calls(shell: Session) -> None:
    assert await shell.answer("coproc up { while read -r l; do echo ${l^^}; done; }") == ("", 0)
    assert await shell.answer("echo hello >&${up[1]}; read -r x <&${up[0]}; echo $x") == ("HELLO\n", 0)
    assert await shell.answer("echo again >&${up[1]}; read -r x <&${up[0]}; echo $x") == ("AGAIN\n", 0)
    assert await shell.answer("exec {up[1]}>&-; wait; echo over") == ("over\n", 0)


async def test_process_substitutions_print_before_the_reply(shell: Session) -> None:
    for _ in range(10):
        assert await shell.answer("echo data | tee >(tr a-z A-Z) >/dev/null") == ("DATA\n", 0)
    assert await shell.answer("diff <(echo a) <(echo a) && paste <(seq 2) <(seq 2)") == ("1\t1\n2\t2\n", 0)
    assert await shell.answer("echo x > >(cat; echo y >&2)\n(exit 3)") == ("x\ny\n", 3)


SUICIDES = {
    "kill_9": ("kill -9 $$", 137),
    "kill_9_of_its_group": ("kill -9 0", 137),
    "segv": ("kill -SEGV $$", 139),
    "usr1": ("kill -USR1 $$; sleep 5", 138),
    "hup": ("kill -HUP $$; sleep 5", 129),
    "by_a_child": ("sh -c 'kill -9 $PPID'; sleep 5", 137),
    "xcpu": ("kill -XCPU $$; sleep 5", 152),
}


@pytest.mark.parametrize(("command", "status"), SUICIDES.values(), ids=SUICIDES.keys())
async def test_a_shell_may_kill_itself(shell: Session, command: str, status: int) -> None:
    reply = await shell.run(f"echo last words; {command}")
    assert (reply.output.splitlines()[0], reply.exit_code, reply.ended) == ("last words", status, True)
    reply = await shell.run('echo "$PWD"')
    assert (reply.output, reply.exit_code, reply.restarted) == (f"{shell.folder}\n", 0, True)
    assert reply.note


@pytest.mark.parametrize("command", ["kill 0", "kill $$", "kill -TERM 0"])
async def test_a_signal_that_ends_a_script_ends_the_shell(shell: Session, command: str) -> None:
    reply = await shell.run(f"{command}; echo never")
    assert (reply.output, reply.exit_code, reply.ended) == ("", 143, True)
    assert await shell.keeps_its_state()


async def test_an_interrupt_that_it_sends_itself(shell: Session) -> None:
    reply = await shell.run("echo before; kill -INT $$; echo never\necho never")
    assert (reply.output, reply.exit_code, reply.ended) == ("before\n", 130, False)
    assert await shell.keeps_its_state()


async def test_a_child_that_dies_of_an_interrupt(shell: Session) -> None:
    assert (await shell.run("sh -c 'kill -INT $$'")).exit_code == 130
    assert await shell.keeps_its_state()


@pytest.mark.parametrize(("command", "status"), [
    ("set -u; echo $nope; echo never\necho never", 127),
    (": \"${nope:?words}\"\necho never", 127),
    ("f() { echo ${nope:?words}; }; f\necho never", 127),
    ("set -eu\necho $nope\necho never", 1),
    ("set -e\nfalse\necho never", 1),
])  # fmt: skip
async def test_what_stops_a_script_stops_a_command_and_the_session_goes_on(
    shell: Session, command: str, status: int
) -> None:
    reply = await shell.run(f"MADE=before; {command}")
    assert (reply.exit_code, "never" in reply.output) == (status, False)
    assert await shell.output("echo $MADE") == "before\n"
    assert await shell.keeps_its_state()


async def test_returning_from_no_function(shell: Session) -> None:
    reply = await shell.run("echo before; return 7")
    assert (reply.output.splitlines()[0], reply.ended) == ("before", False)
    assert await shell.keeps_its_state()


@pytest.mark.parametrize(
    "command", ["logout", "suspend -z", "fg", "bg", "%5", "exec -z", "caller", "compgen -z", "bind -z"]
)
async def test_words_for_terminals_do_no_harm(shell: Session, command: str) -> None:
    await shell.run(command, timeout=ENOUGH)
    assert await shell.keeps_its_state()


async def test_nested_shells(shell: Session) -> None:
    assert await shell.answer("bash -ic 'echo nested; exit 3' 2>/dev/null") == ("nested\n", 3)
    assert await shell.answer("bash", timeout=ENOUGH) == ("", 0)
    assert (await shell.run("bash -i 2>/dev/null", timeout=ENOUGH)).exit_code == 0
    assert await shell.answer("bash --login -c 'exit 4'; sh -c 'exit 5'") == ("", 5)
    assert await shell.keeps_its_state()


async def test_a_script_of_everyday(console: Console, shell: Session) -> None:
    script = """
set -euo pipefail
trap 'echo "cleaning up"' EXIT
work=$(mktemp -d)
trap 'rm -rf "$work"; echo "cleaned $?"' EXIT
printf '%s\\n' b a c > "$work/in"
sort "$work/in" | while read -r line; do
  echo "line: $line"
done
[[ -f "$work/missing" ]] || { echo "missing" >&2; exit 12; }
"""
    assert await shell.answer(f"({script})") == await console.bash_c(script)
    assert await shell.answer(script) == await console.bash_c(script)
    assert (await shell.run("true")).restarted


async def test_a_session_cannot_begin_in_a_folder_that_is_not_there(console: Console, tmp_path: Path) -> None:
    with pytest.raises(ShellError, match="directory"):
        await console.open(cwd=tmp_path / "nothing")


MALFORMED = [
    "[[ -z ]]",
    "[[ a b ]]\necho never",
    "echo '[[ && ]]' >bad; . ./bad; echo $?",
    "eval '[[ ) ]]' || echo caught",
]


@pytest.mark.parametrize("command", MALFORMED)
async def test_a_malformed_condition_does_not_spoil_those_of_later_commands(shell: Session, command: str) -> None:
    await shell.run(command)
    assert await shell.answer("[[ $KEEP == 4* ]] && echo fits") == ("fits\n", 0)
    await shell.run(f"set -e; {command}")
    assert (await shell.answer("[[ $KEEP == 4* ]] && echo fits"))[0].endswith("fits\n")
    await shell.run(f"set +e; trap 'echo never of ours' ERR; {command}")
    assert await shell.answer("[[ $KEEP == 4* ]] && echo fits") == ("fits\n", 0)


async def test_a_malformed_condition_can_be_given_up(shell: Session) -> None:
    for pause in (0.0, 0.0003, 0.0006, 0.001, 0.0015) * 8:
        task = asyncio.ensure_future(shell.run("[[ -z ]]\necho never"))
        await asyncio.wait([task], timeout=pause)
        await shell.bash.interrupt()
        await asyncio.wait([task], timeout=PATIENCE)
        assert await shell.answer('[[ $KEEP == 42 ]] && echo "$KEEP"') == ("42\n", 0)


async def test_an_interrupt_that_comes_too_late_does_nothing(shell: Session) -> None:
    assert await shell.bash.interrupt() is None
    assert await shell.keeps_its_state()
