"""``python -m ckce``: the command line; without a command, the demonstration."""

import sys

from ckce._cli.main import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or ["demo", "--text"]))
