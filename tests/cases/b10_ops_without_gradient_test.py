"""B10: an op without gradient, or one that cannot be supported at all, is refused by pipec with node, op and opset where the
loss needs it, and is no matter where it does not. Where an op is accepted, its gradient is the numerical one."""

import math
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from pipec_testing import Case, Weights, floats, main, model_text, read_npz, write_npz

N, D = 4, 3
RANDOM = Weights(11).random
X = [[RANDOM.uniform(0.3, 0.9) for _ in range(D)] for _ in range(N)]
W1 = [0.5, 0.75, 0.625]
W2 = [1.5, -0.5, 0.25]


def each(function):
    return lambda row: [function(v) for v in row]


def running_sums(row):
    return [sum(row[: i + 1]) for i in range(len(row))]


# Op as ONNX text (of `v`), and what it does to the row of a sample. Those before opset 17 are the same in all of them.
OPS = {
    "Atan(v)": each(math.atan),
    "Asinh(v)": each(math.asinh),
    "Acos(v)": each(math.acos),
    "Atanh(v)": each(math.atanh),
    "Tan(v)": each(math.tan),
    "Sinh(v)": each(math.sinh),
    "Cosh(v)": each(math.cosh),
    "Softsign(v)": each(lambda v: v / (1 + abs(v))),
    "Softplus(v)": each(lambda v: math.log1p(math.exp(v))),
    "Elu(v)": each(lambda v: v if v > 0 else math.expm1(v)),
    "HardSigmoid(v)": each(lambda v: max(0, min(1, 0.2 * v + 0.5))),
    "HardSwish(v)": each(lambda v: v * max(0, min(1, v / 6 + 0.5))),
    "CumSum(v, last)": running_sums,
    "LpNormalization(v)": lambda row: [v / math.sqrt(sum(u * u for u in row)) for v in row],
}
PLACES = ("after a weight", "between weights", "last")


def forward(place, function, w1, w2):
    """The loss: the mean of all elements."""
    total = 0
    for row in X:
        h = [a * b for a, b in zip(row, w1)]
        if place == "between weights":
            h = function(h)
        y = [a * b for a, b in zip(h, w2)]
        if place == "after a weight":
            y = [a + b for a, b in zip(y, function(h))]
        if place == "last":
            y = function([0.5 + 0.25 * v for v in y])
        total += sum(y)
    return total / (N * D)


def gradient(place, function):
    """By central differences, of w1 then w2."""
    result = []
    for which in range(2):
        for i in range(D):
            values = []
            for delta in (1e-5, -1e-5):
                weights = [list(W1), list(W2)]
                weights[which][i] += delta
                values.append(forward(place, function, *weights))
            result.append((values[0] - values[1]) / 2e-5)
    return result


INITIALIZERS = [f"float[{D}] w1 = {{{', '.join(map(str, W1))}}}", f"float[{D}] w2 = {{{', '.join(map(str, W2))}}}",
                "int64 last = {-1}", "float half = {0.5}", "float quarter = {0.25}", "int64 zero = {0}"]


def model(place, op, opset):
    odd = f"[odd] o = {op}"
    nodes = {
        "after a weight": ["v = Mul(x, w1)", "y = Mul(v, w2)", odd, "z = Add(y, o)"],
        "between weights": ["v = Mul(x, w1)", odd, "z = Mul(o, w2)"],
        "last": ["h = Mul(x, w1)", "y = Mul(h, w2)", "u = Mul(y, quarter)", "v = Add(u, half)", odd, "z = Identity(o)"],
    }[place]
    return model_text([f"float[{N},{D}] x"], ["float loss"], INITIALIZERS, [*nodes, "loss = ReduceMean<keepdims = 0>(z)"], opset)


# Nodes that make `o`, of which nothing can be known at compile time, from h; and the node at fault.
UNKNOWN = {
    "NonZero": (["[odd] i = NonZero(h)", "o = Cast<to = 1>(i)"], "node 'odd' (NonZero)"),
    "If": (["s = ReduceSum<keepdims = 0>(h)", "c = Greater(s, half)",
            "[odd] o = If(c) <then_branch = a () => (r) { r = Relu(h) }, else_branch = b () => (r) { r = Neg(h) }>"], "node 'odd' (If)"),
    "Loop": (["s = ReduceSum<keepdims = 0>(h)", "n = Cast<to = 7>(s)",
              "[odd] o = Loop(n, , h) <body = b (int64 i, bool c, float[4,3] p) => (bool c, float[4,3] q) { q = Relu(p) }>"],
             "node 'odd' (Loop)"),
    "an unknown op": (["[odd] o = com.example.Odd(h)"], "node 'odd' (com.example::Odd), opset 1"),
}


def with_unknown(nodes, outputs, tail):
    text = model_text([f"float[{N},{D}] x"], outputs, INITIALIZERS, ["h = Mul(x, w1)", *nodes, *tail], 17)
    return text.replace('["" : 17]', '["" : 17, "com.example" : 1]')


