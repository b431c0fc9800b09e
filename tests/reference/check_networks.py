"""make-model's models are valid, and onnxruntime computes from them what the networks compute in PyTorch.

    PYTHON check_networks.py     reads *.onnx, *.npz beside this file
"""

import pathlib

import numpy
import onnx
import onnxruntime
import torch
from networks import NETWORKS, load_initial_values

HERE = pathlib.Path(__file__).resolve().parent


def difference(name):
    """The largest between the logits, which are about 1."""
    exported = onnx.load(HERE / f"{name}.onnx")
    onnx.checker.check_model(exported, full_check=True)
    with numpy.load(HERE / f"{name}.npz") as data:
        inputs = {key: data[key] for key in data.files if key != "labels"}
    options = onnxruntime.SessionOptions()
    # It would fold a BatchNormalization in training form into the convolution, as if it were one in inference form.
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(HERE / f"{name}.onnx", options, providers=["CPUExecutionProvider"])
    (got,) = session.run(["logits"], inputs)
    network = NETWORKS[name]().train()
    load_initial_values(network, HERE / f"{name}.onnx")
    with torch.no_grad():
        want = network(**{key: torch.from_numpy(value) for key, value in inputs.items()}).numpy()
    return abs(got - want).max()


def main():
    for name in NETWORKS:
        largest = difference(name)
        print(f"{name}: valid; onnxruntime and PyTorch differ by {largest:.1e}")
        assert largest < 1e-5


if __name__ == "__main__":
    main()
