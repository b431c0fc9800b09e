"""Loops, scans, branches and sequences give the numbers of the same arithmetic written out, in inference and training."""

import math
import pathlib
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from pipec_testing import Case, Weights, floats, main, model_text, read_npz, write_npz

N, T, D = 2, 3, 2  # samples of a microbatch, time, width
RANDOM = Weights(5).random
X = [[[RANDOM.uniform(-1, 1) for _ in range(D)] for _ in range(T)] for _ in range(2 * N)]
W = [[0.5, -0.25], [0.125, 0.75]]
WEIGHT = "float[2,2] w = {0.5, -0.25, 0.125, 0.75}"


def flat(values):
    return [v for x in values for v in (flat(x) if isinstance(x, list) else [x])]


def step(h, x):
    """tanh(h w + x)."""
    return [math.tanh(sum(h[i] * W[i][j] for i in range(D)) + x[j]) for j in range(D)]


def states(sample, backwards=False):
    h, rows = [0.0] * D, []
    for x in reversed(sample) if backwards else sample:
        h = step(h, x)
        rows.append(h)
    return rows


BODY = "p = MatMul(h, w) q = Add(p, xt) t = Tanh(q)"
# (nodes, initializers) that make `last` [N,D] and `all` [N,T,D] of x [N,T,D] and start [N,D].
FORMS = {
    "loop": (["one = Constant<value = int64 {1}>()",
              f"last, stacked = Loop(trips, go, start) <body = step (int64 i, bool c, float[{N},{D}] h) => (bool d, float[{N},{D}] t, "
              f"float[{N},{D}] row) {{ d = Identity(c) xt = Gather<axis = 1>(x, i) {BODY} row = Identity(t) }}>",
              "all = Transpose<perm = [1, 0, 2]>(stacked)"],
             [f"int64 trips = {{{T}}}", "bool go = {1}"]),
    "condition": ([f"last, stacked = Loop(trips, go, start) <body = step (int64 i, bool c, float[{N},{D}] h) => (bool d, float[{N},{D}] t, "
                   f"float[{N},{D}] row) {{ j = Add(i, one) d = Less(j, time) xt = Gather<axis = 1>(x, i) {BODY} row = Identity(t) }}>",
                   "all = Transpose<perm = [1, 0, 2]>(stacked)"],
                  ["int64 trips = {1000}", "bool go = {1}", "int64 one = {1}", f"int64[1] time = {{{T}}}"]),
    "scan": (["last, all = Scan<num_scan_inputs = 1, scan_input_axes = [1], scan_output_axes = [1], body = step "
              f"(float[{N},{D}] h, float[{N},{D}] xt) => (float[{N},{D}] t, float[{N},{D}] row) {{ {BODY} row = Identity(t) }}>(start, x)"],
             []),
    "sequence": (["xs = SplitToSequence<axis = 1, keepdims = 0>(x)", "empty = SequenceEmpty()",
                  f"last, rows = Loop(trips, , start, empty) <body = step (int64 i, bool c, float[{N},{D}] h, seq(float[{N},{D}]) s) => "
                  f"(bool c, float[{N},{D}] t, seq(float[{N},{D}]) r) {{ xt = SequenceAt(xs, i) {BODY} r = SequenceInsert(s, t) }}>",
                  "all = ConcatFromSequence<axis = 1, new_axis = 1>(rows)"],
                 [f"int64 trips = {{{T}}}"]),
}
WRITTEN_OUT = ([line for t in range(T) for line in (f"x{t} = Gather<axis = 1>(x, i{t})", f"p{t} = MatMul({f'h{t - 1}' if t else 'start'}, w)",
                                                   f"q{t} = Add(p{t}, x{t})", f"h{t} = Tanh(q{t})", f"u{t} = Unsqueeze(h{t}, axis)")]
               + [f"last = Identity(h{T - 1})", "all = Concat<axis = 1>(" + ", ".join(f"u{t}" for t in range(T)) + ")"],
               [f"int64 i{t} = {{{t}}}" for t in range(T)] + ["int64[1] axis = {1}"])


def model(form, outputs, tail=()):
    nodes, initializers = form
    start = ["start = ConstantOfShape(zeros)"]
    return model_text([f"float[{N},{T},{D}] x"], outputs, [WEIGHT, f"int64[2] zeros = {{{N}, {D}}}", *initializers],
                      [*start, *nodes, *tail], opset=17)


