"""What only the run knows, in inference: branches, loops that end early, results of a size of their own, sequences."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from pipec_testing import Case, Weights, floats, main, model_text, read_npz, write_npz

R, C = 4, 3  # of x
RANDOM = Weights(11).random


def ints(array):
    return [int.from_bytes(array[2][i:i + 8], "little", signed=True) for i in range(0, len(array[2]), 8)]


class DataDependent(Case):
    def infer(self, text, arrays, *flags, stages=1):
        plan = self.compile(self.write("model.onnxtxt", text), "--mode=infer", f"--stages={stages}", "--microbatches=1", *flags)
        write_npz(self.folder / "data.npz", arrays)
        self.run_tool("piperun", plan, "--data=data.npz", "--outputs=out.npz", "--threads=1", "--timeout=20")
        return read_npz(self.folder / "out.npz")

    def assert_array(self, array, shape, values, what):
        self.assertEqual(tuple(array[1]), tuple(shape), what)
        got = ints(array) if array[0] == "<i8" else floats(array[2])
        self.assertEqual(len(got), len(values), what)
        for a, b in zip(got, values):
            self.assertAlmostEqual(a, b, delta=1e-5, msg=what)

    def trials(self):
        """(stages, x by rows, data), whole and cut, for a few x."""
        for stages in (1, 2):
            for _ in range(3):
                rows = [[round(RANDOM.uniform(-1, 1), 3) for _ in range(C)] for _ in range(R)]
                yield stages, rows, {"x": ("float32", (R, C), [v for row in rows for v in row])}

    def test_a_branch(self):
        text = model_text([f"float[{R},{C}] x"], [f"float[{R},{C}] y"], ["float zero = {0}", "float two = {2}"],
                          ["s = ReduceSum<keepdims = 0>(x)", "c = Greater(s, zero)",
                           "z = If(c) <then_branch = a () => (r) { r = Mul(x, two) }, else_branch = b () => (r) { u = Neg(x) r = Abs(u) }>",
                           "y = Add(z, x)"])
        for stages, rows, data in self.trials():
            values = [v for row in rows for v in row]
            wanted = [2 * v + v for v in values] if sum(values) > 0 else [abs(v) + v for v in values]
            self.assert_array(self.infer(text, data, stages=stages)["y"], (R, C), wanted, "y")

    def test_a_loop_that_ends_early(self):
        text = model_text([f"float[{R},{C}] x"], [f"float[{R},{C}] last", f"float[n,{R},{C}] all"],
                          ["float limit = {40}", "int64 trips = {9}", "bool go = {1}", "float grow = {1.5}"],
                          ["last, all = Loop(trips, go, x) <body = step (int64 i, bool c, float[4,3] s) => (bool d, float[4,3] t, float[4,3] row) "
                           "{ t = Mul(s, grow) row = Identity(s) a = Abs(t) z = ReduceSum<keepdims = 0>(a) d = Less(z, limit) }>"])
        for stages, rows, data in self.trials():
            state, states = [v for row in rows for v in row], []
            for _ in range(9):
                states += state
                state = [1.5 * v for v in state]
                if sum(map(abs, state)) >= 40:
                    break
            arrays = self.infer(text, data, stages=stages)
            self.assertEqual(sorted(arrays), ["all", "last"])
            self.assert_array(arrays["last"], (R, C), state, "last")
            self.assert_array(arrays["all"], (len(states) // (R * C), R, C), states, "all")

    def test_rows_that_a_mask_picks(self):
        text = model_text([f"float[{R},{C}] x"], [f"int64[n,2] places", "float[n] picked", f"float[k,{C}] rows", "float[k,2] out"],
                          ["float zero = {0}", "float[3,2] w = {1, 2, 3, 4, 5, 6}", "int64 none = {0}"],
                          ["m = Greater(x, zero)", "i = NonZero(m)", "places = Transpose<perm = [1, 0]>(i)", "picked = GatherND(x, places)",
                           "first = Gather<axis = 1>(m, none)", "rows = Compress<axis = 0>(x, first)", "p = MatMul(rows, w)", "out = Relu(p)"])
        w = [[1, 2], [3, 4], [5, 6]]
        for stages, rows, data in self.trials():
            arrays = self.infer(text, data, stages=stages)
            places = [(r, c) for r in range(R) for c in range(C) if rows[r][c] > 0]
            self.assert_array(arrays["places"], (len(places), 2), [v for place in places for v in place], "places")
            self.assert_array(arrays["picked"], (len(places),), [rows[r][c] for r, c in places], "picked")
            kept = [row for row in rows if row[0] > 0]
            self.assert_array(arrays["rows"], (len(kept), C), [v for row in kept for v in row], "rows")
            self.assert_array(arrays["out"], (len(kept), 2),
                              [max(0, sum(row[i] * w[i][j] for i in range(C))) for row in kept for j in range(2)], "out")

    def test_unique_in_both_orders(self):
        for order in (0, 1):
            text = model_text([f"float[{R},{C}] x"], ["int64[n] y", "int64[n] at", f"int64[{R * C}] back", "int64[n] times"], ["float five = {5}"],
                              ["f = Mul(x, five)", "i = Cast<to = 7>(f)", f"y, at, back, times = Unique<sorted = {order}>(i)"])
            for stages, rows, data in self.trials():
                values = [int(5 * v) for row in rows for v in row]
                distinct = sorted(set(values)) if order else list(dict.fromkeys(values))
                arrays = self.infer(text, data, stages=stages)
                self.assert_array(arrays["y"], (len(distinct),), distinct, "y")
                self.assert_array(arrays["at"], (len(distinct),), [values.index(v) for v in distinct], "at")
                self.assert_array(arrays["back"], (R * C,), [distinct.index(v) for v in values], "back")
                self.assert_array(arrays["times"], (len(distinct),), [values.count(v) for v in distinct], "times")

    def test_boxes_that_do_not_overlap(self):
        boxes = [[0, 0, 2, 2], [0, 0, 2, 1.9], [3, 3, 5, 5], [3, 3.1, 5, 5], [8, 8, 9, 9]]
        text = model_text(["float[1,1,5] scores"], ["int64[n,3] kept"],
                          ["float[1,5,4] boxes = {" + ", ".join(str(v) for box in boxes for v in box) + "}", "int64 most = {3}", "float overlap = {0.5}",
                           "float least = {0.15}", "float half = {0.5}"],
                          ["s = Mul(scores, half)", "kept = NonMaxSuppression(boxes, s, most, overlap, least)"])
        for scores, kept in (([0.9, 0.8, 0.6, 0.7, 0.4], [0, 3, 4]), ([0.5, 0.8, 0.6, 0.7, 0.2], [1, 3]), ([0.1] * 5, [])):
            for stages in (1, 2):
                arrays = self.infer(text, {"scores": ("float32", (1, 1, 5), scores)}, stages=stages)
                self.assert_array(arrays["kept"], (len(kept), 3), [v for k in kept for v in (0, 0, k)], f"{scores}")

    def test_refused_where_it_cannot_be_put_together(self):
        path = self.write("model.onnxtxt", model_text([f"float[{R},{C}] x"], ["int64[2,n] y"], [], ["[which] y = NonZero(x)"]))
        self.assertRegex(self.compile(path, "--mode=infer", "--stages=1", "--microbatches=2", expect=1), "output 'y'.*--microbatches=1")
        self.assertRegex(self.compile(path, "--stages=1", "--microbatches=1", expect=1), "node 'which' \\(NonZero\\)")
        plan = self.compile(path, "--mode=infer", "--stages=1", "--microbatches=1")
        write_npz(self.folder / "data.npz", {"x": ("float32", (2 * R, C), [1.0] * (2 * R * C))})
        done = self.run_tool("piperun", plan, "--data=data.npz", "--outputs=out.npz", "--threads=1", expect=1)
        self.assertRegex(done.stderr, "output 'y'.*--batch=8")

    def test_sequences_in_and_out(self):
        text = model_text(["seq(float[2,N]) s", "optional(float[2,1]) bias"], ["seq(float[2,N]) y", "float[2,M] z"], [],
                          ["has = OptionalHasElement(bias)",
                           "b = If(has) <then_branch = a () => (r) { r = OptionalGetElement(bias) }, else_branch = c () => (r) { r = Constant<value = float[2,1] {1, 1}>() }>",
                           "y = SequenceMap<body = each (float[2,N] e) => (float[2,N] f) { f = Add(e, b) }>(s)", "z = ConcatFromSequence<axis = 1>(y)"])
        data = {"s.0": ("float32", (2, 1), [1, 2]), "s.1": ("float32", (2, 2), [3, 4, 5, 6])}
        flags = ["--dim", "s:length=2", "--dim", "s.0:1=1", "--dim", "s.1:1=2"]
        for bias, extra in (([10, 20], []), ([1, 1], ["--dim", "bias:present=0"])):
            given = {} if extra else {"bias": ("float32", (2, 1), bias)}
            for stages in (1, 2):
                arrays = self.infer(text, {**data, **given}, *flags, *extra, stages=stages)
                a, b = bias
                self.assertEqual(sorted(arrays), ["y.0", "y.1", "z"])
                self.assert_array(arrays["y.0"], (2, 1), [1 + a, 2 + b], "y.0")
                self.assert_array(arrays["y.1"], (2, 2), [3 + a, 4 + a, 5 + b, 6 + b], "y.1")
                self.assert_array(arrays["z"], (2, 3), [1 + a, 3 + a, 4 + a, 2 + b, 5 + b, 6 + b], "z")
        self.assertIn("--dim s:length=N", self.compile(self.write("model.onnxtxt", text), "--mode=infer", "--microbatches=1", expect=1))


if __name__ == "__main__":
    main()
