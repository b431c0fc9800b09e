"""What bench-train compares with: PyTorch on one thread, eager and compiled. Needs torch, numpy, onnx and transformers.

    python3 pytorch_train.py NETWORK SIZES MODEL MICROBATCHES LR DATA

Builds NETWORK of tests/reference/networks.py with SIZES, a JSON object, and the initial values of MODEL; writes one batch, drawn by
chance, to DATA, an npz file. Then prints a line `{"samples": in a step, "compile": null, or why it did not}`, and for every line it reads one more:
    eager, compiled                     a step: `{"seconds", "processor_seconds", "loss"}`
    profile eager, profile compiled     where a step's time goes: `{NAME: seconds}`
The optimizer is AdamW in its fused form, PyTorch's fastest on a CPU; gradients are accumulated over the microbatches.
"""

import json
import pathlib
import sys
import time

import numpy
import onnx
import torch
from torch.nn import functional

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "reference"))
from networks import NETWORKS, load_initial_values

PROFILED_STEPS = 2


class Side:
    """One model in training; both sides start from the same values."""

    def __init__(self, name, sizes, path, lr, transform):
        self.model = NETWORKS[name](**sizes).train()
        self.path, self.lr = path, lr
        self.loss = transform(self.mean_loss)
        self.reset()

    def reset(self):
        load_initial_values(self.model, self.path)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=self.lr, fused=True)

    def mean_loss(self, x, labels):
        logits = self.model(x)
        return functional.cross_entropy(logits.reshape(-1, logits.shape[-1]), labels.reshape(-1))

    def step(self, microbatches):
        total = 0.0
        self.optimizer.zero_grad()
        for x, labels in microbatches:
            loss = self.loss(x, labels) / len(microbatches)
            loss.backward()
            total += loss.item()
        self.optimizer.step()
        return total


def shape_of(value):
    return [dimension.dim_value for dimension in value.type.tensor_type.shape.dim]


def draw_batch(path, microbatches):
    """Inputs and labels of as many samples as the model's own batch times the microbatches."""
    graph = onnx.load(path).graph
    (x,), (logits,) = graph.input, graph.output
    samples, *sample = shape_of(x)
    *predictions, classes = shape_of(logits)[1:]
    samples *= microbatches
    random = numpy.random.default_rng(0)
    if x.type.tensor_type.elem_type == onnx.TensorProto.INT64:
        inputs = random.integers(0, classes, [samples, *sample])
    else:
        inputs = random.standard_normal([samples, *sample], dtype=numpy.float32)
    return {x.name: inputs, "labels": random.integers(0, classes, [samples, *predictions])}


def profile(side, microbatches):
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profiler:
        for _ in range(PROFILED_STEPS):
            side.step(microbatches)
    return {event.key: event.self_cpu_time_total * 1e-6 / PROFILED_STEPS for event in profiler.key_averages()}


def measure(side, microbatches):
    start, processor = time.perf_counter(), time.process_time()
    loss = side.step(microbatches)
    return {"seconds": time.perf_counter() - start, "processor_seconds": time.process_time() - processor, "loss": loss}


def answer(value):
    print(json.dumps(value), flush=True)


def main():
    name, sizes, path, count, lr, data_path = sys.argv[1:]
    sizes, count, lr = json.loads(sizes), int(count), float(lr)
    torch.set_num_threads(1)
    data = draw_batch(path, count)
    numpy.savez(data_path, **data)
    microbatches = list(zip(*(torch.from_numpy(array).chunk(count) for array in data.values())))
    sides = {"eager": Side(name, sizes, path, lr, lambda f: f), "compiled": Side(name, sizes, path, lr, torch.compile)}
    # The first step is slow.
    sides["eager"].step(microbatches)
    failure = None
    try:
        sides["compiled"].step(microbatches)
    except Exception as error:
        failure = str(error).strip()
    for side in sides.values():
        side.reset()
    answer({"samples": len(data["labels"]), "compile": failure})
    for line in sys.stdin:
        *profiled, side = line.split()
        answer((profile if profiled else measure)(sides[side], microbatches))


if __name__ == "__main__":
    main()
