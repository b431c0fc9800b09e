"""Samples are counted right wherever the batch axis lies: numbers depend neither on the stages nor on the microbatches."""

import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from pipec_testing import Case, Weights, floats, main, model_text, read_npz, relative_difference, write_npz

BATCH, SAMPLES, T, H, V = 8, 24, 5, 6, 7


def merged_model(own_loss=False):
    """A text model that works on [B*T,H] and puts out logits [B*T,V], or its loss, as exporters write it."""
    w = Weights(3)
    inputs, outputs, loss = [f"int64[N,{T}] ids"], [f"float[R,{V}] logits"], []
    if own_loss:
        inputs, outputs = inputs + [f"int64[N,{T}] labels"], ["float loss"]
        loss = ["flat = Constant<value_ints = [-1]>()", "t = Reshape(labels, flat)", "loss = SoftmaxCrossEntropyLoss(logits, t)"]
    return model_text(
        inputs, outputs,
        [w.tensor("table", V, H, scale=1), w.tensor("up", H, 4 * H), w.tensor("down", 4 * H, H), w.tensor("scale", H),
         w.tensor("bias", H), w.tensor("head", H, V), "float r = {0.3}", f"int64[2] rows = {{-1, {H}}}",
         f"int64[3] cube = {{-1, {T}, {H}}}"],
        ["e = Gather(table, ids)", "f = Reshape(e, rows)", "d0 = Dropout(f, r)", "n = LayerNormalization(d0, scale, bias)",
         "u = MatMul(n, up)", "g = Gelu(u)", "d1 = Dropout(g, r)", "o = MatMul(d1, down)", "s = Add(f, o)",
         "c = Reshape(s, cube)", "d2 = Dropout(c, r)", "k = Reshape(d2, rows)", "logits = MatMul(k, head)", *loss])


class MergedBatchAxis(Case):
    def data(self, samples=SAMPLES, name="data.npz"):
        values, path = Weights(7).random, self.folder / name
        draw = lambda: [values.randrange(V) for _ in range(samples * T)]
        write_npz(path, {"ids": ("int64", (samples, T), draw()), "labels": ("int64", (samples, T), draw())})
        return path

    def plan(self, stages, microbatches, *flags):
        return self.compile(self.folder / "model.onnxtxt", f"--stages={stages}", f"--microbatches={microbatches}",
                            f"--batch={BATCH}", *flags)

    def test_numbers_do_not_depend_on_stages_or_microbatches(self):
        self.write("model.onnxtxt", merged_model())
        data, flags = self.data(), ["--epochs=2", "--seed=3", "--lr=0.01"]
        runs = {m: self.train(self.plan(1, m), data, *flags) for m in (1, 2, 4)}
        self.assertEqual(len(set(runs[1].losses)), 6)
        for m, run in runs.items():
            self.assert_same_run(self.train(self.plan(2, m), data, *flags), run, f"P=2 M={m}")
            for got, want in zip(run.losses, runs[1].losses):
                self.assertAlmostEqual(got / want, 1, delta=1e-6)
        other = self.train(self.plan(1, 4), data, "--epochs=2", "--seed=4", "--lr=0.01")
        self.assertGreater(abs(other.losses[0] / runs[4].losses[0] - 1), 1e-4, "dropout does nothing")

    def test_evaluation_leaves_out_padding(self):
        self.write("model.onnxtxt", merged_model())
        data, uneven = self.data(), self.data(13, "uneven.npz")
        reports = []
        for microbatches in (BATCH, 4, 1):
            done = self.run_tool("piperun", self.plan(1, microbatches), f"--data={data}", f"--eval-data={uneven}",
                                 "--steps=1", "--json")
            reports.append(evaluations(done))
        self.assertEqual(len(reports[0]), 2)
        for report in reports[1:]:
            for got, want in zip(report, reports[0]):
                self.assertAlmostEqual(got / want, 1, delta=1e-5)

    def test_a_loss_inside_the_model_is_the_same(self):
        data, uneven = self.data(), self.data(13, "uneven.npz")
        results = []
        for own_loss in (False, True):
            self.write("model.onnxtxt", merged_model(own_loss))
            plan = self.plan(2, 4)
            self.assertEqual(json.loads((plan / "manifest.json").read_text())["labels"], "labels")
            done = self.run_tool("piperun", plan, f"--data={data}", f"--eval-data={uneven}", "--json")
            results.append({key: value for key, value in json.loads(done.stdout).items() if "loss" in key or key == "evaluations"})
        self.assertEqual(results[0], results[1])

    def test_inference_puts_every_sample_in_its_place(self):
        self.write("model.onnxtxt", merged_model())
        data, results = self.data(13, "uneven.npz"), []
        for microbatches in (BATCH, 2, 1):
            out = self.folder / f"out{microbatches}.npz"
            self.run_tool("piperun", self.plan(2, microbatches, "--mode=infer"), f"--data={data}", f"--outputs={out}")
            descr, shape, data_bytes = read_npz(out)["logits"]
            self.assertEqual(shape, (13 * T, V))
            results.append(floats(data_bytes))
        for result in results[1:]:
            self.assertLess(relative_difference(result, results[0]), 1e-6)


