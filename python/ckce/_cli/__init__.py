"""The command line: words become calls of the public functions, results become text or JSON.

Start with main.py, which loads the rest, and run.py; parser.py knows the words, commands.py what they
do, reading.py where the numbers are, methods.py what --method means, messages.py how errors are worded,
terminal.py how it looks.
"""
