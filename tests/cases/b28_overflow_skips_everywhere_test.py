"""B28: fp16 with dynamic loss scaling. A gradient that overflows anywhere, on one rank and in one microbatch, skips the step on
every rank: parameters, moments and the count of updates stay, and the scale is the same for all."""

import json
import math
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from pipec_testing import Case, Weights, floats, main, model_text, relative_difference, schedules, write_npz

WIDTH, CLASSES, DEPTH, BATCH, MICROBATCHES, STEPS = 4, 3, 6, 16, 8, 5
BAD = 1  # the second step


class OverflowSkipsEverywhere(Case):
    def model(self):
        """g comes in behind h. Where it is large, the gradient of p overflows and no other does."""
        weights = Weights(2)
        return self.write("model.onnxtxt", model_text(
            [f"float[N,{WIDTH}] x", f"float[N,{WIDTH}] g"], [f"float[N,{CLASSES}] logits"],
            [*(weights.tensor(f"v{k}", WIDTH, WIDTH) for k in range(DEPTH)), weights.tensor("w1", WIDTH, CLASSES),
             weights.tensor("e", WIDTH, WIDTH), weights.tensor("p", WIDTH, scale=1e-2), weights.tensor("w2", WIDTH, CLASSES)],
            [f"m{k} = MatMul({f'h{k}' if k else 'x'}, v{k})\n  h{k + 1} = Tanh(m{k})" for k in range(DEPTH)] +
            [f"a = MatMul(h{DEPTH}, w1)", "u = MatMul(g, e)", "q = Mul(u, p)", "b = MatMul(q, w2)", "logits = Add(a, b)"]))

    def data(self, fault, without_bad=False):
        """fault: "gradient" makes p's gradient infinite and nothing else, "nan" puts NaN into the last sample."""
        random = Weights(5).random
        x = [random.gauss(0, 1) for _ in range(STEPS * BATCH * WIDTH)]
        g = [random.gauss(0, 1) for _ in range(STEPS * BATCH * WIDTH)]
        labels = [random.randrange(CLASSES) for _ in range(STEPS * BATCH)]
        if fault == "gradient":
            g[(BAD * BATCH + 2) * WIDTH + 1] = 800
        elif fault == "nan":
            x[(BAD * BATCH + BATCH - 1) * WIDTH] = math.nan
        if without_bad:
            del x[BAD * BATCH * WIDTH : (BAD + 1) * BATCH * WIDTH], g[BAD * BATCH * WIDTH : (BAD + 1) * BATCH * WIDTH]
            del labels[BAD * BATCH : (BAD + 1) * BATCH]
        n = len(labels)
        path = self.folder / f"{fault}{n}.npz"
        write_npz(path, {"x": ("float32", (n, WIDTH), x), "g": ("float32", (n, WIDTH), g), "labels": ("int64", (n,), labels)})
        return path

    def plan(self, model, stages, *flags):
        return self.compile(model, f"--stages={stages}", f"--microbatches={MICROBATCHES}", f"--batch={BATCH}", "--precision=fp16",
                            "--optimizer=adam", *flags)

    def test_all_ranks_skip_the_same_step(self):
        model = self.model()
        for fault in ("gradient", "nan"):
            data = self.data(fault)
            reference = self.train(self.plan(model, 1), data, "--lr=0.01")
            rows = [json.loads(line) for line in reference.metrics.splitlines()]
            self.assertEqual([row["skipped_steps"] for row in rows], [0, 1, 1, 1, 1], fault)
            self.assertEqual([row["loss_scale"] for row in rows], [65536, 65536, 32768, 32768, 32768], fault)
            self.assertEqual([row["grad_norm"] is None for row in rows], [False, True, False, False, False], fault)
            self.assertEqual(rows[BAD]["loss"] is None, fault == "nan")
            self.assertLess(rows[0]["loss"], 2, "the loss is that of the model, not scaled")
            for schedule in schedules():
                for stages in (2, 4):
                    with self.subTest(fault=fault, schedule=schedule, stages=stages):
                        run = self.train(self.plan(model, stages, f"--schedule={schedule}"), data, "--lr=0.01")
                        self.assert_same_run(run, reference, f"{fault} {schedule} P={stages}")

    def test_a_skipped_step_leaves_no_trace(self):
        model, data = self.model(), self.data("gradient")
        plan = self.plan(model, 2, f"--cut=h{DEPTH}")
        before, after = (self.train(plan, data, "--lr=0.01", steps=steps) for steps in (1, 2))
        self.assertEqual(before.export, after.export, "the skipped step changed parameters")
        # Moments and the count of updates: the steps after it are those of a run that never met the batch.
        run = self.train(plan, data, "--lr=0.01")
        never = self.train(plan, self.data("gradient", without_bad=True), "--lr=0.01")
        self.assertEqual(len(never.losses), STEPS - 1)
        for name, (_, _, values) in never.tensors.items():
            self.assertLess(relative_difference(floats(run.tensors[name][2]), floats(values)), 1e-4, name)
        for got, want in zip(run.losses[BAD + 1 :], never.losses[BAD:]):
            self.assertAlmostEqual(got, want, delta=1e-3 * want)

    def test_check_finite_says_where_it_overflowed(self):
        plan = self.plan(self.model(), 2, f"--cut=h{DEPTH}")
        done = self.run_tool("piperun", plan, f"--data={self.data('gradient')}", "--check-finite")
        self.assertRegex(done.stderr, r"step 2 skipped, not all its values are finite: the first such value came in stage 1, "
                                      r"node 'Mul.*' \(Mul\), B of microbatch 1\n")

    def test_only_fp16_is_scaled(self):
        model, data = self.model(), self.data("gradient")
        for precision in ("fp32", "bf16"):
            plan = self.compile(model, "--stages=2", f"--microbatches={MICROBATCHES}", f"--batch={BATCH}", f"--precision={precision}")
            rows = [json.loads(line) for line in self.train(plan, data).metrics.splitlines()]
            self.assertEqual(len(rows), STEPS)
            self.assertNotIn("loss_scale", rows[0])

    def test_what_no_scale_helps_is_named(self):
        random = Weights(5).random
        x = [random.gauss(0, 1) for _ in range(BATCH * WIDTH)]
        x[5] = math.nan
        path = self.folder / "always.npz"
        write_npz(path, {"x": ("float32", (BATCH, WIDTH), x), "g": ("float32", (BATCH, WIDTH), x),
                         "labels": ("int64", (BATCH,), [0] * BATCH)})
        metrics = self.folder / "metrics.jsonl"
        done = self.run_tool("piperun", self.plan(self.model(), 2), f"--data={path}", "--steps=100", f"--metrics={metrics}", expect=1)
        self.assertIn("smaller loss scales did not help", done.stderr)
        self.assertIn("such values were there before the step, first used in stage 0", done.stderr)
        self.assertEqual(len(metrics.read_text().splitlines()), 29, "halved from 65536 until below 1e-4")


if __name__ == "__main__":
    main()
