"""The tests that a run of pytest skipped because a library was missing, by its JUnit file.

python .ci/skipped.py select first.xml    their node ids, one per line, for pytest @file
python .ci/skipped.py judge second.xml    what is still skipped; fails unless all of it may be
"""

import re
import sys
from pathlib import Path
from xml.etree import ElementTree

# Where tests of foreign libraries are known to be: at least these must have been skipped before.
FILES = ("torchmetrics", "dask", "notebook", "scan", "report", "ece", "cli", "validate")
# What may be missing: peers, browsers, and networks for pictures, which bring gigabytes.
OPTIONAL = re.compile(r"netcal|playwright|chromium|timm|open_clip|torchvision|PIL")


def skipped(path):
    """Node id and reason of each skipped test."""
    for case in ElementTree.parse(path).iter("testcase"):
        if (mark := case.find("skipped")) is None or mark.get("type") == "pytest.xfail":
            continue
        module, name = case.get("classname", ""), case.get("name", "")
        reason = f"{mark.get('message')} {mark.text}"
        if module:
            yield f"./{module.replace('.', '/')}.py::{name}", reason
        else:  # a whole file
            yield f"./{name.replace('.', '/')}.py", reason


def select(path):
    """Tests that another library would have run."""
    lacking = [node for node, reason in skipped(path) if "could not import" in reason]
    for file in FILES:
        if not any(f"test_{file}.py" in node for node in lacking):
            sys.exit(
                f"no test of test_{file}.py was skipped for the lack of a library: is one left?"
            )
    print("\n".join(dict.fromkeys(lacking)))


def judge(path):
    """Print what was skipped all the same."""
    total = len(list(ElementTree.parse(path).iter("testcase")))
    left = [(node, reason.split("\n")[0]) for node, reason in skipped(path)]
    for node, reason in left:
        print(f"skipped: {node} ({reason.strip()[:120]})")
    print(f"{total} tests of foreign libraries, {len(left)} of them skipped")
    if wrong := [node for node, reason in left if not OPTIONAL.search(reason)]:
        sys.exit(f"{len(wrong)} tests must not be skipped here, such as {wrong[0]}")
    if total == 0:
        sys.exit("no test ran")


if __name__ == "__main__":
    {"select": select, "judge": judge}[sys.argv[1]](Path(sys.argv[2]))
