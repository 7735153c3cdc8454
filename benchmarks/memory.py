"""Extra memory of one contender of one workload, as JSON; `measure.memory` starts this file."""

import argparse
import json

from measure import PeakMemory
from workloads import WORKLOADS, warm_up


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("workload", choices=list(WORKLOADS))
    parser.add_argument("contender")
    parser.add_argument("--quick", action="store_true")
    arguments = parser.parse_args()
    workload = WORKLOADS[arguments.workload]
    contenders = workload.contenders(arguments.quick, only=arguments.contender)
    (contender,) = [each for each in contenders if each.name == arguments.contender]
    warm_up(torch=False)
    with PeakMemory() as memory:
        contender.call()
    print(json.dumps({"rss": memory.rss, "anonymous": memory.anonymous}))


if __name__ == "__main__":
    main()
