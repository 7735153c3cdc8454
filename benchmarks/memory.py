"""Extra memory of one contender of one workload, as JSON; `measure.memory` starts this file."""

import json

from measure import PeakMemory
from workloads import named_contender, warm_up


def main():
    contender = named_contender(__doc__)
    warm_up(torch=False)
    with PeakMemory() as memory:
        contender.call()
    print(json.dumps({"rss": memory.rss, "anonymous": memory.anonymous}))


if __name__ == "__main__":
    main()
