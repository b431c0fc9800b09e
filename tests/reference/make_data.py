"""Writes mlp.npz and gpt.npz beside this file: 16 samples each, seeded. Standard library only."""

import pathlib
import random
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "support"))
from pipec_testing import write_npz

SAMPLES, SEQUENCE, VOCABULARY = 16, 16, 64


def main():
    values = random.Random(5)
    write_npz(HERE / "mlp.npz", {
        "x": ("float32", (SAMPLES, 16), [values.gauss(0, 1) for _ in range(SAMPLES * 16)]),
        "labels": ("int64", (SAMPLES,), [values.randrange(10) for _ in range(SAMPLES)])})
    # Tokens that follow a rule (each the double of the one before, plus one), so that there is something to learn.
    tokens = [[values.randrange(VOCABULARY)] for _ in range(SAMPLES)]
    for row in tokens:
        for _ in range(SEQUENCE):
            row.append((2 * row[-1] + 1) % VOCABULARY)
    write_npz(HERE / "gpt.npz", {
        "input_ids": ("int64", (SAMPLES, SEQUENCE), [t for row in tokens for t in row[:-1]]),
        "labels": ("int64", (SAMPLES, SEQUENCE), [t for row in tokens for t in row[1:]])})


if __name__ == "__main__":
    main()
