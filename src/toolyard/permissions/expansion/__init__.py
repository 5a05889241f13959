"""What the words of a line become in their folder and in their shell: files, values of variables, output of commands.

1. `globs` finds the files that a pattern matches, as bash would.
2. `folders` follows `cd`: in which folders each command of a line may run.
3. `outputs` says what commands can print, so that `$(…)`, `read` and `xargs` are followed.
4. `variables` says what the variables of a line can hold.
5. `line` puts these together: a reading whose words are what bash will make of them.
6. `shell_state` remembers what earlier lines left in a live shell; `variable_names` knows who obeys which variable.
"""
