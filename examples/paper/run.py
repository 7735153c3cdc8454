"""Regenerate every figure and table.

python examples/paper/run.py                          the synthetic experiments, a few minutes
python examples/paper/run.py --data DIR               and those on predictions (see table1.py, imagenet.py)
python examples/paper/run.py --quick                  seconds, into a temporary folder
"""

import time

import approximation
import brightness
import covariate_shift
import kernel_robustness
import limits
import readings
import reliability
import table1
from _common import data_parser, parse, prediction_files

SYNTHETIC = (covariate_shift, kernel_robustness, readings, limits)
WITH_DATA = (table1, reliability, brightness, approximation)


def main(argv=None):
    """Run the scripts one after another with the same options."""
    options = parse(data_parser(__doc__), argv)
    shared = ["--seed", str(options.seed), "--out", str(options.out)]
    shared += ["--quick"] if options.quick else []
    data = [] if options.data is None else ["--data", str(options.data)]
    data += [] if options.sets is None else ["--sets", *options.sets]
    series = options.data and prediction_files(options.data, options.sets, series=True)
    for script in (*SYNTHETIC, *WITH_DATA):
        start = time.perf_counter()
        if script is brightness and not series:
            print(
                "brightness: left out, it needs --data with files <data set>_<model>_brightness.npz"
            )
            continue
        script.main(shared + (data if script in WITH_DATA else []))
        print(f"{script.__name__}: {time.perf_counter() - start:.0f} s", flush=True)
    print(f"results are in {options.out}")


if __name__ == "__main__":
    main()
