"""A contender at a forced instruction set, in a process of its own; `Level` starts this file."""

import os
import subprocess
import sys


class Level:
    """Calls `contender` of a workload in a process with CKCE_LEVEL=`level`."""

    def __init__(self, level, workload, contender, quick):
        command = [sys.executable, __file__, workload, contender, *["--quick"] * quick]
        self._process = subprocess.Popen(
            command,
            env={**os.environ, "CKCE_LEVEL": level},
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self._process.stdout.readline()  # it is ready

    def __call__(self):
        print(file=self._process.stdin, flush=True)
        return float(self._process.stdout.readline())

    def close(self):
        self._process.stdin.close()
        self._process.wait()


def main():
    from workloads import named_contender, warm_up

    contender = named_contender(__doc__)
    warm_up(torch=False)
    print(flush=True)
    for _ in sys.stdin:
        print(contender.call(), flush=True)


if __name__ == "__main__":
    main()
