"""Trains the reference models with PyTorch, from the same initial values and data, and writes what came out.

    make_reference.py OUT        writes OUT/numbers.json and OUT/CASE.safetensors; reads mlp.onnx, gpt.onnx, *.npz beside this file

Needs torch, numpy and onnx (to read initial values). numbers.json and the *.safetensors beside this file are its output.
"""

import json
import pathlib
import struct
import sys

import numpy
import onnx
import torch
from torch import nn
from torch.nn import functional

HERE = pathlib.Path(__file__).resolve().parent
STEPS = 10


class Mlp(nn.Module):
    """make-model mlp --layers=4 --inputs=16 --hidden=32 --classes=10"""

    def __init__(self):
        super().__init__()
        sizes = [16, 32, 32, 32, 10]
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in zip(sizes, sizes[1:]))

    def forward(self, x):
        for layer in self.layers[:-1]:
            x = functional.relu(layer(x))
        return self.layers[-1](x)


class Attention(nn.Module):
    def __init__(self, hidden, heads):
        super().__init__()
        self.heads = heads
        self.c_attn, self.c_proj = nn.Linear(hidden, 3 * hidden), nn.Linear(hidden, hidden)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (y.view(b, t, self.heads, c // self.heads).transpose(1, 2) for y in self.c_attn(x).split(c, dim=2))
        return self.c_proj(functional.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, t, c))


class Block(nn.Module):
    def __init__(self, hidden, heads):
        super().__init__()
        self.ln_1, self.ln_2, self.attn = nn.LayerNorm(hidden), nn.LayerNorm(hidden), Attention(hidden, heads)
        self.mlp = nn.ModuleDict({"c_fc": nn.Linear(hidden, 4 * hidden), "c_proj": nn.Linear(4 * hidden, hidden)})

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp.c_proj(functional.gelu(self.mlp.c_fc(self.ln_2(x))))


class Gpt(nn.Module):
    """make-model gpt --layers=2 --hidden=32 --heads=4 --sequence=16 --vocabulary=64; the head is the embedding."""

    def __init__(self, layers=2, hidden=32, heads=4, sequence=16, vocabulary=64):
        super().__init__()
        self.transformer = nn.ModuleDict({
            "wte": nn.Embedding(vocabulary, hidden), "wpe": nn.Embedding(sequence, hidden),
            "h": nn.ModuleList(Block(hidden, heads) for _ in range(layers)), "ln_f": nn.LayerNorm(hidden)})

    def forward(self, ids):
        x = self.transformer.wte(ids) + self.transformer.wpe.weight
        for block in self.transformer.h:
            x = block(x)
        return self.transformer.ln_f(x) @ self.transformer.wte.weight.T


# AdamW's eps: the gradient of the attention's key bias is zero but for rounding (softmax does not see it), and the default
# of 1e-8 would blow that rounding up to whole steps.
EPS = 1e-6
OPTIMIZERS = {
    "momentum": lambda parameters, lr: torch.optim.SGD(parameters, lr=lr, momentum=0.9),
    "adamw": lambda parameters, lr: torch.optim.AdamW(parameters, lr=lr, eps=EPS),
}
RATES = {"mlp-momentum": 0.2, "mlp-adamw": 0.01, "gpt-momentum": 0.05, "gpt-adamw": 0.01}


def initial_values(path):
    return {t.name: torch.from_numpy(onnx.numpy_helper.to_array(t).copy()) for t in onnx.load(path).graph.initializer}


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


def train(name, make, input_name, optimizer):
    model = make()
    values = initial_values(HERE / f"{name}.onnx")
    model.load_state_dict({key: values[key] for key in model.state_dict()}, strict=True)
    with numpy.load(HERE / f"{name}.npz") as data:
        x, labels = torch.from_numpy(data[input_name]), torch.from_numpy(data["labels"])
    step = OPTIMIZERS[optimizer](model.parameters(), RATES[f"{name}-{optimizer}"])
    losses = []
    for _ in range(STEPS):
        logits = model(x)
        loss = functional.cross_entropy(logits.reshape(-1, logits.shape[-1]), labels.reshape(-1))
        step.zero_grad()
        loss.backward()
        step.step()
        losses.append(loss.item())
    return losses, dict(model.state_dict())


def main():
    out = pathlib.Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)
    numbers = {"torch": torch.__version__.split("+")[0], "rates": RATES, "losses": {}}
    for name, make, input_name in (("mlp", Mlp, "x"), ("gpt", Gpt, "input_ids")):
        for optimizer in OPTIMIZERS:
            losses, parameters = train(name, make, input_name, optimizer)
            numbers["losses"][f"{name}-{optimizer}"] = losses
            write_safetensors(out / f"{name}-{optimizer}.safetensors", parameters)
    (out / "numbers.json").write_text(json.dumps(numbers, indent=1) + "\n")


if __name__ == "__main__":
    main()
