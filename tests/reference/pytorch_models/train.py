"""Trains the models with PyTorch and writes their losses.

    PYTHON train.py OUT        writes OUT/training.json; tests/data/pytorch/training.json is its output

20 steps of SGD with momentum on the inputs and labels of NAME.npz. `resnet-train` is in training mode: its
BatchNormalizations use the statistics of the batch. Everything else is in eval mode, as the exporters had it.
"""

import json
import pathlib
import sys

import models
import torch
from torch.nn import functional

STEPS, MOMENTUM = 20, 0.9
RATES = {"vit": 0.02, "resnet": 0.01, "resnet-train": 0.01, "lstm": 0.3, "nested": 0.3}


def train(case, rate):
    name = case.split("-")[0]
    model, arguments = models.build(name), models.inputs(name)
    labels = models.labels(name, models.logits(model, arguments))
    model.train(case.endswith("-train"))
    optimizer = torch.optim.SGD(model.parameters(), lr=rate, momentum=MOMENTUM)
    losses = []
    for _ in range(STEPS):
        result = model(**arguments)
        logits = getattr(result, "logits", result)
        loss = functional.cross_entropy(logits.reshape(-1, logits.shape[-1]), labels.reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def main():
    cases = {case: {"rate": rate, "losses": train(case, rate)} for case, rate in RATES.items()}
    text = json.dumps({"torch": torch.__version__.split("+")[0], "momentum": MOMENTUM, "cases": cases}, indent=1)
    (pathlib.Path(sys.argv[1]) / "training.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
