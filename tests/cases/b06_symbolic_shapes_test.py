"""B06: shape arithmetic on a symbolic batch reaches a later stage: folded once the batch is bound; integers made from data travel."""

import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from pipec_testing import Case, Weights, floats, main, model_text, pipelines, relative_difference, write_npz

WIDTH, TOKENS, SAMPLES = 6, 4, 24
CUTS = ("--cut=n,b", "--cut=t,c", "--cut=a,r")


def model(target, extra=(), initializers=()):
    """x [N,24]; the batch is read from x at the start and used in a Reshape near the end. `target` makes t from n."""
    w = Weights()
    tensors = [w.tensor("w0", WIDTH * TOKENS, WIDTH * TOKENS), w.tensor("w1", WIDTH * TOKENS, WIDTH * TOKENS),
               w.tensor("w2", WIDTH, WIDTH), w.tensor("e", WIDTH, WIDTH), "int64 zero = {0}", "int64[1] first = {0}",
               f"int64[2] rest = {{{TOKENS}, {WIDTH}}}", "int64[1] mean = {1}", *initializers]
    nodes = ["s = Shape(x)", "d = Gather(s, zero)", "n = Unsqueeze(d, first)", *target,
             "a = MatMul(x, w0)", "b = Tanh(a)", "c = MatMul(b, w1)", *extra,
             "r = Reshape(c, t)", "q = MatMul(r, w2)", "y = ReduceMean <keepdims = 0> (q, mean)"]
    return model_text([f"float[N,{WIDTH * TOKENS}] x"], [f"float[N,{WIDTH}] y"], tensors, nodes)


TARGETS = {
    "concat": ["t = Concat <axis = 0> (n, rest)"],
    "slice and product": ["tail = Slice(rest, first, mean)", "p = Mul(n, tail)", "u = Div(p, tail)", "t = Concat <axis = 0> (u, rest)"],
    "start and end": ["m = Shape <start = 0, end = 1> (x)", "t = Concat <axis = 0> (m, rest)"],
    "cast and back": ["f = Cast <to = 1> (n)", "g = Cast <to = 7> (f)", "t = Concat <axis = 0> (g, rest)"],
}


class B06(Case):
    def setUp(self):
        super().setUp()
        values = Weights(2).random
        x = [values.gauss(0, 1) for _ in range(SAMPLES * WIDTH * TOKENS)]
        self.data = self.folder / "data.npz"
        write_npz(self.data, {"x": ("float32", (SAMPLES, WIDTH * TOKENS), x),
                              "labels": ("int64", (SAMPLES,), [values.randrange(WIDTH) for _ in range(SAMPLES)])})

    def check_training(self, path, cuts):
        for batch in (6, 4):
            common = [f"--batch={batch}", "--optimizer=sgd"]
            whole = self.train(self.compile(path, "--stages=1", "--microbatches=1", *common), self.data, "--lr=0.1")
            reference = self.train(self.compile(path, "--stages=1", "--microbatches=2", *common), self.data, "--lr=0.1")
            self.assertLess(relative_difference(reference.losses, whole.losses), 1e-5)
            for name, (dtype, _, data) in reference.tensors.items():
                if dtype == "F32":
                    self.assertLess(relative_difference(floats(data), floats(whole.tensors[name][2])), 1e-5, name)
            for schedule, flags in pipelines(stages=3, microbatches=2):
                for cut in cuts:
                    with self.subTest(batch=batch, schedule=schedule, cut=cut):
                        plan = self.compile(path, *flags, *common, "--microbatches=2", cut)
                        self.assert_same_run(self.train(plan, self.data, "--lr=0.1"), reference, schedule)

    def test_shape_arithmetic_folds(self):
        for name, target in TARGETS.items():
            with self.subTest(target=name):
                path = self.write("shapes.onnxtxt", model(target))
                text = self.run_tool("pipec", path, "--batch=6", "--microbatches=2", "--print=model", "--dry-run").stdout
                self.assertNotRegex(text, r"= (Shape|Gather|Unsqueeze|Concat|Div)\(")
        self.check_training(self.write("shapes.onnxtxt", model(TARGETS["concat"])), ["--cut=b,c", "--cut=a,r"])

    def test_an_integer_made_from_data_travels_without_a_gradient(self):
        target = TARGETS["concat"] + ["k0 = ArgMax <axis = 1, keepdims = 0> (x)", "k1 = Cast <to = 7> (k0)", "six = Mod(k1, width)"]
        extra = ["pick = Gather(e, six)"]
        text = model(target, extra, [f"int64 width = {{{WIDTH}}}"]).replace("y = ReduceMean <keepdims = 0> (q, mean)",
                                                                          "z = ReduceMean <keepdims = 0> (q, mean)\n  y = Add(z, pick)")
        text = text.replace("  pick = Gather(e, six)\n", "").replace("  y = Add(z, pick)", "  pick = Gather(e, six)\n  y = Add(z, pick)")
        path = self.write("travels.onnxtxt", text)
        printed = self.run_tool("pipec", path, "--stages=3", "--batch=6", "--microbatches=2", "--cut=b,c", "--print=staged", "--dry-run").stdout
        messages = [line for line in printed.splitlines() if "ai.pipec::Message" in line]
        self.assertTrue(any(re.search(r"six[^=]*: int64", line) for line in messages), printed)
        self.assertFalse([line for line in messages if "int64" in line and re.search(r"grad|six[^=]*\.d|d_six", line)], printed)
        self.check_training(path, ["--cut=b,c", "--cut=six,c"])

    def test_a_batch_that_the_constants_do_not_admit_is_refused_with_both_sizes(self):
        """Three rows that differ: a microbatch of 3 it is, and none else."""
        rows = Weights(7).tensor("rows", 3, WIDTH * TOKENS)
        path = self.write("rows.onnxtxt", model(TARGETS["concat"] + ["xr = Add(x, rows)"], [], [rows]).replace("MatMul(x, w0)", "MatMul(xr, w0)"))
        self.compile(path, "--batch=6", "--microbatches=2", "--stages=3")
        for batch in (4, 8, 10):
            with self.subTest(batch=batch):
                message = self.compile(path, f"--batch={batch}", "--microbatches=2", "--stages=3", expect=1)
                self.assertRegex(message, rf"Add.*rows.*axis 0.*batch of 3.*{batch // 2} sample")
        # Pairs of samples in one row: an odd batch has no pairs.
        pairs = ["h = Div(n, two)", "t = Concat <axis = 0> (h, wide)", "p = Reshape(x, t)"]
        path = self.write("pairs.onnxtxt", model_text(
            ["float[N,4] x"], ["float[M,8] y"], [Weights(1).tensor("w", 8, 8), "int64 zero = {0}", "int64[1] first = {0}",
                                                  "int64[1] two = {2}", "int64[1] wide = {8}"],
            ["s = Shape(x)", "d = Gather(s, zero)", "n = Unsqueeze(d, first)", *pairs, "y = MatMul(p, w)"]))
        message = self.compile(path, "--batch=6", "--microbatches=2", "--mode=infer", expect=1)
        self.assertRegex(message, r"Reshape.*12 elements are not 8")


if __name__ == "__main__":
    main()
