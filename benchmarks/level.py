"""A contender at a forced instruction set, in a process of its own; `Level` starts this file."""

import argparse
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
    from workloads import WORKLOADS, warm_up

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("workload", choices=list(WORKLOADS))
    parser.add_argument("contender")
    parser.add_argument("--quick", action="store_true")
    arguments = parser.parse_args()
    workload = WORKLOADS[arguments.workload]
    contenders = workload.contenders(arguments.quick, only=arguments.contender)
    (contender,) = [each for each in contenders if each.name == arguments.contender]
    warm_up(torch=False)
    print(flush=True)
    for _ in sys.stdin:
        print(contender.call(), flush=True)


if __name__ == "__main__":
    main()
