"""Lines that must not run unasked: made from the tables of options, and thought up by hand.

Whoever imports this needs a workspace as `lay_out` makes it: with a neighbour, a home with a key, and links that lead
out. What a line would do if it ran shows in a file called `marker`, or in what it prints of those.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from toolyard.permissions.presets import LOOKING, WORKING, split
from toolyard.permissions.programs.files.find import WITH_FILE, WITH_TEXT, WRITING
from toolyard.permissions.programs.git_options import table_of
from toolyard.permissions.programs.operands import TABLES
from toolyard.permissions.programs.options import OptionKind, Options

OUTSIDE = ("/etc/passwd", "../neighbour/x", "~/.ssh/id_rsa", "link", "way/passwd")
"""Files that are not in the workspace; the last two by a link."""
REST = {
    **dict.fromkeys(("grep", "egrep", "fgrep", "zgrep", "rg", "fd", "ag"), "x src"),
    **dict.fromkeys(("date", "ps", "hostname"), ""),
    "sed": "p src/a.py",
    "awk": "1 src/a.py",
    "jq": ". data.json",
    "read": "line",
    "tr": "a b",
    "tar": "-t -f a.tar",
    "unzip": "-l a.zip",
    "gzip": "a.gz",
    "cp": "src/a.py copy.py",
    "git grep": "x",
    "git config": "user.name",
    "git worktree": "",
    "git stash": "",
    "git remote": "origin",
}
"""What stands behind the options of a program, so that nothing else about the line is in question."""
SPELLED = {
    "gzip": "gzip -l",
    "git config": "git config --get",
    "git stash": "git stash show",
    "git remote": "git remote get-url",
    "git worktree": "git worktree list",
}
"""Programs of which a preset allows only a part."""
VALUES = {"sed e": "p", "sed expression": "p", "awk v": "a=1", "awk assign": "a=1", "awk F": ":"}


def lay_out(parent: Path) -> Path:
    """The workspace, beside a neighbour."""
    workspace = parent / "workspace"
    (workspace / "src").mkdir(parents=True)
    (parent / "neighbour").mkdir()
    (parent / "neighbour" / "x").write_text("a secret of the neighbour\n")
    (workspace / "src" / "a.py").write_text("print('a')\n")
    (workspace / "data.json").write_text('{"env": {"a": 1}}\n')
    for name in ("README.md", "b.txt", ".npmrc", ".gitmodules", "a.tar", "a.zip", "a.gz"):
        (workspace / name).write_text(f"{name}\n")
    (workspace / "link").symlink_to(parent / "neighbour" / "x")
    (workspace / "way").symlink_to("/etc")
    return workspace


def tables(patterns: str = LOOKING + ";" + WORKING) -> Iterator[tuple[str, Options]]:
    """Each program of a preset that has a table of options, and each such command of git."""
    named = sorted({tuple(pattern.split()[:2]) for pattern in split(patterns) if pattern.endswith("**")})
    for name in sorted({name for name, _ in named}):
        if isinstance(table := TABLES.get(name), Options):
            yield name, table
    for command in sorted({command for name, command in named if name == "git"} - {"branch", "tag"}):
        yield f"git {command}", table_of(command)


def generated() -> list[str]:
    """Every option of a preset's program that takes a path or runs something, in every spelling, with one outside."""
    lines = [
        line
        for program, table in tables()
        for name, kind in table.named.items()
        if kind.takes != "nothing" and (kind.roles[-1] != "text" or kind.harm)
        for value in (("touch",) if "run" in kind.roles else OUTSIDE)
        for line in spelled(program, table, name, kind, value)
    ]
    lines += [f"find . {test} {value}" for test in (*WITH_FILE, *WRITING, "-files0-from") for value in OUTSIDE]
    lines += [f"find -{action} rm {{}} {end}" for action in ("exec", "execdir", "ok") for end in ("\\;", "+")]
    lines += [f"find . {test} {word} -delete" for test in (*sorted(WITH_TEXT), "-D") for word in ("-exec", "-name")]
    return lines


def generated_harmless(patterns: str) -> list[str]:
    """Every option of a preset's programs that takes a text, in every spelling."""
    return [
        line
        for program, table in tables(patterns)
        for name, kind in table.named.items()
        if kind.takes != "nothing" and set(kind.roles) == {"text"} and not kind.harm
        for line in spelled(program, table, name, kind, VALUES.get(f"{program} {name}", "1"))
    ]


def spelled(program: str, table: Options, name: str, kind: OptionKind, value: str) -> Iterator[str]:
    """The spellings of one option with a value."""
    rest = REST.get(program, "src/a.py")
    program = SPELLED.get(program, program)
    before = "x " * (len(kind.roles) - 1)
    dash = "-" if len(name) == 1 or table.style != "gnu" else "--"
    if table.style == "gnu" and len(name) > 1 and len(kind.roles) == 1:
        yield f"{program} {dash}{name}={value} {rest}"
        if short := abbreviation(name, table):
            yield f"{program} {dash}{short}={value} {rest}"
    if len(name) == 1 and len(kind.roles) == 1 and table.glues and value[0] != "~":
        yield f"{program} {dash}{name}{value} {rest}"
    if kind.takes == "glued":
        return
    yield f"{program} {dash}{name} {before}{value} {rest}"
    switches = (each for each, found in table.named.items() if found == OptionKind() and len(each) == 1)
    flag = next(filter(str.isalpha, switches), "")
    if flag and len(name) == 1 and table.style == "gnu":
        yield f"{program} -{flag}{name} {before}{value} {rest}"
        if table.glues and value[0] != "~":
            yield f"{program} -{flag}{name}{value} {rest}"


def abbreviation(name: str, table: Options) -> str | None:
    """The shortest beginning of an option that stands for no other."""
    if not table.abbreviates:
        return None
    known = table.long_names
    lengths = (at for at in range(2, len(name)) if sum(each.startswith(name[:at]) for each in known) == 1)
    length = next(lengths, None)
    return name[:length] if length else None


