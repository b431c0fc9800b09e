"""Trains the reference models with PyTorch, from the same initial values and data, and writes what came out.

    make_reference.py OUT        writes OUT/numbers.json and OUT/CASE.safetensors; reads *.onnx, *.npz beside this file

Needs torch, transformers, numpy and onnx. numbers.json and the *.safetensors beside this file are its output.
"""

import json
import pathlib
import struct
import sys

import numpy
import torch
from networks import NETWORKS, load_initial_values
from torch import nn
from torch.nn import functional

HERE = pathlib.Path(__file__).resolve().parent
STEPS = 20

# AdamW's eps: the gradient of the attention's key bias is zero but for rounding (softmax does not see it), and the default
# of 1e-8 would blow that rounding up to whole steps.
EPS = 1e-6
OPTIMIZERS = {
    "momentum": lambda parameters, lr: torch.optim.SGD(parameters, lr=lr, momentum=0.9),
    "adamw": lambda parameters, lr: torch.optim.AdamW(parameters, lr=lr, eps=EPS),
}
# Momentum's and AdamW's. At those of the nets with Relu rounding turns no activation off or on, which would change the
# gradients by more than rounding; bfloat16 stays near float32 as well.
RATES = {"mlp": (0.2, 0.004), "cnn": (0.1, 0.004), "resnet": (0.0012, 0.0007), "unet": (0.06, 0.005), "lstm": (0.5, 0.01),
         "gpt": (0.02, 0.01), "bert": (0.05, 0.003), "llama": (0.03, 0.003)}
# Statistics of a batch are those of its microbatches.
MICROBATCHES = {"resnet": 2, "unet": 2}


def write_safetensors(path, tensors):
    header, offset = {}, 0
    for name, tensor in tensors.items():
        size = tensor.numel() * 4
        header[name] = {"dtype": "F32", "shape": list(tensor.shape), "data_offsets": [offset, offset + size]}
        offset += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for tensor in tensors.values():
            file.write(tensor.detach().contiguous().numpy().astype("<f4").tobytes())


class PopulationVariances:
    """ONNX's running variance averages the population's variance of each microbatch, PyTorch's the unbiased estimate."""

    def __init__(self, model):
        self.counts = {}
        for name, module in model.named_modules():
            if isinstance(module, nn.BatchNorm2d):
                module.register_forward_hook(lambda m, inputs, output, name=name: self.count(name, inputs[0]))

    def count(self, name, x):
        self.counts[name] = x.numel() // x.shape[1]

    def correct(self, state, updates):
        for name, count in self.counts.items():
            start = 0.9**updates  # what is left of the initial value, 1
            state[f"{name}.running_var"] = start + (state[f"{name}.running_var"] - start) * (count - 1) / count


def train(name, optimizer, rate):
    model = NETWORKS[name]()
    names = load_initial_values(model, HERE / f"{name}.onnx")
    model.train()
    variances = PopulationVariances(model)
    with numpy.load(HERE / f"{name}.npz") as data:
        inputs = {key: torch.from_numpy(data[key]) for key in data.files}
    microbatches = MICROBATCHES.get(name, 1)
    size = len(inputs["labels"]) // microbatches
    step = OPTIMIZERS[optimizer](model.parameters(), rate)
    losses = []
    for _ in range(STEPS):
        step.zero_grad()
        total = 0
        for k in range(microbatches):
            part = {key: value[k * size : (k + 1) * size] for key, value in inputs.items()}
            labels = part.pop("labels")
            logits = model(**part)
            loss = functional.cross_entropy(logits.reshape(-1, logits.shape[-1]), labels.reshape(-1)) / microbatches
            loss.backward()
            total += loss.item()
        step.step()
        losses.append(total)
    trained = {key: value for key, value in model.state_dict().items() if key in names}
    variances.correct(trained, STEPS * microbatches)
    return losses, trained


def main():
    out = pathlib.Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    numbers = {"torch": torch.__version__.split("+")[0], "microbatches": MICROBATCHES, "rates": {}, "losses": {}}
    for name in NETWORKS:
        for optimizer, rate in zip(OPTIMIZERS, RATES[name]):
            case = f"{name}-{optimizer}"
            numbers["rates"][case] = rate
            numbers["losses"][case], parameters = train(name, optimizer, rate)
            write_safetensors(out / f"{case}.safetensors", parameters)
    (out / "numbers.json").write_text(json.dumps(numbers, indent=1) + "\n")


if __name__ == "__main__":
    main()
