"""CPU time of `pip install` from source, compiling included: an older checkout against this one."""

import resource
import subprocess
import sys
import tempfile
from pathlib import Path

MOST = 0.6  # of the older one's


def cpu_seconds(source):
    """Of pip and all its children, builds in isolation as everybody's."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-cache-dir"]
        build = ["-C", f"build-dir={folder}/build", "--target", f"{folder}/site"]
        subprocess.run([*command, *build, str(source)], check=True, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def section(old):
    """Lines of the report."""
    before, now = cpu_seconds(Path(old)), cpu_seconds(Path(__file__).parents[1])
    verdict = "met" if now <= MOST * before else "**missed**"
    return "\n".join(
        [
            "## Installation from source",
            "",
            "CPU time of `pip install .`, compiling and downloads included, one after the other. The older "
            "version compiles three instruction sets, this one that of this CPU and v2.",
            "",
            "| older | this | this / older | target |  |",
            "| --: | --: | --: | --: | :-- |",
            f"| {before:.0f} s | {now:.0f} s | {now / before:.2f} | <= {MOST:g} | {verdict} |",
            "",
        ]
    )
