# SPDX-License-Identifier: GPL-2.0-only
"""Whether a restored guest measures what a booted one does; prints one table.

    python tests/bench/restored_or_booted.py [SPEC] [--rounds N] [--models MODEL,MODEL]

Every round runs the deletion test in a restored guest and in a booted one.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

TEST = Path(__file__).resolve().parents[2] / "selftests" / "test_netdev_deletion.py"
HOW = ("restore", "boot")


def measured(folder: Path, arguments: argparse.Namespace, how: str) -> list[dict]:
    """Run the test and return what it measured, a record a model."""
    results = folder / "results.json"
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    argv += [f"--kernel=k={arguments.spec}", f"--napi-preempt={arguments.models}"]
    argv += [f"--napi-fresh={how}", f"--napi-results={results}", str(TEST)]
    subprocess.run(argv, stdout=subprocess.DEVNULL, check=False)
    return json.loads(results.read_text())["tests"]


def main() -> None:
    """Run the rounds and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("spec", nargs="?", default="debian:6.12", metavar="SPEC")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--models", default="none,full")
    arguments = parser.parse_args()
    idle, rates, loaded, verdicts = (defaultdict(list) for _ in range(4))
    with tempfile.TemporaryDirectory() as name:
        for number in range(arguments.rounds):
            # Turned about: the host's speed changes with time.
            for how in HOW if number % 2 else reversed(HOW):
                for test in measured(Path(name), arguments, how):
                    (result,) = test["results"]
                    # The first of all is the one that is saved.
                    got = "restored" if test["guest"]["restored"] else "booted"
                    key = test["guest"]["preemption"], got
                    for samples, window in ((idle, "idle"), (loaded, "loaded")):
                        found = result["measurement"][window]["samples"]
                        samples[key] += [sample["duration_ns"] / 1e9 for sample in found]
                    rates[key].append(result["load"]["reentries_per_second"])
                    verdicts[key].append(test["outcome"])
    print(f"{arguments.spec}, {arguments.rounds} rounds; medians in seconds")
    print("model      guest       n   idle  loaded  load 1/s  verdicts")
    for model, got in sorted(idle):
        key = model, got
        medians = [statistics.median(samples[key]) for samples in (idle, loaded)]
        print(
            f"{model:<10} {got:<8} {len(idle[key]):>4}  {medians[0]:5.4f} {medians[1]:6.3f} "
            f"{statistics.median(rates[key]):>9.0f}  {' '.join(verdicts[key])}"
        )
    for model in sorted({model for model, _ in idle}):
        for what, figures in (("idle median", idle), ("load rate", rates)):
            one, other = (statistics.median(figures[model, got]) for got in ("restored", "booted"))
            print(f"{model}: {what}, restored over booted: {one / other:.3f}")


if __name__ == "__main__":
    main()
