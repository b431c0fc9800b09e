"""What --mode=infer delivers: every output, in the samples' order, whoever makes it and however the model is cut."""

import json
import pathlib
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from pipec_testing import Case, floats, main, model_text, read_npz, write_npz

SAMPLES = 7  # not whole microbatches
X = [float(i) - 9 for i in range(3 * SAMPLES)]
IDENTITY = "float[3,3] w = {1,0,0, 0,1,0, 0,0,1}"


class Outputs(Case):
    def outputs(self, outputs, nodes, initializers=(IDENTITY,), stages=(1, 2), opset=21):
        """The same arrays at every stage count: name -> (descr, shape, bytes)."""
        model = self.write("model.onnxtxt", model_text(["float[2,3] x"], outputs, list(initializers), nodes, opset))
        write_npz(self.folder / "x.npz", {"x": ("float32", (SAMPLES, 3), X)})
        first = None
        for count in stages:
            plan = self.compile(model, "--mode=infer", f"--stages={count}", "--microbatches=2")
            self.run_tool("piperun", plan, "--data=x.npz", "--outputs=out.npz", "--threads=1", "--timeout=20")
            arrays = read_npz(self.folder / "out.npz")
            first = first or arrays
            self.assertEqual(arrays, first, f"{count} stages")
        return first

    def test_an_input_a_weight_and_a_constant(self):
        arrays = self.outputs(["float[2,3] x", "float[3,3] w", "float[2] c", "float[2,3] y"],
                              ["c = Constant<value_floats=[1.0,2.0]>()", "y = MatMul(x, w)"])
        self.assertEqual(list(floats(arrays["x"][2])), X)
        self.assertEqual(list(floats(arrays["y"][2])), X)
        self.assertEqual(floats(arrays["w"][2]), (1, 0, 0, 0, 1, 0, 0, 0, 1))
        self.assertEqual(floats(arrays["c"][2]), (1, 2))

    def test_views_of_an_input(self):
        arrays = self.outputs(["float[2,3] z", "float[2,3,1] u", "float[2,3] y"],
                              ["y = MatMul(x, w)", "z = Identity(x)", "u = Unsqueeze(x, axes)"],
                              [IDENTITY, "int64[1] axes = {2}"])
        for name, shape in (("z", (SAMPLES, 3)), ("u", (SAMPLES, 3, 1))):
            self.assertEqual((arrays[name][1], list(floats(arrays[name][2]))), (shape, X))

    def test_an_input_alone(self):
        self.assertEqual(list(floats(self.outputs(["float[2,3] x"], [], [], stages=(1,))["x"][2])), X)

    def test_one_value_twice(self):
        self.assertEqual(list(self.outputs(["float[2,3] y", "float[2,3] y"], ["a = MatMul(x, w)", "y = Relu(a)"])), ["y"])

    def test_integers_and_booleans(self):
        arrays = self.outputs(["int64[2] a", "bool[2,3] g", "float[2,3] y"],
                              ["y = MatMul(x, w)", "a = ArgMax<axis=1,keepdims=0>(y)", "z = Neg(y)", "g = Greater(y, z)"])
        self.assertEqual(arrays["a"], ("<i8", (SAMPLES,), struct.pack(f"<{SAMPLES}q", *[2] * SAMPLES)))
        self.assertEqual(arrays["g"], ("|b1", (SAMPLES, 3), bytes(x > 0 for x in X)))

    def test_what_has_no_axis_of_samples_has_one_value_or_none(self):
        text = model_text(["float[2,3] x"], ["float s"], [], ["y = Relu(x)", "s = ReduceSum<keepdims=0>(y)"])
        plan = self.compile(self.write("model.onnxtxt", text), "--mode=infer", "--stages=1", "--microbatches=2")
        for samples, code in ((2, 0), (4, 1)):
            write_npz(self.folder / "x.npz", {"x": ("float32", (samples, 3), [float(i) for i in range(3 * samples)])})
            done = self.run_tool("piperun", plan, "--data=x.npz", "--outputs=out.npz", expect=code)
        self.assertIn("'s'", done.stderr)

    def test_the_trace_holds_every_batch(self):
        model = self.write("model.onnxtxt", model_text(["float[2,3] x"], ["float[2,3] y"], [IDENTITY], ["y = MatMul(x, w)"]))
        plan = self.compile(model, "--mode=infer", "--stages=1", "--microbatches=2")
        write_npz(self.folder / "x.npz", {"x": ("float32", (SAMPLES, 3), X)})
        self.run_tool("piperun", plan, "--data=x.npz", "--trace=trace.json")
        events = json.loads((self.folder / "trace.json").read_text())["traceEvents"]
        self.assertEqual([(e["args"]["step"], e["name"]) for e in events if e["ph"] == "X"],
                         [(1, "0F0"), (1, "0F1"), (2, "0F0"), (2, "0F1")])

    def test_nothing_in_an_array(self):
        arrays = self.outputs(["float[2,0] z", "float[2,3] y"], ["y = MatMul(x, w)", "z = Slice(y, one, one, one)"],
                              [IDENTITY, "int64[1] one = {1}"])
        self.assertEqual(arrays["z"], ("<f4", (SAMPLES, 0), b""))
        self.assertEqual(list(floats(arrays["y"][2])), X)


if __name__ == "__main__":
    main()