class ControlFlow(Case):
    def infer(self, text, data, stages=1):
        plan = self.compile(self.write("model.onnxtxt", text), "--mode=infer", f"--stages={stages}", "--microbatches=2")
        write_npz(self.folder / "x.npz", data)
        self.run_tool("piperun", plan, "--data=x.npz", "--outputs=out.npz", "--threads=1", "--timeout=20")
        return read_npz(self.folder / "out.npz")

    def assert_close(self, got, wanted, what):
        got = floats(got[2])
        self.assertEqual(len(got), len(wanted), what)
        for a, b in zip(got, wanted):
            self.assertAlmostEqual(a, b, delta=1e-6, msg=what)

    def test_inference(self):
        data = {"x": ("float32", (2 * N, T, D), flat(X))}
        for what, form in FORMS.items():
            for stages in (1, 2):
                with self.subTest(form=what, stages=stages):
                    arrays = self.infer(model(form, [f"float[{N},{D}] last", f"float[{N},{T},{D}] all"]), data, stages)
                    self.assert_close(arrays["last"], flat([states(x)[-1] for x in X]), what)
                    self.assert_close(arrays["all"], flat([states(x) for x in X]), what)

    def test_a_scan_backwards(self):
        scan = ("last, all = Scan<num_scan_inputs = 1, scan_input_axes = [1], scan_output_axes = [1], scan_input_directions = [1], "
                f"scan_output_directions = [1], body = step (float[{N},{D}] h, float[{N},{D}] xt) => (float[{N},{D}] t, float[{N},{D}] row) "
                f"{{ {BODY} row = Identity(t) }}>(start, x)")
        arrays = self.infer(model(([scan], []), [f"float[{N},{D}] last", f"float[{N},{T},{D}] all"]),
                            {"x": ("float32", (2 * N, T, D), flat(X))})
        self.assert_close(arrays["last"], flat([states(x, True)[-1] for x in X]), "last")
        self.assert_close(arrays["all"], flat([states(x, True)[::-1] for x in X]), "all")

    def test_a_branch_by_shape(self):
        for size, function in ((2, lambda v: v * v), (3, lambda v: -v)):
            text = model_text([f"float[2,{size}] x"], [f"float[2,{size}] y"], ["int64 two = {2}", "int64 one = {1}"],
                              ["s = Shape(x)", "n = Gather(s, one)", "c = Equal(n, two)",
                               "y = If(c) <then_branch = a () => (r) { r = Mul(x, x) }, else_branch = b () => (r) { r = Neg(x) }>"], opset=13)
            values = [0.5 * i - 1 for i in range(4 * size)]
            arrays = self.infer(text, {"x": ("float32", (4, size), values)})
            self.assert_close(arrays["y"], [function(v) for v in values], f"size {size}")

    def test_training_is_that_of_the_graph_written_out(self):
        labels = [RANDOM.randrange(D) for _ in range(2 * N)]
        data = self.folder / "data.npz"
        write_npz(data, {"x": ("float32", (2 * N, T, D), flat(X)), "labels": ("int64", (2 * N,), labels)})
        tail = ["rest = ReduceSum<keepdims = 0>(all, time_axis)", "y = Add(last, rest)"]
        flags = ["--microbatches=2", "--optimizer=sgd"]

        def run(form, stages):
            nodes, initializers = form
            text = model((nodes, [*initializers, "int64[1] time_axis = {1}"]), [f"float[{N},{D}] y"], tail)
            plan = self.compile(self.write("model.onnxtxt", text), f"--stages={stages}", *flags)
            return self.train(plan, data, "--lr=0.5", "--epochs=4")

        reference = run(WRITTEN_OUT, 1)
        self.assertLess(reference.losses[-1], reference.losses[0])
        for what, form in FORMS.items():
            for stages in (1, 2):
                with self.subTest(form=what, stages=stages):
                    self.assert_same_run(run(form, stages), reference, what)

    def test_weights_of_a_body_learn_and_are_exported(self):
        """They lie in a file beside the model, are one parameter each, and the exported model has the trained ones."""
        (self.folder / "w.bin").write_bytes(struct.pack("<4f", *flat(W)))
        body = (f"last = Loop(trips, , start) <body = step (int64 i, bool c, float[{N},{D}] h) => (bool c, float[{N},{D}] t) "
                f"<float[2,2] w = [\"location\": \"w.bin\", \"offset\": \"0\", \"length\": \"16\"], float[2] b = {{0.5, -0.5}}> "
                "{ p = MatMul(h, w) q = Add(p, b) t = Tanh(q) }>")
        text = model_text([f"float[{N},{D}] start"], [f"float[{N},{D}] last"], [f"int64 trips = {{{T}}}"], [body], opset=17)
        data = self.folder / "data.npz"
        write_npz(data, {"start": ("float32", (2 * N, D), [v for x in X for v in x[0]]), "labels": ("int64", (2 * N,), [0, 1, 1, 0])})
        plan = self.compile(self.write("model.onnxtxt", text), "--stages=1", "--microbatches=2", "--optimizer=sgd")
        trained = self.train(plan, data, "--lr=0.5", "--epochs=3")
        self.assertEqual(sorted(trained.tensors), ["b", "w"])
        self.assertNotEqual(floats(trained.tensors["w"][2]), tuple(flat(W)))
        again = self.compile(self.folder / f"export{self.count}" / "model.onnx", "--stages=1", "--microbatches=2", "--optimizer=sgd")
        self.assertEqual(self.train(again, data, "--lr=0", "--epochs=1").tensors, trained.tensors)


if __name__ == "__main__":
    main()
