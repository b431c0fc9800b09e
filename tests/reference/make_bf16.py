"""Trains the reference models with PyTorch's autocast to bfloat16 and writes what the losses were.

    make_bf16.py OUT        writes OUT/bf16.json; reads *.onnx, *.npz beside this file

Needs what make_reference.py needs. bf16.json beside this file is its output.
"""

import json
import pathlib
import sys

import torch
from make_reference import NETWORKS, OPTIMIZERS, RATES, train


def main():
    out = pathlib.Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    losses = {}
    for name in NETWORKS:
        for optimizer, rate in zip(OPTIMIZERS, RATES[name]):
            # The cache would keep the casts of weights over all steps: it lives as long as the context.
            with torch.autocast("cpu", dtype=torch.bfloat16, cache_enabled=False):
                losses[f"{name}-{optimizer}"], _ = train(name, optimizer, rate)
    numbers = {"torch": torch.__version__.split("+")[0], "losses": losses}
    (out / "bf16.json").write_text(json.dumps(numbers, indent=1) + "\n")


if __name__ == "__main__":
    main()
