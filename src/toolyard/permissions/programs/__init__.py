"""What we know of programs: which of their words are paths, and which run others, write files or lead elsewhere.

A rule such as `sort **` is meant for what `sort` is known for. A *guard* finds what in a command goes beyond that
and yields a *concern* for each: `sort --compress-program=x` runs another program, `sort -o x` writes a file. With a
concern the rule does not hold, unless the concern is about a file that another rule allows to write.

To describe a program, add a row to the table of guards at the end of its family's module (`files/`, `network`, …):

    "sort gsort": Options(flags="-bn …", values="-k key", reads="-T", writes="-o output", runs="compress-program"),

- A table of `Options` (`options.py`) is enough for most: which options take a value and what that is, which do harm
  and how, and what the operands are: `text read*` is a pattern and then files. It is a guard itself, and the one place
  where words are read as options; `operands.py` says by it which words of a command are paths. An option that is not
  in the table makes that uncertain; with `complete=True` it is a concern, too.
- `more=` is a function for what tables cannot say: the script of `sed` has to be read, `date` sets the clock.
- `guard_by_pattern` is for programs whose options have a form of their own, such as compilers.

`categories.py` lists programs that no rule with `**` covers since they run what they are given, `carriers.py` takes
out the commands inside them, `subcommands.py` knows programs with many commands, and `guards.py` asks all of these.
"""