def lines_of(text: str) -> list[str]:
    return [line.strip() for line in text.strip().splitlines() if line.strip()]


READING = lines_of(r"""
    cat /etc/passwd
    cat ../neighbour/x
    cat -- /etc/passwd
    cat -n /etc/passwd
    cat src/../../neighbour/x
    cat link
    cat way/passwd
    cat ./link
    cat src/a.py /etc/passwd
    cat -A -- ../neighbour/x
    cat /proc/self/environ
    cat /proc/1/environ
    head /etc/passwd
    head -n 5 /etc/passwd
    head -n5 /etc/passwd
    head -5 /etc/passwd
    head -c 100 /etc/passwd
    head -5c /etc/passwd
    head -1c ../neighbour/x
    head -2n /etc/passwd
    head --lines=5 /etc/passwd
    head --lines 5 /etc/passwd
    head --lin=5 /etc/passwd
    head -q /etc/passwd src/a.py
    head -vn1 link
    tail /etc/passwd
    tail -n +1 /etc/passwd
    tail -5c /etc/passwd
    tail -c +1 ../neighbour/x
    tail -qn3 /etc/passwd
    tail --bytes=9 way/passwd
    tail -f src/a.py
    tail -F src/a.py
    tail --follow src/a.py
    tail --follow=name src/a.py
    tail -n1 -s 1 --pid 1 /etc/passwd
    wc -l /etc/passwd
    wc --files0-from=names
    wc --files0-from names
    wc --files0=names
    wc --fil=/etc/passwd
    wc -lw -- link
    nl /etc/passwd
    nl -ba /etc/passwd
    nl -b a /etc/passwd
    nl -w 3 -s : /etc/passwd
    tac /etc/passwd
    tac -s x /etc/passwd
    rev /etc/passwd
    fold -w 10 /etc/passwd
    fold -80 /etc/passwd
    fmt -w 10 /etc/passwd
    fmt -80 ../neighbour/x
    paste /etc/passwd src/a.py
    paste -d, /etc/passwd
    paste -sd, /etc/passwd
    join /etc/passwd src/a.py
    join -t : -1 1 -2 1 /etc/passwd /etc/group
    join -j1 1 /etc/passwd src/a.py
    column /etc/passwd
    column -t -s : /etc/passwd
    column -ts: /etc/passwd
    cut -d: -f1 /etc/passwd
    cut -d : -f 1 /etc/passwd
    cut -c1-5 ../neighbour/x
    cut --fields=1 --delimiter=: /etc/passwd
    sort /etc/passwd
    sort -k1 /etc/passwd
    sort -t: -k1,1 /etc/passwd
    sort -m /etc/passwd
    sort --files0-from=names
    sort --files0-from names
    sort --random-source=/etc/passwd src/a.py
    sort -T /etc src/a.py
    sort -T/etc src/a.py
    sort --temporary-directory=/etc src/a.py
    sort --temp=/etc src/a.py
    uniq /etc/passwd
    uniq -c /etc/passwd
    uniq -f1 /etc/passwd
    uniq -f 1 /etc/passwd
    comm /etc/passwd src/a.py
    comm -12 src/a.py /etc/passwd
    diff /etc/passwd src/a.py
    diff src/a.py /etc/passwd
    diff -u src/a.py ../neighbour/x
    diff --to-file=/etc/passwd src/a.py
    diff --to-file /etc/passwd src/a.py
    diff --to=/etc/passwd src/a.py
    diff --from-file=/etc/passwd src/a.py
    diff --from-f /etc/passwd src/a.py
    diff -X/etc/passwd src src
    diff -X /etc/passwd src src
    diff --exclude-from=/etc/passwd src src
    diff -r src /etc
    diff -r . src
    diff -ru . src
    diff --recursive . src
    diff -U3 src/a.py /etc/passwd
    diff -U 3 src/a.py /etc/passwd
    diff -I x -x y src/a.py /etc/passwd
    cmp /etc/passwd src/a.py
    cmp -l src/a.py /etc/passwd
    cmp -n 10 src/a.py /etc/passwd
    od /etc/passwd
    od -c /etc/passwd
    od -An -tx1 /etc/passwd
    od -A n -t c /etc/passwd
    od -S 3 /etc/passwd
    od -w8 /etc/passwd
    od -j 1 -N 5 /etc/passwd
    hexdump -C /etc/passwd
    hexdump -n 16 /etc/passwd
    hexdump -f /etc/passwd src/a.py
    hexdump -f/etc/passwd src/a.py
    hexdump -Cf/etc/passwd src/a.py
    hexdump --format-file=/etc/passwd src/a.py
    xxd /etc/passwd
    xxd -p /etc/passwd
    xxd -ps /etc/passwd
    xxd -l 16 /etc/passwd
    xxd -l16 /etc/passwd
    xxd -c8 ../neighbour/x
    xxd -s 4 -l 4 link
    strings /etc/passwd
    strings -n 3 /etc/passwd
    strings -n3 /etc/passwd
    strings -8 /etc/passwd
    strings -tx /etc/passwd
    strings -t x /etc/passwd
    strings @names
    strings -a @/etc/passwd
    md5sum /etc/passwd
    sha256sum -b /etc/passwd
    sha256sum -c names
    sha1sum --check names
    cksum -a sha1 /etc/passwd
    b2sum -l 8 /etc/passwd
    base64 /etc/passwd
    base64 -w0 /etc/passwd
    base64 -w 0 ../neighbour/x
    base64 --wrap=0 /etc/passwd
    base64 -d /etc/passwd
    base32 /etc/passwd
    file -m /etc/passwd src/a.py
    file -m/etc/passwd src/a.py
    file -bm/etc/passwd src/a.py
    file --magic-file=/etc/passwd src/a.py
    file --magic=/etc/passwd src/a.py
    file -f names
    file -fnames
    file -bf names
    file --files-from=names
    file --files-from /etc/passwd
    file -C -m src/a.py
    file --compile -m src/a.py
    file -bC -m src/a.py
    file /etc/passwd
    stat /etc/passwd
    stat -c %n /etc/passwd
    stat --printf=%n /etc/passwd
    stat -Lf ../neighbour
    du /etc
    du -sh ../neighbour
    du -sh -- /etc
    du --files0-from=names
    du -X /etc/passwd src
    du -sX/etc/passwd src
    du --exclude-from=/etc/passwd src
    du -d 1 /etc
    du -L .
    ls /etc
    ls -la ../neighbour
    ls -la --color=never /etc
    ls way/
    ls -L way
    ls -laL .
    ls -I x /etc
    ls -w 80 /etc
    ls --sort=time /etc
    ls -Rt ../
    tree /etc
    tree -L 2 /etc
    tree -aL 2 /etc
    tree -l .
    tree --gitfile /etc/passwd .
    tree --fromfile names
    tree -P x -I y ../neighbour
    readlink -f /etc/passwd
    readlink way/passwd
    realpath ../neighbour/x
    realpath --relative-to=/etc src
    realpath --relative-to /etc src
    expand /etc/passwd
    pr /etc/passwd
    pr -h x /etc/passwd
    tsort /etc/passwd
    shuf /etc/passwd
    shuf -n 1 /etc/passwd
    shuf --random-source=/etc/passwd src/a.py
    shuf -r src/a.py
    zcat /etc/passwd
    zcat -f /etc/passwd
    zgrep x /etc/passwd
    zgrep -f /etc/passwd src/a.py
    tar tf /etc/x.tar
    tar -tf ../neighbour/x.tar
    tar -tvf/etc/x.tar
    tar tvf a.tar -C /etc
    tar -tf a.tar -X /etc/passwd
    tar -tf a.tar --exclude-from=/etc/passwd
    tar -tf a.tar -T names
    tar -tf a.tar -Tnames
    tar -tf a.tar --files-from names
    tar -df a.tar /etc/passwd
    tar -tf host:a.tar
    tar -tf user@host:/a.tar
    unzip -l /etc/x.zip
    unzip -p ../neighbour/x.zip
    unzip -Z /etc/x.zip
    zipinfo /etc/x.zip
    gzip -l /etc/x.gz
    jq . /etc/passwd
    jq -R . /etc/passwd
    jq -Rs . ../neighbour/x
    jq -n --rawfile a /etc/passwd '$a'
    jq -n --slurpfile a /etc/passwd '$a'
    jq -n --argfile a /etc/passwd '$a'
    jq --arg a b . /etc/passwd
    jq --argjson a 1 -R . /etc/passwd
    jq --indent 2 -R . /etc/passwd
    jq -R --tab . link
    jq -f /etc/passwd data.json
    jq -f x.jq data.json
    jq --from-file x.jq data.json
    jq -L /etc . data.json
    jq -L/etc 'import "x" as x; .' data.json
    jq -n env
    jq -n '$ENV'
    jq -n '$ENV.PATH'
    jq -n '$ ENV'
    jq -n '$ ENV.PATH'
    jq -n '"\(env.PATH)"'
    jq -n '"\($ENV.PATH)"'
    jq -n '"\("\($ENV)")"'
    jq -n '[env.PATH]'
    jq -n '{a: env}'
    jq -n '{(env.PATH): 1}'
    jq -n '{"a": $ENV}'
    jq -n '{$ENV}'
    jq -n '[1, env]'
    jq -n '1 as $x | env'
    jq -n 'env|keys'
    jq -n 'def f: env; f'
    jq -n 'include "x"; f'
    jq -n 'import "x" as x; x::f'
    jq -n '"x" | modulemeta'
    jq -n 'env as {PATH: $p} | $p'
    jq -n 'if true then env else 1 end'
    jq -n 'env#comment'
    jq -n '(env)'
    jq -n '[env][]'
    jq -n 'path(env)?, env'
    jq "$program" data.json
    jq -R . /etc/passwd --args
    jq --args -R . /etc/passwd
    jq -R . link --jsonargs 1
    find . -exec cat {} +
    find . -exec cat {} \;
    find . -name 'l*' -exec head {} +
    find . -type f -o -exec cat {} +
    find . ! -type f -exec cat {} +
    find . -exec grep x {} +
    diff . src
    diff -q . src
    cp -r --parents ../neighbour/x .
    jq --arg x 1 "$program" data.json
    awk 1 /etc/passwd
    awk '{print}' /etc/passwd
    awk '{print $1}' ../neighbour/x
    awk -F: '{print $1}' /etc/passwd
    awk -F : '{print $1}' /etc/passwd
    awk -v a=1 '{print}' /etc/passwd
    awk -va=1 '{print}' /etc/passwd
    awk -- '{print}' /etc/passwd
    awk 'BEGIN{while((getline l < "/etc/passwd")>0) print l}'
    awk 'BEGIN{getline < "/etc/passwd"; print}'
    awk 'BEGIN{getline x < ARGV[1]; print x}' x
    awk '{getline < "x"}' src/a.py
    awk -f /etc/passwd src/a.py
    awk -f prog.awk src/a.py
    awk -fprog.awk src/a.py
    awk --file=prog.awk src/a.py
    awk 'BEGIN{print ENVIRON["PATH"]}'
    awk 'BEGIN{for(k in ENVIRON) print k}'
    awk 'BEGIN{ARGV[1]="/etc/passwd";ARGC=2} {print}'
    awk "$program" src/a.py
    sed p /etc/passwd
    sed -n 1p /etc/passwd
    sed -n '/root/p' /etc/passwd
    sed -e p /etc/passwd
    sed -ep ../neighbour/x
    sed -ne p /etc/passwd
    sed --expression=p /etc/passwd
    sed --expr p /etc/passwd
    sed -E 's/a/b/' /etc/passwd
    sed -l 5 -n l /etc/passwd
    sed -n 'r /etc/passwd' src/a.py
    sed 'R /etc/passwd' src/a.py
    sed '1r/etc/passwd' src/a.py
    sed '$r link' src/a.py
    sed '/x/r /etc/passwd' src/a.py
    sed -f /etc/passwd src/a.py
    sed -f script.sed src/a.py
    sed -fscript.sed src/a.py
    sed -nf script.sed src/a.py
    sed --file=script.sed src/a.py
    sed --fil script.sed src/a.py
    sed -s -n F /etc/passwd
    grep x /etc/passwd
    grep -r x /etc
    grep -rn x ../neighbour
    grep -f /etc/passwd src/a.py
    grep -f/etc/passwd src/a.py
    grep -rf/etc/passwd src
    grep -rnf/etc/passwd src
    grep -inf /etc/passwd src/a.py
    grep --file=/etc/passwd src/a.py
    grep --file /etc/passwd src/a.py
    grep --fil=/etc/passwd src/a.py
    grep --exclude-from=/etc/passwd -r x src
    grep --exclude-f=/etc/passwd -r x src
    grep -e x /etc/passwd
    grep -ex /etc/passwd
    grep -rie x /etc
    grep -e -e /etc/passwd
    grep -e -f /etc/passwd
    grep -A 3 x /etc/passwd
    grep -A3 x /etc/passwd
    grep -3 x /etc/passwd
    grep -C 3 -m 1 x /etc/passwd
    grep --regexp=x /etc/passwd
    grep --regexp x /etc/passwd
    grep --max-count 1 x /etc/passwd
    grep --include '*.py' -r x /etc
    grep --include=*.py -r x /etc
    grep -d skip x /etc/passwd
    grep -D read x /etc/passwd
    grep --label a x /etc/passwd
    grep -v x -- /etc/passwd
    grep x src/a.py /etc/passwd
    grep -c '' link
    grep -R x .
    grep -Rn x .
    grep --dereference-recursive x .
    grep --deref x .
    egrep 'a|b' /etc/passwd
    egrep -f/etc/passwd src/a.py
    fgrep x /etc/passwd
    fgrep -xf/etc/passwd src/a.py
    rg x /etc
    rg -f /etc/passwd src
    rg -f/etc/passwd src
    rg -nf/etc/passwd src
    rg --file=/etc/passwd src
    rg --file /etc/passwd src
    rg -f=/etc/passwd src
    rg --ignore-file=/etc/passwd x
    rg --ignore-file /etc/passwd x src
    rg -e x /etc
    rg -ex /etc
    rg --files /etc
    rg --files ../neighbour
    rg -L x .
    rg --follow x .
    rg -g '*.py' x /etc
    rg -A 3 x /etc
    rg -uuu x ../
    fd x /etc
    fd . ../neighbour
    fd -e py . /etc
    fd --search-path /etc x
    fd --search-path=/etc x
    fd --base-directory /etc x
    fd --base-directory=/etc x
    fd -C /etc x
    fd --ignore-file /etc/passwd x
    fd -L x .
    find /etc
    find ../neighbour -type f
    find . /etc -name x
    find -H way -name x
    find -L . -name x
    find . -follow -name x
    find way/ -name x
    find . -newer /etc/passwd
    find . -anewer ../neighbour/x
    find . -samefile /etc/passwd
    find . -neweraa /etc/passwd
    find . -newermm link
    find -files0-from names
    find . -files0-from names
    date -r /etc/passwd
    date --reference=/etc/passwd
    date --ref=/etc/passwd
    date -f /etc/passwd
    date -f/etc/passwd
    date -uf/etc/passwd
    date --file=/etc/passwd
    date --fil=/etc/passwd
    ps e
    ps eww
    ps auxe
    ps auxeww
    ps axe
    ps ae
    ps -ef e
    ps aux e
    ps -o environ
    ps -eo pid,environ
    ps axo environ
    ps -E
    cd /etc && cat passwd
    cd .. && cat neighbour/x
    cd way && cat passwd
    cd / && ls
    cd .. && git status
    cd - && ls
    cd && ls
    head -n 1 -- ~/.ssh/id_rsa
    cat ~/.ssh/id_rsa
    echo ../neighbour/*
    echo ../*/x
    echo way/*
    echo ~/.ssh/*
    printf '%s\n' /etc/*
    basename ../neighbour/*
    expr ../neighbour/*
    which /etc/*
    grep -f ~/.ssh/id_rsa src/a.py
    diff src/a.py ~/.ssh/id_rsa
""")
WRITING_OR_RUNNING = lines_of(r"""
    sort -o /etc/marker src/a.py
    sort -o ../neighbour/x src/a.py
    sort -o../neighbour/x src/a.py
    sort -uo/etc/marker src/a.py
    sort -uo ../neighbour/x src/a.py
    sort -nro../neighbour/x src/a.py
    sort --output=../neighbour/x src/a.py
    sort --output ../neighbour/x src/a.py
    sort --outp=../neighbour/x src/a.py
    sort --o=../neighbour/x src/a.py
    sort src/a.py -o ../neighbour/x
    sort -o .git/config src/a.py
    sort -o .git/hooks/pre-commit src/a.py
    sort -o toolyard.json src/a.py
    sort --compress-program=./marker.sh src/a.py
    sort --compress-program ./marker.sh src/a.py
    sort --compress-prog=./marker.sh src/a.py
    sort --compress=sh -S 1k src/a.py
    sort --comp sh src/a.py
    sort -S 1 --c=sh src/a.py
    uniq src/a.py ../neighbour/x
    uniq src/a.py /etc/marker
    uniq -c src/a.py ../neighbour/x
    uniq -f 1 src/a.py ../neighbour/x
    uniq -f1 src/a.py .git/config
    uniq - ../neighbour/x
    uniq -- src/a.py ../neighbour/x
    xxd src/a.py ../neighbour/x
    xxd -r src/a.py ../neighbour/x
    xxd -r -p src/a.py ../neighbour/x
    xxd -ps src/a.py ../neighbour/x
    xxd -p -c 8 src/a.py ../neighbour/x
    xxd -c8 src/a.py ../neighbour/x
    xxd -s 1 src/a.py ../neighbour/x
    xxd -s1 src/a.py /etc/marker
    xxd -revert src/a.py ../neighbour/x
    xxd - ../neighbour/x
    xxd -color ../neighbour/x src/a.py
    xxd -colsX 8 ../neighbour/x
    xxd -l 5 -g 1 src/a.py .git/config
    tree -o ../neighbour/x
    tree -o marker /etc
    tree . -o ../neighbour/x
    tree -Lo 1 ../neighbour/x
    tree -ao ../neighbour/x
    tree -H . -R -L 1
    tree -RL 1
    tee ../neighbour/x
    tee -a ../neighbour/x
    tee -- ../neighbour/x
    tee src/new ../neighbour/x
    echo x | tee ../neighbour/x
    echo x | tee -a .git/config
    echo x | tee .git/hooks/pre-commit
    echo x | tee toolyard.json
    echo x | tee -ai ../neighbour/x
    echo x | tee --append ../neighbour/x
    echo x | tee --app ../neighbour/x
    shuf -o ../neighbour/x src/a.py
    shuf -eo ../neighbour/x a b
    shuf -o../neighbour/x src/a.py
    shuf --output=../neighbour/x src/a.py
    shuf --out=../neighbour/x src/a.py
    shuf -n1 -o .git/config src/a.py
    split src/a.py
    split -n 2 src/a.py ../neighbour/x
    split --filter=sh src/a.py
    csplit src/a.py 1
    csplit -f ../neighbour/x src/a.py 1
    dd if=src/a.py of=../neighbour/x
    dd if=/etc/passwd
    dd of=marker
    sed -i s/a/b/ ../neighbour/x
    sed -i.bak s/a/b/ src/a.py
    sed -ni p src/a.py
    sed -Ei s/a/b/ src/a.py
    sed -i -e s/a/b/ .git/config
    sed -e s/a/b/ -i src/a.py
    sed s/a/b/ src/a.py -i
    sed --in-place s/a/b/ src/a.py
    sed --in-place=.bak s/a/b/ src/a.py
    sed --in-pl s/a/b/ src/a.py
    sed --i s/a/b/ src/a.py
    sed -n 'w marker' src/a.py
    sed -n 'w ../neighbour/x' src/a.py
    sed 'wmarker' src/a.py
    sed 'W marker' src/a.py
    sed 's/a/b/w marker' src/a.py
    sed 's/a/b/gw marker' src/a.py
    sed 's/a/b/pw marker' src/a.py
    sed 's,a,b,w marker' src/a.py
    sed 's/[/]x/b/w marker' src/a.py
    sed 's/[/]a/touch marker/e' src/a.py
    sed 's/[^/]*/touch marker/e' src/a.py
    sed 's/[]/]/touch marker/e' src/a.py
    sed 's/[^]/]a/touch marker/e' src/a.py
    sed 's/[[:alpha:]/]/touch marker/e' src/a.py
    sed 's/[\]/touch marker/e' src/a.py
    sed 's/[\/]p/touch marker/e' src/a.py
    sed 's|[|]p|touch marker|e' src/a.py
    sed 's/print/touch marker/e' src/a.py
    sed 's/print/touch marker/ge' src/a.py
    sed 's/print/touch marker/2e' src/a.py
    sed 's/print/touch marker/Ie' src/a.py
    sed 's/print/touch marker/ep' src/a.py
    sed 's/print/touch marker/me' src/a.py
    sed '1e touch marker' src/a.py
    sed '1etouch marker' src/a.py
    sed e src/a.py
    sed '/[/]x/e touch marker' src/a.py
    sed '/x/!e touch marker' src/a.py
    sed '\,x,!e touch marker' src/a.py
    sed -e '1{e touch marker' -e '}' src/a.py
    sed '{e touch marker}' src/a.py
    sed 'p;e touch marker' src/a.py
    sed 'y/a/b/;e touch marker' src/a.py
    sed 'y/[/]/ab/;e touch marker' src/a.py
    sed ':a;e touch marker' src/a.py
    sed 's/a/b/;w marker' src/a.py
    sed 's/a/b/}w marker' src/a.py
    sed '0~2e touch marker' src/a.py
    sed -n '/a/,/b/w marker' src/a.py
    sed -n '/a/{w marker' -e '}' src/a.py
    sed 's/a/b/w/dev/stdout' src/a.py
    sed -e 'a\' -e 's/x/y' -e 'e touch marker' src/a.py
    sed -e p -e 'e touch marker' src/a.py
    sed --expression='e touch marker' src/a.py
    sed -ne '1e touch marker' src/a.py
    sed -n -- 'w marker' src/a.py
    sed 'c\' -e 'w marker' src/a.py
    sed 's/a/b/  ;  e touch marker' src/a.py
    sed $'#n\ne touch marker' src/a.py
    sed $'p\nw marker' src/a.py
    sed $'s/a/b/\ne touch marker' src/a.py
    sed $'t\ne' src/a.py
    sed $'b x\n: x\ne touch marker' src/a.py
    sed $'a\\\ntext\ne touch marker' src/a.py
    awk $'{print\n}\nBEGIN{system("touch marker")}' src/a.py
    sed --posix 'w marker' src/a.py
    sed -e t -e e src/a.py
    sed -e b -e 'w marker' src/a.py
    sed -e '1!' -e 'e touch marker' src/a.py
    sed -e p -e '1e touch marker' src/a.py
    sed -e q -e '1w marker' src/a.py
    grep --file=/etc/pass* src/a.py
    grep --exclude-from=../neighbour/* -r x src
    sort --output=../neighbour/* src/a.py
    git tag -l -F /etc/passwd
    git tag --contains HEAD -F/etc/passwd
    sed "$script" src/a.py
    sed -n "${line}p" src/a.py
    awk 'BEGIN{system("touch marker")}'
    awk '{system("touch marker")}' src/a.py
    awk 'BEGIN { system ( "touch marker" ) }'
    awk 'BEGIN{"touch marker" | getline}'
    awk 'BEGIN{"touch marker" | getline x}'
    awk 'BEGIN{cmd="touch marker"; cmd | getline}'
    awk 'BEGIN{print "x" | "touch marker"}'
    awk 'BEGIN{print | "sh"}'
    awk 'BEGIN{printf "touch marker" | "sh"}'
    awk 'BEGIN{print "x" > "marker"}'
    awk 'BEGIN{print "x" >> "marker"}'
    awk 'BEGIN{printf "x" > "marker"}'
    awk '{print > "marker"}' src/a.py
    awk '{print $1 > $2}' src/a.py
    awk '{print $1, $2 > "marker"}' src/a.py
    awk '/x/{print > "marker"}' src/a.py
    awk '{print(1) > "marker"}' src/a.py
    awk '{print (1)(2) > "marker"}' src/a.py
    awk 'BEGIN{print "x" |& "touch marker"}'
    awk '@load "x"; BEGIN{}'
    awk '@include "x"; BEGIN{}'
    awk 'BEGIN{f="system"; @f("touch marker")}'
    awk 'BEGIN{print SYMTAB["ENVIRON"]["PATH"]}'
    awk -i inplace '{print}' src/a.py
    awk -iinplace '{print}' src/a.py
    awk --include inplace '{print}' src/a.py
    awk --incl=inplace '{print}' src/a.py
    awk -l ./x '{print}' src/a.py
    awk --load=./x '{print}' src/a.py
    awk -l./x 1 src/a.py
    awk -E prog.awk
    awk --exec prog.awk
    awk --exec=prog.awk
    awk -o marker '{print}' src/a.py
    awk -omarker '{print}' src/a.py
    awk --pretty-print=marker '{print}' src/a.py
    awk --pretty=marker '{print}' src/a.py
    awk -pmarker '{print}' src/a.py
    awk --profile=marker '{print}' src/a.py
    awk -dmarker '{print}' src/a.py
    awk --dump-variables=marker '{print}' src/a.py
    awk -e 'BEGIN{system("touch marker")}'
    awk --source='BEGIN{system("touch marker")}'
    awk -D '{print}' src/a.py
    awk -W exec=prog.awk
    awk -Wexec=prog.awk
    awk -vx=1 'BEGIN{system(x)}'
    awk -F: 'BEGIN{system("touch marker")}'
    awk 'BEGIN{if(1)system("touch marker")}'
    awk 'function f(){system("touch marker")} BEGIN{f()}'
    awk 'BEGIN{x="a"/"b"; system("touch marker") #/"}'
    find . -exec touch marker {} +
    find . -execdir touch marker \;
    find . -okdir touch marker \;
    find . -delete
    find . -name x -delete
    find -D exec . -delete
    find -D exec -delete
    find -D -exec -delete \;
    find -D -exec . -delete \;
    find -O3 -D opt . -delete
    find . -name -exec -delete \;
    find . -path -exec -delete \;
    find . -regextype -exec -delete \;
    find . -user -exec -delete \;
    find . -mtime -exec -delete \;
    find . -fprint ../neighbour/x
    find . -fprint0 ../neighbour/x
    find . -fprintf ../neighbour/x %p
    find . -fprintf .git/config x
    find . -fls ../neighbour/x
    find . -name x -o -delete
    find . ! -name x -delete
    find . \( -name x \) -delete
    find . -newer src/a.py -delete
    find . -exec sh -c './marker.sh' \;
    find . -exec cat /etc/passwd \;
    find . -exec cat {} /etc/passwd +
    find . -exec sed -i s/a/b/ {} +
    find . -exec grep -f /etc/passwd {} +
    find . -type f -exec cp {} ../neighbour \;
    find . -printf %p -delete
    find . -newerXY x -delete
    find . -unknown
    find . -exec ls {} \; -delete
    find . -exec ls {} + -delete
    rg --pre ./marker.sh x
    rg --pre=./marker.sh x
    rg --pre=touch x marker
    rg --pre-glob '*' --pre touch x
    rg --hostname-bin=./marker.sh --hyperlink-format=x x
    rg --hostname-bin ./marker.sh x
    rg -z x
    rg --search-zip x
    rg -nz x
    fd -x touch marker
    fd -x touch
    fd -X touch marker
    fd x -x touch marker
    fd x --exec touch marker
    fd x --exec=touch
    fd x --exec-batch touch marker
    fd -HIx touch marker
    fd -e py -X sed -i s/a/b/
    date -s 2020-01-01
    date -s2020-01-01
    date --set=2020-01-01
    date --se=2020-01-01
    date 010100002020
    date -u 010100002020
    date -us 2020-01-01
    tar xf a.tar
    tar -xf a.tar
    tar -xzf a.tgz -C /tmp
    tar -xzfa.tgz -C/etc
    tar cf marker.tar src
    tar -cf ../neighbour/x src
    tar cvzf ../neighbour/x src
    tar --extract --file=a.tar
    tar --extr --fil=a.tar
    tar --create --file marker.tar src
    tar -rf a.tar src
    tar -uf a.tar src
    tar --delete -f a.tar x
    tar -tf a.tar -I ./marker.sh
    tar -tf a.tar -I./marker.sh
    tar -tIf ./marker.sh a.tar
    tar tIf ./marker.sh a.tar
    tar -tf a.tar --use-compress-program=./marker.sh
    tar -tf a.tar --use-compress-program ./marker.sh
    tar -tf a.tar --use-comp=./marker.sh
    tar -tf a.tar --to-command=./marker.sh
    tar -tf a.tar --checkpoint=1 --checkpoint-action=exec=./marker.sh
    tar -tf a.tar --checkpoint --checkpoint-action exec=./marker.sh
    tar -tf a.tar --checkpoint-act=exec=./marker.sh
    tar -tf a.tar -F ./marker.sh
    tar -tMf a.tar -F./marker.sh
    tar -tf a.tar --info-script=./marker.sh
    tar -tf a.tar --new-volume-script=./marker.sh
    tar -tf a.tar --rsh-command=./marker.sh
    tar -tf a.tar --rmt-command=./marker.sh
    tar -tf a.tar --index-file=marker
    tar -tf a.tar --index-file marker
    tar -tf a.tar --volno-file=marker
    tar -tf a.tar --unknown-option
    unzip a.zip
    unzip -o a.zip
    unzip -d ../neighbour a.zip
    unzip a.zip -d ../neighbour
    unzip -q a.zip
    unzip -lM a.zip
    unzip -f a.zip
    unzip -u a.zip
    gzip src/a.py
    gzip -k src/a.py
    gunzip a.gz
    git log --output=marker
    git log --output marker
    git log --outp=marker
    git log --outpu marker
    git log -p --output=../neighbour/x
    git diff --output=marker
    git diff --out=marker
    git diff --no-index /etc/passwd src/a.py
    git diff --no-ind /etc/passwd src/a.py
    git diff /etc/passwd /etc/group
    git diff src/a.py ../neighbour/x
    git diff --ext-diff
    git diff --ext
    git diff --textconv
    git diff -O/etc/passwd
    git diff -O /etc/passwd
    git show --output=marker
    git show --ext-diff
    git show --textconv HEAD
    git show --show-signature
    git log --show-signature
    git log --format=%GG
    git log --format='%h %G?'
    git log --pretty=%GK
    git log --pretty='format:%h %GS'
    git log --pretty=tformat:%-GG
    git log --form=%GF
    git log -1 --format=%x20%GP
    git log --format="$UNKNOWN"
    git show --format=%GK HEAD
    git rev-list --format=%GT HEAD
    git reflog --format=%GG
    git stash list --format=%GG
    git shortlog --format=%GG
    git whatchanged --format=%GG
    git diff-tree --format=%GG HEAD
    git for-each-ref --format='%(signature)'
    git for-each-ref --format='%(*signature:grade)'
    git for-each-ref --format '%(signature:key)'
    git for-each-ref --sort=signature
    git for-each-ref --sort -signature:grade
    git branch --list --format='%(signature)'
    git tag --list --format='%(signature:signer)'
    git tag --sort=signature
    git config -f a.cfg --includes -l
    git config --file=a.cfg --includes --list
    git config --includes --file a.cfg --get a.b
    git config --incl -fa.cfg -l
    git log --ext-diff -p
    git log -O/etc/passwd
    git stash show --output=marker
    git stash show -p --ext-diff
    git stash
    git stash pop
    git stash drop
    git stash clear
    git stash push
    git reflog expire --all
    git reflog delete HEAD@{0}
    git reflog --output=marker
    git blame --contents /etc/passwd src/a.py
    git blame --contents=/etc/passwd src/a.py
    git blame --cont=/etc/passwd src/a.py
    git blame -S /etc/passwd src/a.py
    git blame -S/etc/passwd src/a.py
    git blame --ignore-revs-file=/etc/passwd src/a.py
    git blame --ignore-revs-f /etc/passwd src/a.py
    git grep -O x
    git grep -Ovi x
    git grep -O./marker.sh x
    git grep -nO./marker.sh x
    git grep --open-files-in-pager=./marker.sh x
    git grep --open=./marker.sh x
    git grep --open-files-in-pager x
    git grep --no-index x /etc
    git grep --no-in x /etc
    git grep -f /etc/passwd
    git grep -f/etc/passwd
    git grep -nf/etc/passwd
    git grep --textconv x
    git ls-files -X /etc/passwd -o
    git ls-files -oX/etc/passwd
    git ls-files --exclude-from=/etc/passwd -o
    git ls-files --exclude-f=/etc/passwd -o
    git cat-file --textconv HEAD:src/a.py
    git cat-file --filters HEAD:src/a.py
    git cat-file --filt HEAD:src/a.py
    git shortlog --output=marker
    git rev-parse --resolve-git-dir /etc
    git rev-parse --parseopt
    git config --get --file /etc/passwd user.name
    git config --get -f /etc/passwd user.name
    git config --get -f/etc/passwd user.name
    git config --get --fil=/etc/passwd user.name
    git config --list -f ../neighbour/x
    git config --list --edit
    git config --get-all --add core.pager x
    git config core.pager ./marker.sh
    git config --global core.pager ./marker.sh
    git config --unset user.name
    git config -e
    git -c core.pager=./marker.sh log
    git -c alias.x='!touch marker' x
    git -c core.fsmonitor=./marker.sh status
    git --config-env=core.pager=X log
    git --exec-path=. status
    git --exec-path=/tmp log
    git --git-dir=/tmp/x log
    git --git-dir /tmp/x log
    git --work-tree=/etc status
    git --work-tree /etc diff
    git -C /etc status
    git -C ../neighbour log
    git -C .. status
    git --namespace=x log
    git -p log
    git --paginate log
    git --unknown log
    git fetch --upload-pack=./marker.sh
    git fetch --upload-p ./marker.sh .
    git ls-remote --upload-pack=./marker.sh .
    git ls-remote ext::sh
    git clone --upload-pack ./marker.sh . x
    git archive --output=marker HEAD
    git archive -o marker HEAD
    git archive --remote=. --exec=./marker.sh HEAD
    git difftool
    git mergetool
    git bisect run ./marker.sh
    git rebase -x ./marker.sh HEAD~1
    git submodule foreach touch marker
    git worktree add ../neighbour/w
    git worktree list --unknown
    git add -e
    git add -p
    git add --edit
    git add --pathspec-from-file=/etc/passwd
    git add --pathspec-from-f /etc/passwd
    git add ../neighbour/x
    git add /etc/passwd
    git branch new
    git branch -D main
    git branch --list -D main
    git tag v9
    git tag -d v1
    git tag -l -d v1
    git remote add x y
    git remote set-url origin ext::sh
    git remote update
    git push
    git commit -m x
    git checkout .
    git clean -fd
    git for-each-ref --unknown
    git check-ignore --unknown x
    git unknown
    git log --unknown-option
    git log --textconv -p
    cp src/a.py /etc/marker
    cp src/a.py ../neighbour/
    cp /etc/passwd here
    cp link here
    cp -t ../neighbour src/a.py
    cp -t../neighbour src/a.py
    cp -rt ../neighbour src
    cp --target-directory=../neighbour src/a.py
    cp --target ../neighbour src/a.py
    cp --targ=../neighbour src/a.py
    cp src/a.py .git/hooks/pre-commit
    cp src/a.py .git/config
    cp src/a.py toolyard.json
    cp src/toolyard.json .
    cp -r src/.git .
    cp src/.bashrc .
    cp -t . src/toolyard.json
    cp -r src/. .
    cp -rT src .
    cp -a src/. .
    cp -L link here
    cp -rL . copy
    cp --unknown src/a.py b
    mkdir /etc/marker
    mkdir -p ../neighbour/marker
    mkdir -m 700 ../neighbour/marker
    mkdir -pm700 ../neighbour/marker
    mkdir .git
    mkdir -p .git/hooks
    mkdir --parents ../neighbour/marker
    touch ../neighbour/marker
    touch /etc/marker
    touch -d now ../neighbour/x
    touch -r /etc/passwd b.txt
    touch -r/etc/passwd b.txt
    touch -cr/etc/passwd b.txt
    touch --reference=/etc/passwd b.txt
    touch --ref=/etc/passwd b.txt
    touch .git/hooks/pre-commit
    touch .bashrc
    touch toolyard.json
    touch link
    printf %n x
    printf '%ln' x
    printf '%lln' x
    printf '%hn' x
    printf '%zn' x
    printf '%5n' x
    printf '%-5.3ln' 'a[$(touch marker)]'
    printf 'abc%n' 'a[$(touch marker)]'
    printf '%s%ln' a 'a[$(touch marker)]'
    printf '%%%n' x
    printf -v x %s a
    printf -v 'a[$(touch marker)]' %s a
    printf -vx %s a
    printf "$format" a
    test -v 'a[$(touch marker)]'
    test -R x
    [ -v 'a[$(touch marker)]' ]
    [ a -a -v 'a[$(touch marker)]' ]
    read 'a[$(touch marker)]'
    read PATH
    read -a x
    env -S 'touch marker'
    env -Stouch\ marker
    env -vS 'touch marker'
    env --split-string='touch marker'
    env -i touch marker
    env -u X touch marker
    env -C /etc cat passwd
    env --chdir=/etc cat passwd
    env -C/etc ls
    env PATH=. ls
    env LD_PRELOAD=./x.so ls
    env GIT_PAGER=./marker.sh git log
    env - touch marker
    ls | xargs touch
    ls | xargs -n1 touch
    ls | xargs -I{} touch {}
    ls | xargs -I{} sh -c {}
    ls | xargs sh -c './marker.sh'
    echo /etc/passwd | xargs cat
    echo /etc/passwd | xargs -n 1 head
    echo /etc/passwd | xargs grep x
    echo /etc/passwd | xargs -I% cat %
    xargs -a /etc/passwd echo cat
    xargs -a names cat
    xargs --arg-file=names cat
    xargs --process-slot-var=PATH ls
    ls | xargs --max-lines touch
    ls | xargs -E x touch
    ls | xargs -o vi
    ps -ef --unknown
    hostname evil
    hostname -F names
    man -P ./marker.sh ls
    man -H./marker.sh ls
    less '+!./marker.sh' src/a.py
    more ../neighbour/x
    vi src/a.py
    curl file:///etc/passwd
    curl -o marker http://localhost
    wget -O marker http://localhost
    python3 -c 'open("marker","w")'
    python3 -V -c 'open("marker","w")'
    node -e 'require("fs").writeFileSync("marker","")'
    node -v -e 1
    npm -v exec touch marker
    make -f marker.mk
    make -n
    perl -e 'unlink "b.txt"'
    perl -v -e 1
    ruby -v -e 1
    bash -c './marker.sh; touch marker'
    ssh -V host touch marker
    column -t src/a.py > ../neighbour/x
    echo x > /etc/marker
    echo x >> .git/config
    sort src/a.py > .git/hooks/pre-commit
    sort --unknown src/a.py
    grep --unknown x src/a.py
    ls --unknown
    cat --unknown src/a.py
    wc --unknown src/a.py
    grep -Q x src/a.py
    head -Q src/a.py
    ls --col=always --si --in /etc
""")
INSIDE = lines_of(r"""
    sed -i s/a/b/ src/a.py
    find . -exec sh -c 'touch marker' \;
    ls | xargs sh -c 'touch marker'
    bash -c 'touch marker'
    find . -exec touch marker \;
    find . -ok touch marker \;
    find -D tree . -exec touch marker \;
    find . -maxdepth 1 -fprint marker
    find . -exec ls \; -exec touch marker \;
    tar -tf a.tar -g marker
    tar -tf a.tar --listed-incremental=marker
    env touch marker
    tee marker
    touch marker
    mkdir marker
    cp src/a.py marker
    sort -o marker src/a.py
    sort -uomarker src/a.py
    sort --outp=marker src/a.py
    uniq src/a.py marker
    xxd src/a.py marker
    xxd -ps src/a.py marker
    tree -o marker
    shuf -o marker src/a.py
    git add src/a.py
    echo x > marker
    find . -fls marker
    find . -fprintf marker %p
    env LC_ALL=C touch marker
    timeout 5 touch marker
""")
"""Lines that write files of the workspace, which the preset `workspace` is for, and `read-only` is not."""
BY_HAND = [*READING, *WRITING_OR_RUNNING]
"""Lines thought up from manuals, and from what is public about how other checks were evaded."""