class B10(Case):
    def data(self):
        path = self.folder / "x.npz"
        write_npz(path, {"x": ("float32", (N, D), [v for row in X for v in row])})
        return path

    def compile_or_refuse(self, path, *flags):
        """The plan and "", or None and what pipec printed."""
        self.count += 1
        plan = self.folder / f"plan{self.count}"
        done = self.run_tool("pipec", path, "-o", plan, *flags, expect=None)
        self.assertIn(done.returncode, (0, 1), done.stderr)
        if done.returncode == 1:
            self.assertFalse(plan.exists(), "a refused model left a plan")
        return (plan, "") if done.returncode == 0 else (None, done.stderr)

    def test_a_on_the_loss_path(self):
        data, accepted = self.data(), 0
        for op, function in OPS.items():
            for place, opset in zip(PLACES, (17, 14, 21)):
                with self.subTest(op=op, place=place):
                    path = self.write("model.onnxtxt", model(place, op, opset))
                    plan, refusal = self.compile_or_refuse(path, "--microbatches=1", "--optimizer=sgd", "--stages=1")
                    if not plan:
                        self.assertRegex(refusal, rf"node 'odd[^']*' \(\w+\), opset {opset}: ")
                        continue
                    accepted += 1
                    tensors = self.train(plan, data, "--lr=1", steps=1).tensors
                    got = [a - b for name, w in (("w1", W1), ("w2", W2)) for a, b in zip(w, floats(tensors[name][2]))]
                    for a, b in zip(got, gradient(place, function)):
                        self.assertAlmostEqual(a, b, delta=1e-4, msg=f"{op} {place}")
        self.assertGreater(accepted, 0)

    def test_b_unknown_at_compile_time_on_the_loss_path(self):
        for what, (nodes, culprit) in UNKNOWN.items():
            path = self.write("model.onnxtxt", with_unknown(nodes, ["float loss"], ["loss = ReduceMean<keepdims = 0>(o)"]))
            for flags in ([], ["--loss=output:loss"], ["--loss=mse"]):
                with self.subTest(op=what, flags=flags):
                    refusal = self.compile(path, "--microbatches=1", *flags, expect=1)
                    self.assertIn(culprit + ("" if "opset" in culprit else ", opset 17"), refusal)

    def test_d_unknown_at_compile_time_in_infer_mode(self):
        """What runs, runs; what does not is refused by node, op and opset, also where it meets the unknown first further on."""
        for what, (nodes, culprit) in UNKNOWN.items():
            path = self.write("model.onnxtxt", with_unknown(nodes, ["float loss"], ["loss = ReduceMean<keepdims = 0>(o)"]))
            with self.subTest(op=what):
                plan, refusal = self.compile_or_refuse(path, "--mode=infer", "--microbatches=1", "--stages=1")
                if what == "If":
                    self.assertTrue(plan, refusal)
                elif what == "NonZero":
                    self.assertRegex(refusal, r"\(ReduceMean\).*, opset 17: how many entries 'o' has .* is known to the run only")
                else:
                    self.assertIn(culprit + ("" if "opset" in culprit else ", opset 17"), refusal)

    def test_b_another_output_is_not_taken_for_the_loss(self):
        """The model's own loss cannot be computed: the logits beside it must not quietly take its place."""
        for what, (nodes, culprit) in UNKNOWN.items():
            for outputs in (["float loss", f"float[{N},{D}] h"], [f"float[{N},{D}] h", "float loss"]):
                with self.subTest(op=what, outputs=outputs):
                    path = self.write("model.onnxtxt", with_unknown(nodes, outputs, ["loss = ReduceMean<keepdims = 0>(o)"]))
                    self.assertIn(culprit, self.compile(path, "--microbatches=1", expect=1))
                    self.assertIn(culprit, self.compile(path, "--microbatches=1", "--loss=output:loss", expect=1))
                    kind = self.compile_or_refuse(path, "--microbatches=1", "--loss=mse")[1]
                    self.assertEqual(culprit in kind, outputs[0] == "float loss", kind)

    def test_c_feeding_only_a_side_output(self):
        data = self.data()
        tail = ["loss = ReduceMean<keepdims = 0>(h)"]
        plain = self.write("plain.onnxtxt", with_unknown([], ["float loss"], tail))
        reference = self.train(self.compile(plain, "--microbatches=1", "--stages=1"), data, steps=2)
        sides = {**UNKNOWN, "Atan": (["[odd] o = Atan(h)"], None)}
        for what, (nodes, culprit) in sides.items():
            for outputs in (["float loss", "o"], ["float[A,B] o", "float loss"]):
                with self.subTest(op=what, outputs=outputs):
                    path = self.write("model.onnxtxt", with_unknown(nodes, outputs, tail))
                    plan = self.compile(path, "--microbatches=1", "--stages=1", "--loss=output:loss")
                    self.assert_same_run(self.train(plan, data, steps=2), reference, what)
                    if culprit:
                        self.assertIn(culprit, self.compile(path, "--microbatches=1", "--loss=output:o", expect=1))

    def test_d_inference(self):
        data = self.data()
        accepted = 0
        for op, function in OPS.items():
            with self.subTest(op=op):
                text = model_text([f"float[{N},{D}] x"], [f"float[{N},{D}] o"], INITIALIZERS, ["v = Mul(x, w1)", f"[odd] o = {op}"], 17)
                plan, refusal = self.compile_or_refuse(self.write("model.onnxtxt", text), "--mode=infer", "--microbatches=1", "--stages=1")
                if not plan:
                    self.assertRegex(refusal, r"node 'odd[^']*' \(\w+\), opset 17: ")
                    continue
                accepted += 1
                self.run_tool("piperun", plan, f"--data={data}", "--outputs=out.npz", "--threads=1", "--timeout=20")
                wanted = [v for row in X for v in function([a * b for a, b in zip(row, W1)])]
                for a, b in zip(floats(read_npz(self.folder / "out.npz")["o"][2]), wanted):
                    self.assertAlmostEqual(a, b, delta=1e-5, msg=op)
        self.assertGreater(accepted, 0)


if __name__ == "__main__":
    main()
