"""Lines by which agents look around in a workspace, and that nobody should be asked about."""

from __future__ import annotations

from permissions.hostile_lines import lines_of

LOOKING_AROUND = lines_of(r"""
    ls
    ls -la
    ls -la src
    ls -1 src
    ls -lah --color=never
    ls -lt src
    ls -R src
    ls -d src
    ls --sort=size -l
    ls --group-directories-first -a
    ls -I '*.pyc' src
    ls src/a.py README.md
    ls -la src/*.py
    pwd
    cat README.md
    cat -n src/a.py
    cat -A src/a.py
    cat README.md src/a.py
    cat .gitmodules
    cat .npmrc
    cat ./src/a.py
    cat src/../README.md
    head README.md
    head -20 src/a.py
    head -n 20 src/a.py
    head -n20 src/a.py
    head -c 100 src/a.py
    head --lines=5 src/a.py
    head -n -5 src/a.py
    tail -5 README.md
    tail -n 5 README.md
    tail -n +3 README.md
    tail -c 50 README.md
    wc -l src/a.py
    wc -l README.md src/a.py
    wc -c README.md
    wc -lw src/a.py
    nl -ba src/a.py
    nl README.md
    tac README.md
    rev README.md
    stat src/a.py
    stat -c '%s %n' src/a.py
    stat -c %a README.md
    stat --format=%Y README.md
    stat --printf='%s\n' README.md
    file src/a.py
    file -b src/a.py
    file --mime-type src/a.py
    file -bi README.md
    du -sh .
    du -sh src
    du -h --max-depth=1
    du -h -d 1 .
    du -a src
    df -h
    df -h .
    df -h /
    tree
    tree -L 2
    tree -L 2 src
    tree -a -I node_modules
    tree -I '.git|node_modules' -L 3
    tree -d
    tree -P '*.py' --prune
    tree -aL 2
    basename src/a.py
    basename /usr/lib/x.so .so
    basename -s .py src/a.py
    dirname src/a.py
    dirname /usr/lib/x.so
    readlink -f src/a.py
    realpath src
    realpath --relative-to=. src/a.py
    which python3
    which -a node
    type git
    type -t ls
    command -v node
    command -v python3
    uname -a
    uname -sr
    whoami
    id
    id -u
    id -un
    hostname
    uptime
    nproc
    free -h
    free -m
    date
    date +%F
    date +%s
    date '+%Y-%m-%d %H:%M:%S'
    date -u +%FT%TZ
    date -d yesterday +%F
    date -d '2 days ago'
    date --date='next monday' +%A
    date -r README.md
    date -Iseconds
    date -I
    ps
    ps aux
    ps -ef
    ps auxf
    ps -eo pid,ppid,cmd
    ps -p 1 -o pid,cmd
    ps -u root
    ps ax
    ps axo pid,user,time
    ps --forest -ef
    ps aux --sort=-%mem
    env
    env | grep PATH
    env | sort
    printenv
    printenv PATH
    printenv HOME
    echo $HOME
    echo "$PATH"
    echo hello
    echo *
    echo src/*.py
    echo "$HOME/*"
    echo "[ok]" $USER
    expr 3 \* 4
    echo -e 'a\tb'
    echo -n x
    printf '%s\n' a b
    printf 'a\n'
    printf '%d items\n' 3
    printf '%-10s|%5.2f\n' a 1.5
    printf '100%%\n'
    printf '%(%F)T\n' -1
    test -f README.md
    test -f README.md && echo yes
    test -d src || echo no
    [ -f README.md ] && cat README.md
    [ -d src ]
    test -n x -a -z ''
    test 1 -eq 1
    [ a = b ] || echo differs
    expr 1 + 2
    expr length abc
    seq 3
    seq 1 2 9
    seq -s, 5
    sleep 0.1
    true
    false || true
    node -v
    node --version
    npm -v
    npm --version
    python3 -V
    python3 --version
    python --version
    pip --version
    cargo --version
    rustc --version
    go version
    java -version
    gcc --version
    make --version
    ruby -v
    git --version
    jq --version
    uv --version
    docker --version
""")
TEXT = lines_of(r"""
    grep foo src/a.py
    grep -n foo src/a.py
    grep -rn foo src
    grep -rn foo .
    grep -rni foo src
    grep -rnw foo .
    grep -rl foo src
    grep -rL foo src
    grep -c foo src/a.py
    grep -o 'v[0-9]*' README.md
    grep -E 'a|b' README.md
    grep -P '\d+' README.md
    grep -F 'a.b' README.md
    grep -v '^#' README.md
    grep "/api" src/a.py
    grep -rn "/api/v1" src
    grep -rn '/usr/bin' .
    grep -rn "~/.config" src
    grep -e foo -e bar src/a.py
    grep -rn -e '--flag' src
    grep -- '--flag' README.md
    grep -A 3 foo src/a.py
    grep -A3 -B3 foo src/a.py
    grep -C 5 foo src/a.py
    grep -5 foo src/a.py
    grep -m 1 foo src/a.py
    grep -m1 -n foo src/a.py
    grep -rn foo --include='*.py' .
    grep -rn --include '*.py' foo .
    grep -rn --include=*.py foo src
    grep -rn foo --exclude-dir=node_modules .
    grep -rn foo --exclude-dir node_modules --exclude-dir=.git .
    grep -rn --exclude='*.min.js' foo .
    grep --color=never -n foo src/a.py
    grep -rIn foo .
    grep -Hn foo src/a.py README.md
    grep -qs foo README.md
    grep -rhoE '[a-z]+' src
    grep -f .npmrc README.md
    grep '../x' src/a.py
    egrep 'a|b' README.md
    fgrep -n a.b README.md
    rg foo
    rg -n foo src
    rg -i foo
    rg --files
    rg --files src
    rg --files -g '*.py'
    rg -l foo
    rg -c foo src
    rg foo -g '*.py'
    rg foo -g '!node_modules'
    rg -t py foo
    rg --type py foo src
    rg -A 3 -B 3 foo
    rg -C2 foo src
    rg -uu foo
    rg --hidden foo
    rg --no-ignore foo src
    rg -o '\w+' src
    rg -w foo
    rg -F 'a.b('
    rg '/api/v1' src
    rg -e foo -e bar
    rg --json foo
    rg -U 'a\nb' src
    rg --sort path foo
    rg -m 1 foo
    rg -r bar foo src
    rg --max-depth 2 foo
    rg foo --stats
    rg -n --no-heading foo src
    ag foo src
    fd
    fd foo
    fd -e py
    fd -e py . src
    fd -t f foo
    fd --type d
    fd -H foo
    fd -HI foo src
    fd -d 2 foo
    fd -E node_modules foo
    fd --max-depth 2 -e md
    fd -a foo
    fd -g '*.py'
    find .
    find . -name '*.py'
    find . -name '*.py' -not -path './node_modules/*'
    find . -type f -name '*.py' -not -path '*/.git/*'
    find . -path '/x' -prune -o -print
    find . -path ./node_modules -prune -o -name '*.js' -print
    find src -type f
    find . -maxdepth 2 -type d
    find . -mindepth 1 -maxdepth 1
    find . -iname '*readme*'
    find . -type f -size +1M
    find . -mtime -1
    find . -mmin -60 -type f
    find . -newer README.md
    find . -newermt '2020-01-01'
    find . -printf '%p\n'
    find . -printf '%T@ %p\n'
    find . -type f -printf '%s %p\n' | sort -n
    find . -empty
    find . -perm -u+x
    find . \( -name '*.js' -o -name '*.ts' \) -print
    find . ! -name '*.py'
    find . -regex '.*/a.*'
    find . -regextype posix-extended -regex '.*\.(js|ts)'
    find . -type l
    find . -type f -print0
    find . -name '*.py' -ls
    find . -type f -name '*.py' -exec wc -l {} +
    find . -type f -exec grep -l foo {} \;
    find . -name '*.py' -exec wc -l {} +
    find . -name '*.py' -exec grep -l foo {} \;
    find src -name '*.py' -exec head -1 {} \;
    find . -type f | wc -l
    find . -name '*.md' | sort | head -5
    sed -n 1,5p src/a.py
    sed -n '1,5p' src/a.py
    sed -n '/re/p' src/a.py
    sed -n '/a/,/b/p' src/a.py
    sed -n '$p' README.md
    sed -n '10,$p' README.md
    sed '1d' README.md
    sed '/^$/d' README.md
    sed '/^#/d;/^$/d' README.md
    sed 's/a/b/' README.md
    sed 's/a/b/g' README.md
    sed -E 's/(a+)/\1b/g' README.md
    sed 's|/usr|/opt|g' README.md
    sed 's#a#b#' README.md
    sed 's/[^/]*$//' README.md
    sed 's,/[^/]*$,,' README.md
    sed -e 's/a/b/' -e 's/c/d/' README.md
    sed -n -e '1p' -e '3p' README.md
    sed 5q README.md
    sed '5q;d' README.md
    sed = README.md
    sed 's/^[ \t]*//' README.md
    sed 's/[[:space:]]*$//' README.md
    sed -n 's/.*name: \(.*\)/\1/p' README.md
    sed 'y/abc/xyz/' README.md
    sed '1!G;h;$!d' README.md
    sed ':a;N;$!ba;s/\n/ /g' README.md
    sed -n '/foo/{n;p;}' README.md
    sed '/a/!d' README.md
    sed '1i\header' README.md
    sed '$a\footer' README.md
    sed -n '0~3p' README.md
    sed -n '5{p;q}' README.md
    sed -n '/a/I,+3p' README.md
    awk '{print $1}' README.md
    awk '/re/' README.md
    awk '/re/{print $2}' README.md
    awk '!/re/' README.md
    awk -F/ '{print $2}' README.md
    awk -F: '{print $1}' README.md
    awk -F ',' '{print $1","$2}' README.md
    awk -F'\t' '{print NF}' README.md
    awk 'NR==1' README.md
    awk 'NR>=1 && NR<=5' README.md
    awk 'NR%2' README.md
    awk '{s+=$1} END {print s}' README.md
    awk 'END{print NR}' README.md
    awk 'length > 80' README.md
    awk '{print NR": "$0}' README.md
    awk -v n=5 'NR==n' README.md
    awk '{count[$1]++} END {for (k in count) print k, count[k]}' README.md
    awk '!seen[$0]++' README.md
    awk '{printf "%s\n", $1}' README.md
    awk '{gsub(/a/,"b"); print}' README.md
    awk '$1 > 5 {print $1}' README.md
    awk 'BEGIN{FS=":"} {print $1}' README.md
    jq . data.json
    jq '.env' data.json
    jq '.env.a' data.json
    jq -r '.env | keys[]' data.json
    jq '.["env"]' data.json
    jq '{env: .env}' data.json
    jq '{env}' data.json
    jq '{a: 1, env: .env}' data.json
    jq -r '.scripts | to_entries[] | "\(.key): \(.value)"' data.json
    jq '.a // "none"' data.json
    jq 'keys' data.json
    jq 'length' data.json
    jq '.[] | select(.a == 1)' data.json
    jq '.. | .a? // empty' data.json
    jq 'map(.a)' data.json
    jq --arg x 1 '.a == $x' data.json
    jq --argjson x 1 '.a == $x' data.json
    jq -c . data.json
    jq -e .env data.json
    jq -S . data.json
    jq -s . data.json
    jq -n '1+1'
    jq -R . README.md
    jq -rn '"a"'
    jq --tab . data.json
    jq --indent 4 . data.json
    jq '.env | @sh "\(.a)"' data.json
    jq 'input_filename' data.json
    jq '[.[] | {name, env}]' data.json
    jq '.dependencies | to_entries | map("\(.key)@\(.value)") | join("\n")' data.json
    jq 'if .a then 1 else 2 end' data.json
    jq 'reduce .[] as $x (0; . + 1)' data.json
    cut -d/ -f1 README.md
    cut -d / -f 2 README.md
    cut -d: -f1,3 README.md
    cut -c1-80 README.md
    cut -f2 README.md
    cut --delimiter=/ --fields=2 README.md
    tr / _
    echo a/b | tr / _
    echo a | tr a-z A-Z
    echo a | tr -d '\n'
    echo a | tr -s ' '
    sort README.md
    sort -u README.md
    sort -rn README.md
    sort -t/ -k2 README.md
    sort -t / -k 2,2 README.md
    sort -t: -k1,1 -k2n README.md
    sort -h README.md
    sort -k2 -n README.md
    sort --reverse README.md
    sort --key=2 README.md
    sort -V README.md
    uniq README.md
    uniq -c README.md
    sort README.md | uniq -c | sort -rn | head
    uniq -d README.md
    comm -12 README.md src/a.py
    diff README.md src/a.py
    diff -u README.md src/a.py
    diff -q README.md src/a.py
    diff -y -W 80 README.md src/a.py
    diff --color=never README.md b.txt
    diff -U 5 README.md b.txt
    diff -r src src
    diff -w README.md b.txt
    diff /dev/null README.md
    cmp README.md b.txt
    paste README.md b.txt
    paste -sd, README.md
    paste -d/ README.md b.txt
    join README.md b.txt
    column -t README.md
    column -t -s, README.md
    column -ts/ README.md
    fold -w 80 README.md
    fold -sw 80 README.md
    fmt -w 60 README.md
    od -c README.md
    od -An -tx1 README.md
    od -A x -t x1z README.md
    xxd README.md
    xxd -l 64 README.md
    xxd -p README.md
    xxd -s 16 -l 16 README.md
    hexdump -C README.md
    hexdump -C -n 64 README.md
    strings README.md
    strings -n 8 README.md
    md5sum README.md
    sha256sum README.md b.txt
    sha1sum src/a.py
    cksum README.md
    base64 README.md
    base64 -w0 README.md
    echo aGk= | base64 -d
    expand -t 4 README.md
    shuf -n 1 README.md
    shuf -i 1-10 -n 1
    tar tzf a.tar
    tar tf a.tar
    tar -tf a.tar
    tar -tvf a.tar
    tar tvzf a.tar
    tar --list --file=a.tar
    tar -tzf a.tar src/a.py
    unzip -l a.zip
    unzip -p a.zip README.md
    unzip -t a.zip
    zipinfo a.zip
    zcat a.gz
    zcat a.gz | head
    zgrep foo a.gz
    gzip -l a.gz
""")
GIT = lines_of(r"""
    git status
    git status -s
    git status --short --branch
    git status -sb
    git status --porcelain
    git status --porcelain=v2
    git status -uno
    git status -uall
    git status --ignored
    git log
    git log --oneline
    git log --oneline -10
    git log --format='%h %an %s' -3
    git log --pretty=format:%H%n%g
    git for-each-ref --format='%(refname:short) %(objectname)'
    git for-each-ref --sort=-committerdate
    git config --includes --list
    git log -5
    git log -n 5
    git log -n5 --oneline
    git log --oneline --graph --all
    git log --oneline --decorate --graph
    git log -p -1
    git log -p src/a.py
    git log -- src/a.py
    git log --oneline -- src
    git log --follow src/a.py
    git log --stat -3
    git log --format='%h %s'
    git log --format='%h %an %ad %s' --date=short
    git log --pretty=format:'%h %s'
    git log --pretty=oneline
    git log --since='2 weeks ago'
    git log --since=yesterday --author=me
    git log --grep=fix
    git log --grep 'fix /api'
    git log -S'foo('
    git log -S foo -- src
    git log -G'/api' --oneline
    git log main..HEAD
    git log origin/main..HEAD --oneline
    git log HEAD~3..HEAD
    git log --name-only -1
    git log --name-status -2
    git log --all --oneline -20
    git log --no-merges --oneline
    git log -L 1,3:src/a.py
    git log --diff-filter=D --summary
    git log --reverse --oneline
    git log --first-parent
    git log -1 --format=%H
    git log --author='A B' --oneline
    git --no-pager log --oneline -5
    git --no-pager diff
    git -C src status
    git diff
    git diff HEAD
    git diff HEAD~1
    git diff HEAD~1 HEAD
    git diff a..b
    git diff main...HEAD
    git diff main...HEAD --stat
    git diff --stat
    git diff --cached
    git diff --staged --name-only
    git diff --name-status HEAD~1
    git diff src/a.py
    git diff -- src/a.py
    git diff HEAD -- src
    git diff -U10
    git diff -U0 src/a.py
    git diff --word-diff
    git diff -w
    git diff --no-color
    git diff --shortstat
    git diff --numstat HEAD~2
    git diff --check
    git diff -M HEAD~1
    git diff --diff-filter=AM --name-only
    git diff --no-ext-diff
    git diff --ignore-all-space
    git show
    git show HEAD
    git show HEAD:src/a.py
    git show HEAD~1:src/a.py
    git show --stat
    git show --stat HEAD
    git show --name-only HEAD
    git show -s --format=%B HEAD
    git show --format= --name-only HEAD
    git show v1.0
    git show abc123 -- src/a.py
    git blame src/a.py
    git blame -L 1,3 src/a.py
    git blame -L1,3 -- src/a.py
    git blame -w -C src/a.py
    git blame --date=short src/a.py
    git grep foo
    git grep -n foo
    git grep -n foo -- '*.py'
    git grep -i '/api' src
    git grep -l foo HEAD
    git grep -e foo --and -e bar
    git grep -c foo
    git grep -A 3 foo
    git ls-files
    git ls-files src
    git ls-files '*.py'
    git ls-files -m
    git ls-files -o --exclude-standard
    git ls-files --others --ignored --exclude-standard
    git ls-tree HEAD
    git ls-tree -r HEAD --name-only
    git ls-tree -r --name-only HEAD src
    git rev-parse HEAD
    git rev-parse --short HEAD
    git rev-parse --abbrev-ref HEAD
    git rev-parse --show-toplevel
    git rev-parse --is-inside-work-tree
    git rev-parse --verify main
    git rev-parse --git-dir
    git rev-list --count HEAD
    git rev-list --max-count=5 HEAD
    git rev-list --all
    git rev-list main..HEAD
    git describe --tags
    git describe --tags --abbrev=0
    git describe --always --dirty
    git shortlog -sn
    git shortlog -sne HEAD
    git shortlog --summary --numbered
    git cat-file -p HEAD
    git cat-file -t HEAD
    git cat-file -p HEAD:src/a.py
    git show-ref
    git show-ref --tags
    git merge-base main HEAD
    git branch
    git branch -a
    git branch -vv
    git branch -r
    git branch --list
    git branch --list 'feature/*'
    git branch --show-current
    git branch --contains HEAD
    git branch --merged main
    git tag
    git tag -l
    git tag -l 'v*'
    git tag --list --sort=-creatordate
    git tag -n
    git remote
    git remote -v
    git remote get-url origin
    git stash list
    git stash show
    git stash show -p
    git stash show -p stash@{0}
    git stash show --stat stash@{1}
    git reflog
    git reflog -10
    git reflog show HEAD
    git reflog --date=relative
    git worktree list
    git worktree list --porcelain
    git config --get user.name
    git config --get remote.origin.url
    git config --list
    git config -l --show-origin
    git config --get-regexp '^alias'
    git for-each-ref --format='%(refname:short)' refs/heads
    git for-each-ref --sort=-committerdate --count=5 refs/heads/
    git check-ignore -v src/a.py
    git count-objects -vH
    git name-rev HEAD
    git whatchanged -1
""")
HARMLESS = [*LOOKING_AROUND, *TEXT, *GIT]
CHANGING = lines_of(r"""
    echo x | tee notes.txt
    echo x | tee -a notes.txt
    echo x | tee --append notes.txt
    echo x | tee -i notes.txt
    echo x | tee -a one.txt two.txt
    echo x | tee -ai notes.txt
    echo x | tee --output-error=warn notes.txt
    echo x >> notes.txt
    mkdir new
    mkdir -p new/deep/er
    mkdir -pv new
    mkdir -m 755 new
    mkdir --parents --verbose new
    touch new.txt
    touch -c new.txt
    touch -a -m new.txt
    touch -d '2020-01-01' new.txt
    touch -r README.md new.txt
    touch --no-create new.txt
    touch -t 202001010000 new.txt
    cp README.md copy.md
    cp -p README.md copy.md
    cp -a src src2
    cp -r docs docs2
    cp -v README.md copy.md
    cp -n README.md copy.md
    cp -u README.md copy.md
    cp --preserve=mode README.md copy.md
    cp -t docs README.md
    cp --target-directory=docs README.md
    cp -T README.md copy.md
    cp -rv docs docs3
    cp --backup=numbered README.md copy.md
    git add .
    git add -A
    git add -u
    git add src/app.py README.md
    git add --all
    git add -n .
    git add -v src
    git add -- README.md
    git add --intent-to-add new.txt
    sort -o out.txt README.md
    sort README.md > sorted.txt
    sort -u README.md -o out.txt
    grep -rn def src > found.txt
    ls > listing.txt 2>&1
    ls 2>/dev/null
    echo done >&2
    sed -n '1,3p' README.md > part.txt
    head -5 README.md > head.txt
    printf '%s\n' a b > ab.txt
    git diff > change.patch
    git log --oneline > log.txt
    wc -l src/*.py > counts.txt
    find src -name '*.py' > list.txt
    cat README.md | tr a-z A-Z > upper.txt
    jq . package.json > pretty.json
    awk '{print $1}' README.md > first.txt
    date > stamp.txt
    diff README.md docs/guide.md > d.txt
    base64 README.md > enc.txt
    sha256sum README.md > sums.txt
    mkdir -p a && touch a/b && cp README.md a/c
    for f in src/*.py; do wc -l "$f"; done
    for f in a b; do mkdir -p "out/$f"; done
    if [ -f README.md ]; then cat README.md; fi
    test -d src && ls src
    while read -r line; do echo "$line"; done < README.md
    cd src && ls && cd ..
    x=$(wc -l < README.md); echo "$x"
    export LANG=C; sort README.md
    LC_ALL=C sort README.md
    [[ -f README.md ]] && echo yes
    case $1 in a) echo a;; esac
    echo "$(git rev-parse HEAD)"
    echo {a,b,c}
""")
"""Lines that make and change files of the workspace, which nobody should be asked about who works there."""
