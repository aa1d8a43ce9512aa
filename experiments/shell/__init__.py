"""What every command shares: its words, its one line when something goes wrong, its files.

What it promises is all that a command promises: a mistake in the input is one line on standard
error and exit code 2, before anything is trained; Ctrl-C is one line and 130; a full or read-only
disk is one line; and what is printed survives `| head`, an ASCII terminal and redirection.

May import `pgeom.messages`, and is imported by commands, by what they use, and by
`proofs_numeric`. Read `command_line` and `errors` first; `processes`, `files`, `loading` and
`names` each do one thing.
"""
