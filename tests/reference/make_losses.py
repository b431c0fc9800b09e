"""PyTorch's numbers for the losses that losses_test.py trains with: float64, whole batch, plain SGD.

    make_losses.py OUT     writes OUT/losses.json: initial values, data, and for each case the losses and the last parameters

Needs torch. The json beside this file is its output.
"""

import json
import pathlib
import sys

import torch
from torch.nn import functional

BATCH, STEPS, INPUTS, HIDDEN, CLASSES, RATE = 16, 5, 6, 8, 5, 0.2
IGNORED = 2
WEIGHTS = [0.25, 1.0, 2.0, 0.5, 1.5]


def rounded(tensor):
    """What a text model and float32 hold exactly."""
    return (tensor * 1024).round() / 1024


def make_data():
    torch.manual_seed(7)
    shapes = {"w1": (INPUTS, HIDDEN), "w2": (HIDDEN, HIDDEN), "early": (HIDDEN, CLASSES), "late": (HIDDEN, CLASSES)}
    values = {name: rounded(torch.randn(shape, dtype=torch.float64) / shape[0] ** 0.5) for name, shape in shapes.items()}
    data = {"x": rounded(torch.randn(BATCH, INPUTS, dtype=torch.float64)), "first": torch.randint(CLASSES, (BATCH,)),
            "second": torch.randint(CLASSES, (BATCH,)), "target": rounded(torch.randn(BATCH, CLASSES, dtype=torch.float64))}
    return values, data


def outputs(p, x):
    h = torch.tanh(x @ p["w1"])
    return h @ p["early"], torch.tanh(h @ p["w2"]) @ p["late"]


def ce(logits, labels, **options):
    return functional.cross_entropy(logits, labels, **options)


W = torch.tensor(WEIGHTS, dtype=torch.float64)
# name -> the loss of (early, late, data)
CASES = {
    "plain": lambda e, l, d: ce(l, d["first"]),
    "weights": lambda e, l, d: ce(l, d["first"], weight=W),
    "ignored": lambda e, l, d: ce(l, d["first"], ignore_index=IGNORED),
    "smoothed": lambda e, l, d: ce(l, d["first"], label_smoothing=0.2),
    "all_three": lambda e, l, d: ce(l, d["first"], weight=W, ignore_index=IGNORED, label_smoothing=0.2),
    "weights_ignored": lambda e, l, d: ce(l, d["first"], weight=W, ignore_index=IGNORED),
    "sum": lambda e, l, d: ce(l, d["first"], weight=W, ignore_index=IGNORED, reduction="sum") / 64,
    "none": lambda e, l, d: ce(l, d["first"], weight=W, ignore_index=IGNORED, reduction="none").mean(),
    "two_heads": lambda e, l, d: 0.5 * ce(e, d["first"]) + 2 * functional.mse_loss(l, d["target"]),
    "two_heads_same_labels": lambda e, l, d: 0.25 * ce(e, d["first"], weight=W, ignore_index=IGNORED)
    + ce(l, d["first"], weight=W, ignore_index=IGNORED),
    "two_heads_two_labels": lambda e, l, d: ce(e, d["first"]) - 0.125 * ce(l, d["second"]),
    "two_heads_two_weights": lambda e, l, d: ce(e, d["first"], ignore_index=IGNORED) + ce(l, d["second"], weight=W),
}


def train(loss_of, values, data):
    p = {name: value.clone().requires_grad_() for name, value in values.items()}
    losses = []
    for _ in range(STEPS):
        loss = loss_of(*outputs(p, data["x"]), data)
        losses.append(loss.item())
        gradients = torch.autograd.grad(loss, list(p.values()), allow_unused=True)
        with torch.no_grad():
            for parameter, gradient in zip(p.values(), gradients):
                if gradient is not None:
                    parameter -= RATE * gradient
    return {"losses": losses, "parameters": {name: [float(f"{v:.9g}") for v in value.flatten().tolist()] for name, value in p.items()}}


def main():
    values, data = make_data()
    lists = lambda tensors: {name: [list(t.shape), t.flatten().tolist()] for name, t in tensors.items()}
    numbers = {"torch": torch.__version__.split("+")[0], "rate": RATE, "ignored": IGNORED, "weights": WEIGHTS,
               "values": lists(values), "data": lists(data), "cases": {name: train(f, values, data) for name, f in CASES.items()}}
    out = pathlib.Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    (out / "losses.json").write_text(json.dumps(numbers) + "\n")


if __name__ == "__main__":
    main()
