"""What coding agents really type to look around and to write in the workspace; nobody should be asked about it."""

from __future__ import annotations

FILES = r"""
ls
ls -la
ls -l src
ls -lah src tests docs
ls -1
ls -1t | head -5
ls -lt | head -20
ls -R src
ls src/*.py
ls -la src/*.py tests/*.py
ls -d */
ls -a | head -30
ls -lS | head
ls *.md *.txt 2>/dev/null
ls src/ 2>/dev/null || echo "no src"
ls -la && git status
ls -la; echo; cat README.md
ls node_modules 2>/dev/null | wc -l
ls -la .github 2>/dev/null
ls -p | grep -v /
ls | wc -l
pwd
pwd && ls
pwd; ls -la
cat README.md
cat package.json
cat src/app.py src/util.py
cat -n src/app.py
cat -A notes.txt
cat src/*.py
cat src/app.py | head -50
cat src/app.py | head -n 20 | tail -n 5
cat package.json | grep '"version"'
cat package.json | jq .scripts
cat requirements.txt setup.py 2>/dev/null
cat README.md docs/guide.md | wc -l
cat .gitignore
cat .gitattributes
cat Makefile | grep -E '^[a-z]+:'
cat data.csv | cut -d, -f1 | sort | uniq -c
cat notes.txt | tr a-z A-Z
cat notes.txt | tr -d '\n'
cat notes.txt | tr / _
cat data.json | python3 --version
cat tests/test_app.py | sed -n '1,20p'
cat << 'EOF'
some text with $dollar and `ticks`
EOF
cat <<EOF
plain text
EOF
head README.md
head -n 5 README.md
head -20 src/app.py
head -c 100 README.md
head -c 200 data.json; echo
head -n1 data.csv
head -n -1 notes.txt
head -3 src/*.py
head -50 package.json | tail -40
tail old.log
tail -n 20 old.log
tail -5 README.md
tail -n +2 data.csv
tail -c 50 notes.txt
tail -n 100 old.log | grep ERROR
wc -l src/*.py
wc -l README.md notes.txt
wc -c data.json
wc -w README.md
wc -l < notes.txt
wc -l $(git ls-files '*.py')
wc -l src/*.py | tail -1
wc -l src/*.py tests/*.py | sort -n
stat README.md
stat -c '%s %n' README.md notes.txt
stat -c %y src/app.py
stat -f README.md
stat --format='%a %U %n' src/*
file README.md
file src/*
file -b data.json
file -i README.md
file --mime-type data.json
du -sh .
du -sh src tests
du -h --max-depth=1
du -ah src | sort -h
du -sh * | sort -rh | head
du -sk src | cut -f1
df -h
df -h .
tree
tree -L 2
tree -L 2 -I 'node_modules|.git'
tree src -a
tree -d
tree --dirsfirst -L 3
readlink -f src/app.py
readlink bin/sh
realpath src/app.py
realpath --relative-to=. src/app.py
realpath .
basename src/app.py
basename src/app.py .py
basename "$PWD"
dirname src/app.py
dirname "$(realpath src/app.py)"
diff src/app.py src/util.py
diff -u src/app.py src/util.py
diff -u src/app.py src/util.py | head -30
diff -r src tests
diff -rq src tests
diff -q src/app.py src/util.py && echo same
diff --brief src tests
diff -y -W 80 src/app.py src/util.py
diff <(sort notes.txt) <(sort README.md)
diff <(git show HEAD:src/app.py) src/app.py
diff -w --ignore-blank-lines src/app.py src/util.py
cmp src/app.py src/util.py
cmp -s src/app.py src/util.py && echo same || echo differs
comm -12 <(sort notes.txt) <(sort README.md)
md5sum src/app.py
md5sum src/*.py
sha256sum package.json
sha1sum README.md | cut -d' ' -f1
cksum notes.txt
base64 data.json
base64 -w0 data.json
echo aGVsbG8= | base64 -d
xxd data.json | head
xxd -l 64 data.json
od -c notes.txt | head
od -An -tx1 notes.txt | head -2
hexdump -C data.json | head -5
strings data.json | head
nl src/app.py
nl -ba src/app.py | sed -n '3,8p'
tac notes.txt
rev notes.txt
fold -w 80 README.md
fmt -w 72 README.md
column -t -s, data.csv
paste -sd, notes.txt
paste -d' ' notes.txt notes.txt
paste <(cut -d, -f1 data.csv) <(cut -d, -f2 data.csv)
join -t, data.csv data.csv
cut -d, -f1 data.csv
cut -d/ -f2 notes.txt
cut -d: -f1,2 notes.txt
cut -c1-20 notes.txt
cut -f1 -d' ' old.log
sort notes.txt
sort -u notes.txt
sort -t, -k2 -n data.csv
sort -t/ -k2 notes.txt
sort -k1,1 -k2,2nr data.csv
sort notes.txt | uniq -c | sort -rn
sort -rn data.csv | head -3
uniq notes.txt
uniq -c notes.txt
uniq -d notes.txt
""".strip()
SEARCHES = r"""
grep TODO README.md
grep -n TODO src/app.py
grep -rn TODO .
grep -rn "TODO" src
grep -rn "def main" --include="*.py" .
grep -rn 'import os' src tests
grep -rni todo src | head -20
grep -rl TODO .
grep -rln "def " src
grep -c def src/util.py
grep -rc def src
grep -v '^#' README.md
grep -E 'TODO|FIXME' -rn src
grep -rnE "(TODO|FIXME|XXX)" --include=*.py .
grep -A 3 -B 2 def src/app.py
grep -A3 'def main' src/app.py
grep -C 2 return src/*.py
grep -w main src/app.py
grep -o '"version": "[^"]*"' package.json
grep -oP '"version":\s*"\K[^"]+' package.json
grep -F 'os.getcwd()' src/app.py
grep "/api" notes.txt
grep -rn "/api/v1" .
grep -rn '/api' --include='*.ts' src
grep -n "^/" notes.txt
grep -rn "\.\./" src
grep -rn "~/" README.md
grep -e alpha -e beta notes.txt
grep -q alpha notes.txt && echo found
grep -q alpha notes.txt; echo $?
grep -rn TODO . --exclude-dir=node_modules --exclude-dir=.git
grep -rn TODO --include='*.{py,md}' .
grep -rnw main src/
grep -L TODO src/*.py
grep -h TODO src/*.py README.md
grep -s foo notes.txt || true
grep -m1 def src/*.py
grep -i "todo" README.md | wc -l
grep -n '' notes.txt | head -3
grep --color=never -n def src/app.py
grep -nE '^(import|from) ' src/*.py
grep -P '^\s+return' src/app.py
grep -r "env" package.json data.json
grep -rn "password" src || echo none
grep -vE '^\s*(#|$)' requirements.txt
egrep -n 'def|class' src/app.py
fgrep -n 'os.' src/app.py
rg TODO
rg -n TODO src
rg --files
rg --files -g '*.py'
rg --files | head -50
rg -l TODO
rg -t py 'def '
rg -n "def main" -A 5
rg -i todo --glob '!node_modules'
rg -c def src
rg -e alpha -e beta notes.txt
rg --no-heading -n TODO | head
rg -uu TODO | wc -l
rg '/api' src
find .
find . -name '*.py'
find . -name "*.py" -type f
find . -type f | head -20
find . -type f -name '*.md' -not -path './node_modules/*'
find . -type d -maxdepth 2
find . -maxdepth 1 -type f
find . -path ./node_modules -prune -o -name '*.py' -print
find . -name node_modules -prune -o -type f -print | head
find . -not -path '*/.git/*' -type f | wc -l
find src -name '*.py' | xargs wc -l
find src -name '*.py' -print0 | xargs -0 grep -n def
find src -type f -name '*.py' -exec grep -l TODO {} \;
find src -type f -name '*.py' -exec grep -Hn TODO {} +
find src -name '*.py' -exec wc -l {} +
find src -name '*.py' -exec head -1 {} \;
find . -iname 'readme*'
find . -newer README.md -name '*.py'
find . -mtime -1 -type f | head
find . -size +10k -type f
find . -empty -type f
find src tests -name '*.py' | sort
find . -name '*.py' | wc -l
find . -type f -name '*.json' -printf '%p %s\n'
find . -type f -printf '%s %p\n' | sort -rn | head
find . -type l
find src \( -name '*.py' -o -name '*.ts' \) -type f
find . -regex '.*\.py'
find . -name '*.log' -ls
find . -maxdepth 2 -name package.json
find . -name '*.py' | xargs grep -n TODO
find . -name '*.py' | head -5 | xargs cat
find src -name '*.py' | while read f; do echo "$f"; wc -l "$f"; done
find src -name '*.py' | while read -r f; do head -1 "$f"; done
find . -path '*/tests/*' -name '*.py'
find src -type f | sed 's|/[^/]*$||' | sort | uniq -c
find src -name '*.py' | xargs -n1 basename
find src -name '*.py' | xargs -I{} basename {} .py
find src -type f -exec md5sum {} + | sort
fd
fd -e py
fd app src
fd -t f -e md
git ls-files | grep py
git ls-files | wc -l
git ls-files | head
git ls-files | xargs wc -l
git ls-files '*.py' | xargs grep -n def
git ls-files -m
git ls-files --others --exclude-standard
git ls-files src
git grep -n TODO
git grep -n "def main" -- '*.py'
git grep -l TODO
git grep -c def
git grep -nE 'TODO|FIXME' src
which python3
which git node npm
which -a python3
type ls
type -a python3
command -v jq
command -v python3 >/dev/null && echo yes
""".strip()
GIT = r"""
git status
git status -s
git status --short
git status --short --branch
git status --porcelain
git status | head -20
git log
git log --oneline
git log --oneline -10
git log -1
git log -5 --stat
git log --oneline --graph --all
git log --oneline --decorate -n 5
git log -p -1
git log -p -2 -- src/app.py
git log --format='%h %s'
git log --pretty=format:'%h %an %ad %s' --date=short -5
git log --author=Ada --oneline
git log --since='2 weeks ago' --oneline
git log --grep=first
git log -S twice --oneline
git log -- src/app.py
git log --follow --oneline -- src/app.py
git log main..topic
git log --oneline main...topic
git log -n 3 --name-only
git log --name-status -1
git log --oneline | wc -l
git --no-pager log --oneline -5
git --no-pager diff
GIT_PAGER=cat git log -3
git diff
git diff --stat
git diff --cached
git diff --staged --stat
git diff HEAD
git diff HEAD~1
git diff HEAD~1 HEAD
git diff main..topic
git diff main...topic -- src
git diff --name-only
git diff --name-only HEAD~1
git diff --name-status
git diff -- src/app.py
git diff src/app.py
git diff --word-diff notes.txt
git diff -U10 src/app.py
git diff | head -100
git diff --no-color | grep '^+'
git diff --numstat
git diff --check
git diff --shortstat
git diff --no-ext-diff
git show
git show HEAD
git show --stat
git show HEAD --stat
git show HEAD~1 --name-only
git show HEAD:src/app.py
git show HEAD:src/app.py | head -20
git show HEAD:README.md > /dev/null
git show v1.0
git show --oneline -s
git show -s --format=%ci HEAD
git blame src/app.py
git blame -L 1,3 src/app.py
git blame -L1,3 -s src/app.py
git branch
git branch -a
git branch -v
git branch -vv
git branch --show-current
git branch --list 't*'
git branch --contains HEAD
git branch --merged
git tag
git tag -l
git tag --list 'v*'
git tag -n
git tag --sort=-creatordate
git remote
git remote -v
git stash list
git stash show
git stash show -p
git reflog
git reflog -5
git reflog show main
git rev-parse HEAD
git rev-parse --short HEAD
git rev-parse --abbrev-ref HEAD
git rev-parse --show-toplevel
git rev-parse --is-inside-work-tree
git rev-list --count HEAD
git rev-list --all | wc -l
git describe --tags
git describe --always --dirty
git shortlog -sn HEAD
git cat-file -p HEAD
git cat-file -t HEAD
git ls-tree HEAD
git ls-tree -r --name-only HEAD
git ls-tree -r HEAD src
git show-ref
git show-ref --heads
git merge-base main topic
git config --list
git config --get user.name
git config user.name
git config --get remote.origin.url
git worktree list
git check-ignore -v old.log
git var GIT_AUTHOR_IDENT
git --version
git -C src log --oneline -3
git -C src status
cd src && git log --oneline -3
cd src && git diff --stat .
git status && git diff
git status; git log --oneline -3
git status --short | awk '{print $2}'
git diff --name-only | xargs wc -l
git diff --name-only | grep '\.py$'
git log --oneline | head -3 && git status -s
git log -1 --format=%H
git log --format=%an | sort | uniq -c | sort -rn
git show-branch
git name-rev HEAD
git for-each-ref --sort=-committerdate refs/heads
git for-each-ref --format='%(refname:short) %(objectname:short)'
git count-objects -v
git diff-tree --no-commit-id --name-only -r HEAD
git whatchanged -1
git submodule status
git help -a
""".strip()
TEXT = r"""
sed -n '1,5p' src/app.py
sed -n 1,20p README.md
sed -n '3p' notes.txt
sed -n '/def main/,/return/p' src/app.py
sed -n '/alpha/p' notes.txt
sed -n '/\/api/p' notes.txt
sed -n '$p' notes.txt
sed -n '2,$p' data.csv
sed '1d' data.csv
sed '/^$/d' README.md
sed 's/alpha/omega/' notes.txt
sed 's/a/b/g' notes.txt
sed 's|/api|/v2|g' notes.txt
sed 's#/#-#g' notes.txt
sed -e 's/a/b/' -e 's/c/d/' notes.txt
sed -E 's/(a+)/<\1>/g' notes.txt
sed 's/^/  /' notes.txt
sed -n 's/.*"version": "\(.*\)".*/\1/p' package.json
sed 's/[[:space:]]*$//' notes.txt
sed -n '5,10p;11q' src/app.py
sed 10q README.md
sed -n 'l' notes.txt
sed -n '/^import/=' src/app.py
sed -n '1!G;h;$p' notes.txt
sed 'N;s/\n/ /' notes.txt
sed '/alpha/s/a/b/' notes.txt
sed 's/,/\t/g' data.csv | head
awk '{print $1}' old.log
awk '{print $NF}' old.log
awk -F, '{print $1}' data.csv
awk -F, 'NR>1{s+=$2} END{print s}' data.csv
awk -F/ '{print $2}' notes.txt
awk '/ERROR/' old.log
awk '/ERROR/{print $2}' old.log
awk '/\/api/' notes.txt
awk 'NR==2' notes.txt
awk 'NR>=2 && NR<=4' notes.txt
awk 'NR%2==0' notes.txt
awk 'length > 5' notes.txt
awk 'END{print NR}' notes.txt
awk '{print NR": "$0}' notes.txt
awk '!seen[$0]++' notes.txt
awk '{a[$1]++} END{for(k in a) print k, a[k]}' old.log
awk -v n=2 'NR==n' notes.txt
awk 'BEGIN{FS=","; OFS="\t"} {print $1,$2}' data.csv
awk '{ printf "%-10s %s\n", $1, $2 }' old.log
awk '/def /{f=1} f{print} /return/{f=0}' src/app.py
awk -F'"' '/version/{print $4}' package.json
awk 'BEGIN{print 1/3}'
awk '{gsub(/a/,"b"); print}' notes.txt
awk 'match($0, /[0-9]+/){print substr($0, RSTART, RLENGTH)}' data.csv
awk '$2 > 1' data.csv
jq . data.json
jq .name data.json
jq -r .version data.json
jq '.env' data.json
jq '.env.a' data.json
jq '.items[]' data.json
jq '.items | length' data.json
jq 'keys' package.json
jq -r '.scripts | keys[]' package.json
jq -r '.scripts | to_entries[] | "\(.key): \(.value)"' package.json
jq '.dependencies // {}' package.json
jq -c . data.json
jq '.items | map(. * 2)' data.json
jq -r '.items[] | select(. > 1)' data.json
jq '{name, version}' data.json
jq -e .missing data.json || echo none
jq --arg k name '.[$k]' data.json
jq -n '1 + 2'
jq -r '.items | @csv' data.json
jq 'del(.env)' data.json
jq -s '.[0]' data.json
jq '.. | numbers' data.json
tr -s ' ' < notes.txt
tr ',' '\n' < data.csv
printf '%s\n' hello
printf "%d items\n" 3
printf '%s\n' a b c | sort -r
printf 'a\nb\n' | wc -l
printf '%-20s|\n' x
echo hello
echo "hello world"
echo -n x
echo -e 'a\tb'
echo $?
echo "$PWD"
echo $HOME
echo "---"; cat notes.txt
echo "=== src ===" && ls src
echo 1 2 3 | tr ' ' '\n'
echo "a/b/c" | cut -d/ -f2
echo "$((1+2))"
echo '{"a":1}' | jq .a
echo "$(basename "$PWD")"
echo "lines: $(wc -l < notes.txt)"
echo "branch: $(git branch --show-current)"
echo {1..5}
echo src/*.py
seq 5
seq 1 2 10
seq -s, 5
seq -w 01 10
expr 1 + 2
expr length hello
date
date +%F
date -u +%Y-%m-%dT%H:%M:%SZ
date -d yesterday +%F
date -d '2 days ago'
date +%s
date -r README.md
uname -a
uname -sr
whoami
id
hostname
uptime
nproc
free -h
ps
ps aux
ps aux | head
ps -ef | grep node
sleep 0.1
sleep 0
true
false
:
test -f README.md
test -f README.md && echo yes
test -d src || echo no
[ -f package.json ] && echo node
[ -d node_modules ] && echo yes || echo no
[[ -f README.md ]] && echo yes
[[ "$PWD" == *work* ]] && echo yes
[ "$(wc -l < notes.txt)" -gt 2 ] && echo many
[ -z "$CI" ] && echo local
""".strip()
COMPOUND = r"""
cd src
cd src && ls
cd src && cat app.py
cd src && cd .. && ls
cd tests; ls; cd ..
(cd src && ls)
(cd src; wc -l *.py)
for f in src/*.py; do echo "$f"; done
for f in src/*.py; do echo "== $f"; cat "$f"; done
for f in src/*.py; do wc -l $f; done
for f in src/*.py tests/*.py; do head -3 "$f"; done
for f in README.md notes.txt; do echo "--- $f"; head -2 $f; done
for d in src tests docs; do echo "$d: $(ls $d | wc -l)"; done
for i in 1 2 3; do echo $i; done
for i in $(seq 3); do echo "line $i"; done
for i in {1..3}; do echo $i; done
for f in $(git ls-files '*.py'); do grep -c def $f; done
for f in *.md; do [ -f "$f" ] && wc -l "$f"; done
for x in a b; do for y in 1 2; do echo $x$y; done; done
for ((i=0;i<3;i++)); do echo $i; done
while read -r line; do echo "> $line"; done < notes.txt
while IFS= read -r line; do echo "$line"; done < notes.txt
while IFS=, read -r a b; do echo "$b $a"; done < data.csv
cat notes.txt | while read line; do echo "$line"; done
git ls-files | while read f; do echo "$f"; done | head -3
ls src | while read f; do echo "src/$f"; done
if [ -f README.md ]; then head -3 README.md; fi
if [ -d src ]; then ls src; else echo none; fi
if grep -q TODO README.md; then echo todo; else echo clean; fi
if git diff --quiet; then echo clean; else echo dirty; fi
case "$(uname)" in Linux) echo linux;; *) echo other;; esac
n=$(wc -l < notes.txt); echo "$n"
n=$(git ls-files | wc -l); echo "files: $n"
count=$(grep -c def src/util.py); echo $count
x=5; echo $((x * 2))
f=README.md; head -2 "$f"
name=$(jq -r .name package.json); echo "name is $name"
total=0; for i in 1 2 3; do total=$((total + i)); done; echo $total
{ ls; pwd; }
{ echo a; echo b; } | sort -r
ls | sort | head -3
ls -la | awk '{print $5, $9}' | sort -n
ls src | xargs -n1 echo
cat notes.txt | sort | uniq | wc -l
cat src/app.py | grep -v '^$' | wc -l
grep -rn TODO src | cut -d: -f1 | sort | uniq -c | sort -rn | head
grep -rho 'import [a-z]*' src | sort -u
grep -rl TODO src | xargs wc -l
git log --format=%s | grep -i first | head -1
git diff --stat | tail -1
echo a b c | xargs -n1
echo README.md | xargs cat
ls *.md | xargs head -n 2
set -e; ls; pwd
set -euo pipefail; cat notes.txt | head -1
ls nowhere 2>&1 | head -1
ls nowhere 2>/dev/null
ls nowhere > /dev/null 2>&1 || echo missing
ls >/dev/null && echo ok
cat notes.txt 2>&1
! grep -q nothing notes.txt && echo absent
true && echo yes || echo no
time ls
timeout 5 ls
nice ls
command ls
env | sort | head
env | grep -i path
printenv PATH
echo $PATH
echo "$SHELL"
test -n "$VIRTUAL_ENV" && echo venv
python3 --version
python3 -V
python --version
node --version
node -v
npm --version
npm -v
pip --version
make --version
gcc --version
cargo --version
go version
java -version
bash --version | head -1
docker --version
jq --version
tar --version | head -1
curl --version | head -1
python3 --version && node --version && npm --version
which python3 && python3 --version
tar tzf nothing.tgz
tar -tf nothing.tar | head
unzip -l nothing.zip
zipinfo nothing.zip
zcat nothing.gz | head
gzip -l nothing.gz
sleep 0.1 & wait
cat .npmrc 2>/dev/null
cat .gitmodules 2>/dev/null
cat .github/workflows/*.yml 2>/dev/null
less README.md
more README.md
man ls | head
help cd
""".strip()
WORK = r"""
touch new.txt
touch src/__init__.py tests/__init__.py
mkdir build
mkdir -p build/a/b
mkdir -p src/new && touch src/new/__init__.py
cp README.md copy.md
cp src/app.py src/app2.py
cp -r src src-copy
cp -a docs docs-copy
cp -v README.md docs/
cp src/*.py docs/
cp -t docs README.md notes.txt
echo hello > new.txt
echo hello >> new.txt
echo "x = 1" > src/new.py
echo '{"a": 1}' > new.json && jq . new.json
printf '%s\n' a b c > list.txt
printf 'x\n' >> list.txt
cat > new.py <<'EOF'
def f():
    return "$HOME" + '`x`'
EOF
cat > new.md <<EOF
# Title
text
EOF
cat >> notes.txt <<'EOF'
more
EOF
cat <<'EOF' > src/made.py
print("hello")
EOF
cat src/app.py > copy.py
cat src/*.py > all.txt
grep -rn TODO . > todo.txt
grep -rn TODO . > todo.txt; wc -l todo.txt
ls -la > listing.txt
git diff > changes.diff
git log --oneline > log.txt
git diff HEAD -- src > p1.patch
find . -name '*.py' > files.txt
sort notes.txt > sorted.txt
sort notes.txt | tee sorted.txt
sort notes.txt | tee sorted.txt | head -1
echo hi | tee new.txt
echo hi | tee -a new.txt
echo hi | tee new.txt > /dev/null
tee new.txt <<< hello
tee new.txt <<'EOF'
one
two
EOF
jq '.version = "2.0.0"' package.json > package.new.json
jq '.scripts.lint = "eslint ."' package.json > package.new.json && cat package.new.json
sed 's/alpha/omega/' notes.txt > notes.new
awk -F, '{print $1}' data.csv > names.txt
head -5 README.md > head.md
: > empty.txt
> empty.txt
git add notes.txt
git add src/app.py notes.txt
git add src
git add .
git add -A
git add -u
git add -A && git status -s
git add -N README.md
git add -v src
mkdir -p out && cp data.json out/ && ls out
mkdir -p out && echo x > out/x.txt && cat out/x.txt
for i in 1 2 3; do echo $i > file$i.txt; done
for i in 1 2 3; do echo $i >> all.txt; done
for f in src/*.py; do cp "$f" "$f.bak"; done
for f in src/*.py; do cp $f docs/; done
cd src && touch new.py
cd src && echo x > new.py && cat new.py
(cd docs && touch new.md)
n=$(wc -l < notes.txt); echo "$n" > count.txt
date > stamp.txt
date +%F > stamp.txt
echo "$(git rev-parse HEAD)" > version.txt
seq 10 > numbers.txt
wc -l src/*.py > counts.txt 2>&1
ls nowhere 2> errors.txt
ls nowhere &> out.txt
echo x > /tmp/x && cat /tmp/x
grep -rn TODO . > /tmp/todo.txt; head /tmp/todo.txt
mkdir -p /tmp/work && cp README.md /tmp/work/
cat > /tmp/script.txt <<'EOF'
text
EOF
diff notes.txt README.md > changes.txt
cp package.json package.json.bak && jq . package.json.bak
""".strip()


def entries(text: str) -> list[str]:
    """The lines of a text, each with the here-document that belongs to it."""
    found: list[str] = []
    inside = False
    for line in text.split("\n"):
        if inside:
            found[-1] += f"\n{line}"
            inside = line != "EOF"
        else:
            found.append(line)
            inside = "<<" in line and "EOF" in line
    return found


def looking() -> list[str]:
    """What `read-only` should allow."""
    return [line for text in (FILES, SEARCHES, GIT, TEXT, COMPOUND) for line in entries(text)]


def working() -> list[str]:
    """What `workspace` should allow besides."""
    return entries(WORK)
