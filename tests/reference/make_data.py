"""Writes NAME.npz beside this file for every reference model: 16 samples each, seeded. Standard library only."""

import pathlib
import random
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "support"))
from pipec_testing import elements, write_npz

SAMPLES, SEQUENCE, VOCABULARY = 16, 16, 64
NO_LABEL = -100  # what the loss leaves out


def normal(values, *shape):
    return ("float32", (SAMPLES, *shape), [values.gauss(0, 1) for _ in range(SAMPLES * elements(shape))])


def classes(values, count, *shape):
    return ("int64", (SAMPLES, *shape), [values.randrange(count) for _ in range(SAMPLES * elements(shape))])


def next_tokens(values):
    """Tokens that follow a rule (each the double of the one before, plus one), so that there is something to learn."""
    tokens = [[values.randrange(VOCABULARY)] for _ in range(SAMPLES)]
    for row in tokens:
        for _ in range(SEQUENCE):
            row.append((2 * row[-1] + 1) % VOCABULARY)
    return {"input_ids": ("int64", (SAMPLES, SEQUENCE), [t for row in tokens for t in row[:-1]]),
            "labels": ("int64", (SAMPLES, SEQUENCE), [t for row in tokens for t in row[1:]])}


def masked_tokens(values):
    """The same tokens; every third, drawn by chance, is hidden behind token 0 and to be found. The second half of a row is a
    segment of its own."""
    tokens = next_tokens(values)["labels"]
    hidden = [values.random() < 1 / 3 for _ in tokens[2]]
    return {"input_ids": (*tokens[:2], [0 if h else t for h, t in zip(hidden, tokens[2])]),
            "token_type_ids": (*tokens[:2], [int(k % SEQUENCE >= SEQUENCE // 2) for k in range(len(hidden))]),
            "labels": (*tokens[:2], [t if h else NO_LABEL for h, t in zip(hidden, tokens[2])])}


def bright(values):
    """Images whose pixels are of three classes by brightness: below, near and above the mean of the four pixels around."""
    x = normal(values, 1, 16, 16)
    labels = []
    for k, pixel in enumerate(x[2]):
        y, z, image = k // 16 % 16, k % 16, k // 256 * 256
        around = [x[2][image + (y + i) % 16 * 16 + (z + j) % 16] for i, j in ((0, 1), (1, 0), (0, -1), (-1, 0))]
        difference = pixel - sum(around) / 4
        labels.append(0 if difference < -0.5 else 1 if difference < 0.5 else 2)
    return {"x": x, "labels": ("int64", (SAMPLES, 16, 16), labels)}


MODELS = {
    "mlp": lambda values: {"x": normal(values, 16), "labels": classes(values, 10)},
    "cnn": lambda values: {"x": normal(values, 1, 8, 8), "labels": classes(values, 10)},
    "resnet": lambda values: {"x": normal(values, 1, 48, 48), "labels": classes(values, 10)},
    "unet": bright,
    "lstm": next_tokens,
    "gpt": next_tokens,
    "bert": masked_tokens,
    "llama": next_tokens,
}


def main():
    for name, make in MODELS.items():
        write_npz(HERE / f"{name}.npz", make(random.Random(name)))


if __name__ == "__main__":
    main()
