"""What we know of programs: which of their options and words run others, write files or lead elsewhere.

A rule such as `sort **` is meant for what `sort` is known for. A *guard* finds what in a command goes beyond that
and yields a *concern* for each: `sort --compress-program=x` runs another program, `sort -o x` writes a file. With a
concern the rule does not hold, unless the concern is about a file that another rule allows to write.

To describe a program, add a row to the table of guards at the end of its family's module (`files`, `network`, …):

    "sort gsort": Options(flags="-bn …", values="-k key", writes="-o output", harms={"compress-program": RUNS})

- A table of `Options` (`options.py`) is enough for most: which options take a value, which write the file that is
  their value, which do harm and how. With `complete=True`, an option that is not in the table is a concern, too.
- `guard_by_pattern` is for programs whose options have a form of their own, such as compilers.
- A function is for what tables cannot say: `uniq` writes its second operand, the script of `sed` has to be read.

`categories.py` lists programs that no rule with `**` covers since they run what they are given, `carriers.py` takes
out the commands inside them, `subcommands.py` knows programs with many commands, and `guards.py` asks all of these.
"""
