"""Whether onnxruntime computes the same from both graphs of every pair in tests/data/opsets/forms.txt.

    check_forms.py

Needs onnx, onnxruntime and numpy. Prints one line a pair and fails if one differs.
"""

import os
import pathlib
import sys

os.environ["ALLOW_RELEASED_ONNX_OPSET_ONLY"] = "0"

import numpy
import onnxruntime
from onnx import helper, parser

FORMS = pathlib.Path(__file__).resolve().parents[2] / "data/opsets/forms.txt"


def pairs():
    lines = [line for line in FORMS.read_text().splitlines() if line and not line.startswith("#")]
    for name, *forms in zip(lines[0::3], lines[1::3], lines[2::3], strict=True):
        yield name, [(int(opset), graph) for opset, graph in (form.split(": ", 1) for form in forms)]


def run(opset, text):
    graph = parser.parse_graph(text)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    random = numpy.random.default_rng(1)
    data = {value.name: random.uniform(-1, 1, value.shape).astype(numpy.float32) for value in session.get_inputs()}
    return session.run(None, data)


def main():
    failed = 0
    for name, (old, new) in pairs():
        same = all(a.shape == b.shape and numpy.allclose(a, b, rtol=1e-6, atol=1e-6)
                   for a, b in zip(run(*old), run(*new), strict=True))
        failed += not same
        print(f"{name}: opset {old[0]}, {'the same' if same else 'DIFFERENT'}")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
