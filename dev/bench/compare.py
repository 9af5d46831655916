#!/usr/bin/env python3
"""Runs the benchmarks of two revisions in turn and prints their figures side by side.

    dev/bench/compare.py OLD_BENCH NEW_BENCH [--rounds N] [--only serving,market,retrieval]

OLD_BENCH and NEW_BENCH are the programs `tribune-bench`, each beside the `tribune` of its revision, built with
`cargo build --release --workspace`. Rounds alternate, so that both revisions meet the same machine. The table has the
median of each figure and how the new one compares. A figure that is worse by more than the limit is marked.
"""

import argparse
import re
import statistics
import subprocess
import sys

BENCHMARKS = {
    "serving": ["--only", "tribune", "--seconds", "4", "--rounds", "1", "--warm-up", "1"],
    "market": ["market", "--messages", "20000", "--rounds", "3", "--seconds", "4"],
    "retrieval": ["retrieval", "--passages", "10000", "--set-limit", "8", "--only", "tribune"],
}
# Columns and rows that measure neither revision.
IGNORED = re.compile(r"goal|range|others|client|times|bytes|threads|failures|max|at the end|applied|resyncs|until all", re.IGNORECASE)
# Columns in which more is better.
RATES = re.compile(r"/s\b|a second|per cpu", re.IGNORECASE)
# Rows of other programs, which are the same in both revisions.
PEERS = re.compile(r"axum|rmcp|tantivy|sqlite", re.IGNORECASE)
NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?")
LIMIT = 1.05


def cells(line):
    return [cell.strip().strip("*`") for cell in line.strip().strip("|").split("|")]


def figures(markdown):
    """Yields (name, value, more_is_better) for every number in the tables of a report."""
    header, numeric, above = None, [], ""
    for line in markdown.splitlines():
        row = cells(line) if line.startswith("|") else None
        if row is None:
            header = None
        elif header is None:
            header = row
        elif set("".join(row)) <= set("-: "):
            numeric = [align.endswith(":") or name == "Measured" for name, align in zip(header, row)]
        else:
            columns = list(zip(header, row, numeric))
            label = ", ".join(cell for name, cell, is_number in columns if not is_number and not IGNORED.search(name))
            # A row that begins with a dash is a detail of the one above.
            above = above if label.startswith("- ") else label
            label = label if label == above else f"{above} {label}"
            if IGNORED.search(label) or PEERS.search(label):
                continue
            for name, cell, is_number in columns:
                number = NUMBER.match(cell)
                if is_number and number and not IGNORED.search(name):
                    is_rate = bool(RATES.search(name) or "per CPU second" in label)
                    yield f"{header[0]}: {label}: {name}", float(number[0].replace(",", "")), is_rate


def measure(program, arguments):
    done = subprocess.run([program, *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{program} {' '.join(arguments)} failed:\n{done.stdout}\n{done.stderr}")
    return figures(done.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default=",".join(BENCHMARKS))
    options = parser.parse_args()
    worse = 0
    for benchmark in options.only.split(","):
        samples, rates = {}, {}
        for number in range(options.rounds):
            # The second of two runs meets a warmer machine: take turns at that too.
            order = [("old", options.old), ("new", options.new)]
            for revision, program in order if number % 2 == 0 else reversed(order):
                print(f"{benchmark}, round {number + 1} of {options.rounds}, {revision}", file=sys.stderr, flush=True)
                for name, value, is_rate in measure(program, BENCHMARKS[benchmark]):
                    samples.setdefault(name, {"old": [], "new": []})[revision].append(value)
                    rates[name] = is_rate
        print(f"\n| {benchmark} | old | new | new/old | |\n|---|---:|---:|---:|---|")
        for name, sample in samples.items():
            if not sample["old"] or not sample["new"]:
                continue
            old, new = statistics.median(sample["old"]), statistics.median(sample["new"])
            if old == 0:
                continue
            ratio = new / old
            cost = 1 / ratio if rates[name] and ratio else ratio
            mark = "slower" if cost > LIMIT else ""
            worse += bool(mark)
            print(f"| {name} | {old:g} | {new:g} | {ratio:.2f} | {mark} |")
    print(f"\n{worse} figures are worse by more than {LIMIT - 1:.0%}.")


if __name__ == "__main__":
    main()
