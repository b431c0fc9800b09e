"""What pipec emits in infer mode of a model whose results have as many entries as the data say, run by onnxruntime: what is
there is what onnxruntime computes of the model itself, and the count says how much that is.

Needs onnx, onnxruntime and numpy; PIPEC_BIN as for all tests.
"""

import pathlib
import subprocess
import sys
import tempfile

import numpy
import onnx
import onnxruntime

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from pipec_testing import BIN, model_text

MODEL = model_text(
    ["float[8] x", "bool[8] c", "float[1,6,4] boxes", "float[1,1,6] scores"],
    ["int64[1,n] places", "float[m] some", "float[k] kept", "int64[k] first", "int64[8] back", "int64[s,3] chosen"],
    ["int64[1] most = {4}", "float[1] overlap = {0.5}"],
    ["places = NonZero(x)", "some = Compress<axis = 0>(x, c)", "kept, first, back = Unique<axis = 0>(x)",
     "chosen = NonMaxSuppression(boxes, scores, most, overlap)"])
# Result -> the axis whose entries count, and the count.
COUNTED = {"places": (1, "places.count"), "some": (0, "some.count"), "kept": (0, "kept.count"), "first": (0, "kept.count"),
           "chosen": (0, "chosen.count")}


def outputs(graph, feed):
    names = [o.name for o in graph.get_outputs()]
    return dict(zip(names, graph.run(names, feed)))


def main():
    draw = numpy.random.default_rng(1)
    corners = numpy.sort(draw.random((1, 6, 2, 2), numpy.float32), axis=2).reshape(1, 6, 4)
    feed = {"x": draw.integers(-1, 2, 8).astype(numpy.float32), "c": draw.integers(0, 2, 8).astype(bool),
            "boxes": corners, "scores": draw.random((1, 1, 6), numpy.float32)}
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "model.onnxtxt").write_text(MODEL)
        subprocess.run([BIN / "pipec", folder / "model.onnxtxt", "--mode=infer", "--stages=1", "--microbatches=1", "-o",
                        folder / "plan", f"--emit-onnx={folder / 'graphs'}"], check=True, capture_output=True)
        path = folder / "graphs/model.onnx"
        onnx.checker.check_model(str(path), full_check=True)
        want = outputs(onnxruntime.InferenceSession(onnx.parser.parse_model(MODEL).SerializeToString()), feed)
        got = outputs(onnxruntime.InferenceSession(str(path)), feed)
    for name, value in want.items():
        there = got[name]
        if name in COUNTED:
            axis, count = COUNTED[name][0], int(got[COUNTED[name][1]])
            assert count == value.shape[axis], (name, count, value.shape)
            there = numpy.take(there, range(count), axis=axis)
        assert numpy.array_equal(there, value), (name, there, value)
    print(f"{len(want)} results that the data size are onnxruntime's, whole or as far as their count says")


if __name__ == "__main__":
    main()