def evaluations(done):
    """Losses of the evaluations of a run with --json."""
    return [report["loss"] for report in json.loads(done.stdout)["evaluations"]]


class SumLoss(Case):
    """The loss sum((x w)^2) / 2: of the batch, whatever the number of microbatches."""

    def write_model(self, reduce="ReduceSum<keepdims = 0>(q)"):
        values = Weights(4).random
        self.x = [[round(values.gauss(0, 1), 4) for _ in range(4)] for _ in range(SAMPLES)]
        self.w = [[round(values.gauss(0, 1), 4) for _ in range(3)] for _ in range(4)]
        text = ", ".join(f"{v:.4f}" for row in self.w for v in row)
        self.data = self.folder / "data.npz"
        write_npz(self.data, {"x": ("float32", (SAMPLES, 4), [v for row in self.x for v in row])})
        return self.write("sum.onnxtxt", model_text(
            ["float[N,4] x"], ["float loss"], [f"float[4,3] w = {{{text}}}", "float half = {0.5}"],
            ["y = Gemm(x, w)", "q = Mul(y, y)", f"s = {reduce}", "loss = Mul(s, half)"]))

    def by_hand(self, steps, rate):
        """Gradient descent in float64; sample 0 comes first."""
        losses, w = [], [row[:] for row in self.w]
        for step in range(steps):
            x = self.x[step * BATCH : (step + 1) * BATCH]
            y = [[sum(a * w[i][k] for i, a in enumerate(row)) for k in range(3)] for row in x]
            losses.append(sum(v * v for row in y for v in row) / 2)
            gradient = [[sum(x[n][i] * y[n][k] for n in range(BATCH)) for k in range(3)] for i in range(4)]
            w = [[w[i][k] - rate * gradient[i][k] for k in range(3)] for i in range(4)]
        return losses, w

    def loss_of(self, samples):
        return sum(sum(a * self.w[i][k] for i, a in enumerate(row)) ** 2 for row in self.x[:samples] for k in range(3)) / 2

    def test_loss_and_parameters_are_the_batch_sum_by_hand(self):
        model = self.write_model()
        losses, w = self.by_hand(3, 0.01)
        for microbatches in (1, 2, 4):
            plan = self.compile(model, "--stages=1", f"--microbatches={microbatches}", f"--batch={BATCH}", "--optimizer=sgd")
            run = self.train(plan, self.data, "--lr=0.01", "--weight-decay=0", "--epochs=1")
            self.assertEqual(len(run.losses), 3)
            for got, want in zip(run.losses, losses):
                self.assertAlmostEqual(got / want, 1, delta=1e-6)
            self.assertLess(relative_difference(floats(run.tensors["w"][2]), [v for row in w for v in row]), 1e-6)

    def evaluate(self, model, microbatches, samples):
        data = self.folder / "eval.npz"
        write_npz(data, {"x": ("float32", (samples, 4), [v for row in self.x[:samples] for v in row])})
        plan = self.compile(model, "--stages=1", f"--microbatches={microbatches}", f"--batch={BATCH}")
        done = self.run_tool("piperun", plan, f"--data={self.data}", f"--eval-data={data}", "--steps=1", "--json", expect=None)
        return done, [] if done.returncode else evaluations(done)

    def test_evaluation_of_an_own_loss_takes_whole_microbatches_and_says_so(self):
        for reduce, count in (("ReduceSum<keepdims = 0>(q)", lambda n: 1), ("ReduceMean<keepdims = 0>(q)", lambda n: 3 * n)):
            model = self.write_model(reduce)
            for microbatches, samples, whole in ((1, 16, 16), (2, 14, 12), (4, 13, 12), (8, 13, 13)):
                with self.subTest(reduce=reduce, microbatches=microbatches):
                    done, losses = self.evaluate(model, microbatches, samples)
                    self.assertEqual(done.returncode, 0, done.stderr)
                    self.assertAlmostEqual(losses[0] * count(whole) / self.loss_of(whole), 1, delta=1e-5)
                    rest = samples - whole
                    note = f"the last {rest} sample{'s' if rest > 1 else ''}, no whole microbatch of {BATCH // microbatches}, are left out"
                    self.assertEqual(note in done.stdout + done.stderr, samples != whole)
            done, _ = self.evaluate(model, 1, 5)
            self.assertEqual(done.returncode, 1)
            self.assertIn("evaluation needs whole microbatches: 5 samples, a microbatch has 8", done.stderr)


if __name__ == "__main__":
    main()
