"""What makes one result of several samples depends on how the batch is cut: reported in infer mode, refused on the way to a loss."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from pipec_testing import Case, Weights, main, model_text

# node -> (op, axis and operand that mix); each makes m from h [N,4].
MIXING = {
    "[mix] m = Softmax <axis = 0> (h)": ("Softmax", "axis 0 of 'h'"),
    "[mix] m = LogSoftmax <axis = 0> (h)": ("LogSoftmax", "axis 0 of 'h'"),
    "[mix] m = LayerNormalization <axis = 0> (h, scale)": ("LayerNormalization", "axis 0 of 'h'"),
    "[mix] m = CumSum (h, zero)": ("CumSum", "axis 0 of 'h'"),
    "t = Transpose (h)\n  [mix] m = MatMul (h, t)": ("FusedMatMul", "axis 0 of 'h'"),
    "[mix] g = ReduceMax <keepdims = 1> (h, first)\n  m = Sub (h, g)": ("ReduceMax", "axis 0 of 'h'"),
    "[mix] g = Gather (h, zero)\n  m = Sub (h, g)": ("Gather", "axis 0 of 'h'"),
    "a = Unsqueeze (h, first)\n  b = Unsqueeze (h, second)\n  [mix] d = Sub (a, b)\n  m = ReduceSum <keepdims = 0> (d, second)":
        ("Sub", "axis 1 of 'a'"),
}
# Samples stay apart, merged with other axes, moved and split as they may be.
APART = ["m = Softmax <axis = 1> (h)", "m = LayerNormalization (h, scale)", "t = Transpose (h)\n  m = Softmax <axis = 0> (t)",
         "r = Reshape (h, pairs)\n  s = Softmax (r)\n  m = Reshape (s, back)"]


def model(node, batch):
    """A model whose scale fits both the axis and the batch of LayerNormalization over axis 0."""
    w = Weights()
    scale = w.tensor("scale", *((batch, 4) if "LayerNormalization <axis" in node else (4,)))
    inits = [w.tensor("w", 4, 4), scale, "int64 zero = {0}", "int64[1] first = {0}", "int64[1] second = {1}",
             "int64[2] pairs = {-1, 2}", "int64[2] back = {-1, 4}"]
    return model_text(["float[N,4] x"], ["m"], inits, ["h = MatMul(x, w)", node])


class SampleMixing(Case):
    def test_infer_mode_reports_every_node_that_mixes(self):
        for node, (op, where) in MIXING.items():
            with self.subTest(node=node):
                path = self.write("mix.onnxtxt", model(node, 2))
                flags = ["--mode=infer", "--stages=1", "--dry-run"]
                done = self.run_tool("pipec", path, *flags, "--batch=4", "--microbatches=2")
                self.assertIn(f"node mix ({op}) mixes samples, along {where}", done.stdout)
                path = self.write("mix.onnxtxt", model(node, 4))
                self.assertNotIn("mixes", self.run_tool("pipec", path, *flags, "--batch=4", "--microbatches=1").stdout)

    def test_samples_that_stay_apart_are_not_reported(self):
        for node in APART:
            with self.subTest(node=node):
                path = self.write("apart.onnxtxt", model(node, 2))
                for mode in ("infer", "train"):
                    done = self.run_tool("pipec", path, f"--mode={mode}", "--stages=1", "--dry-run", "--batch=4", "--microbatches=2")
                    self.assertNotIn("mixes", done.stdout)

    def test_a_loss_of_mixed_samples_is_refused_by_node_and_axis(self):
        for node, (op, where) in MIXING.items():
            with self.subTest(node=node):
                path = self.write("mix.onnxtxt", model(node, 2))
                message = self.compile(path, "--stages=1", "--batch=4", "--microbatches=2", expect=1)
                self.assertIn(f"node mix ({op})", message)
                self.assertIn(f"the samples of a microbatch, along {where}", message)

    def test_many_nodes_are_named_and_counted(self):
        nodes = "\n  ".join(f"m{i} = Softmax <axis = 0> ({'h' if i == 0 else f'm{i - 1}'})" for i in range(7)) + "\n  m = Softmax <axis = 0> (m6)"
        path = self.write("many.onnxtxt", model(nodes, 2))
        done = self.run_tool("pipec", path, "--mode=infer", "--stages=1", "--dry-run", "--batch=4", "--microbatches=2")
        notes = [line for line in done.stdout.splitlines() if "mixes samples" in line or "mix samples" in line]
        # Results of a node that mixes have no samples of their own any more.
        self.assertEqual(len(notes), 1)
        nodes = "\n  ".join(f"m{i} = Softmax <axis = 0> (h)" for i in range(7)) + "\n  m = Sum (m0, m1, m2, m3, m4, m5, m6)"
        path = self.write("many.onnxtxt", model(nodes, 2))
        done = self.run_tool("pipec", path, "--mode=infer", "--stages=1", "--dry-run", "--batch=4", "--microbatches=2")
        notes = [line for line in done.stdout.splitlines() if "mixes samples" in line or "mix samples" in line]
        self.assertEqual(len(notes), 5, done.stdout)
        self.assertIn("and 3 more nodes mix samples", notes[-1])


if __name__ == "__main__":
    main()
