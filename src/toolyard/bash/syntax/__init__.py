"""A command line becomes a `Reading`: its commands, words and redirections, and every doubt about them.

1. `parse.read_line` is the entrance. It reads a line of plain words itself, and gives any other to the next step.
2. `tree.TreeReader` parses the line with tree-sitter and walks over the nodes: lists, loops, conditions.
3. `command_nodes.CommandReader` reads the nodes of simple commands, assignments, redirections and here-documents.
4. `word_nodes.WordReader` reads the nodes of words; `words.WordBuilder` works out what bash will make of each.
5. `braces` and `expansion` say what words become, given the values of variables; `permissions/expansion` knows those.
6. `wrappers` takes off what is in front of a command and does not change it, such as `timeout 5`.
7. `cross_check` asks shfmt, another parser, whether it sees the same. Only then may a rule allow the line.

The values of the result are in `reading` and `words`. `read_line` runs nothing and never raises: what is not understood
for certain becomes a `Doubt`.
"""
