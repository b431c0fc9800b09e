"""Schedules that split the backward pass do not wait for the norms of all ranks before they update: they validate the update in
the next step, and take it back if it was wrong. Losses, norms and parameters are those of one rank, which has nothing to wait
for, whether updates are right or not."""

import json
import math
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from pipec_testing import Case, Weights, listed_schedules, main, most_needed, takes, write_npz

WIDTH, CLASSES, MICROBATCHES, BATCH, STEPS = 6, 3, 8, 16, 12
WAITING = "--disable-pass=split-validation"


def ahead_schedules(ranks):
    return [name for name, row in listed_schedules().items() if "ahead" in row["update_rule"] and
            takes(row, ranks, row["default_virtual_stages"], MICROBATCHES)]


def expected(held):
    """(updates ahead, updates redone), if a step's assumption held or not: the update goes ahead where the last one held."""
    ahead = [t for t in range(1, len(held)) if held[t - 1]]
    return len(ahead), sum(not held[t] for t in ahead)


class LateValidation(Case):
    def model(self, *flags):
        path = self.folder / "model.onnx"
        self.run_tool("make-model", "mlp", "--layers=9", f"--inputs={WIDTH}", "--hidden=8", f"--classes={CLASSES}",
                      "--batch=symbolic", "--seed=1", *flags, "-o", path)
        return path

    def data(self, steps=STEPS, bad=None, value=math.nan, ignored=()):
        """`bad`: a step with `value` in its last sample. `ignored`: steps of which one label does not count."""
        random = Weights(7).random
        x = [random.gauss(0, 1) for _ in range(steps * BATCH * WIDTH)]
        labels = [random.randrange(CLASSES) for _ in range(steps * BATCH)]
        if bad is not None:
            x[(bad + 1) * BATCH * WIDTH - 1] = value
        for step in ignored:
            labels[step * BATCH] = -100
        path = self.folder / "data.npz"
        write_npz(path, {"x": ("float32", (steps * BATCH, WIDTH), x), "labels": ("int64", (steps * BATCH,), labels)})
        return path

    def plan(self, model, *flags):
        return self.compile(model, f"--microbatches={MICROBATCHES}", f"--batch={BATCH}", *flags)

    def run_plan(self, plan, data, *flags, expect=0):
        """(metrics, parameters, what piperun printed, its errors)."""
        self.count += 1
        metrics, export = self.folder / f"metrics{self.count}.jsonl", self.folder / f"export{self.count}"
        done = self.run_tool("piperun", plan, f"--data={data}", f"--metrics={metrics}", f"--export={export}", "--threads=1",
                             "--timeout=30", "--json", *flags, expect=expect)
        parameters = export / "model.safetensors"
        return (metrics.read_bytes(), parameters.read_bytes() if expect == 0 else None,
                json.loads(done.stdout) if expect == 0 else None, done.stderr)

    def assert_as_one_rank(self, model, data, run_flags, held_of, *plan_flags, ranks=(2, 3, 4)):
        """`held_of`: rows of the metrics -> whether each step's assumption held."""
        reference = self.run_plan(self.plan(model, "--stages=1", *plan_flags), data, *run_flags)
        self.assertEqual(reference[2]["updates_ahead"], 0)
        rows = [json.loads(line) for line in reference[0].splitlines()]
        ahead, redone = expected(held_of(rows))
        for stages in ranks:
            names = ahead_schedules(stages)
            self.assertTrue({"zb-h1", "zb-h2", "zb-v", "v-half", "v-min"} <= set(names))
            for name in names:
                with self.subTest(schedule=name, stages=stages, run_flags=run_flags):
                    run = self.run_plan(self.plan(model, f"--stages={stages}", f"--schedule={name}", *plan_flags), data, *run_flags)
                    self.assertEqual(run[0], reference[0], "metrics differ")
                    self.assertEqual(run[1], reference[1], "parameters differ")
                    self.assertEqual((run[2]["updates_ahead"], run[2]["updates_redone"]), (ahead, redone))
        return ahead, redone

    @staticmethod
    def unclipped(limit):
        # The first step does not know yet how much the loss weighs.
        return lambda rows: [step > 0 and row["grad_norm"] <= limit for step, row in enumerate(rows)]

    def some_limit(self, plan, data):
        """That clips about a third of the steps."""
        norms = sorted(json.loads(line)["grad_norm"] for line in self.run_plan(plan, data, "--lr=0.02")[0].splitlines())
        return sum(norms[STEPS * 2 // 3 - 1 : STEPS * 2 // 3 + 1]) / 2

    def test_clipped_never_sometimes_always(self):
        model, data = self.model(), self.data()
        plan = self.plan(model, "--stages=1")
        limit = self.some_limit(plan, data)
        never, _ = self.assert_as_one_rank(model, data, ["--lr=0.02"], self.unclipped(math.inf))
        self.assertEqual(never, STEPS - 2)
        some = self.assert_as_one_rank(model, data, ["--lr=0.02", f"--clip-norm={limit}"], self.unclipped(limit))
        self.assertTrue(0 < some[1] < some[0], f"both ways of going on are to be seen: {some}")
        always = self.assert_as_one_rank(model, data, ["--lr=0.02", "--clip-norm=0.001"], self.unclipped(0.001), ranks=(3,))
        self.assertEqual(always, (0, 0), "where it was wrong just now the next update waits")

    def test_every_optimizer_takes_its_state_back(self):
        model, data = self.model(), self.data()
        for optimizer in ("sgd", "momentum", "adam", "adagrad"):
            flags = [f"--optimizer={optimizer}", "--stages=1"]
            limit = self.some_limit(self.plan(model, *flags), data)
            done = self.assert_as_one_rank(model, data, ["--lr=0.02", f"--clip-norm={limit}"], self.unclipped(limit), flags[0],
                                           ranks=(2,))
            self.assertGreater(done[1], 0)

    def test_the_weight_of_the_loss_changes(self):
        ignored = (4, 5, 9)
        weights = [BATCH - (step in ignored) for step in range(STEPS)]
        held = [step > 0 and weights[step] == weights[step - 1] for step in range(STEPS)]
        done = self.assert_as_one_rank(self.model(), self.data(ignored=ignored), ["--lr=0.02"], lambda rows: held, ranks=(2, 4))
        self.assertGreater(done[1], 0)

    def test_float16_skips_steps(self):
        model, bad = self.model(), 5
        data = self.data(bad=bad, value=math.inf)
        held = [step not in (0, bad) for step in range(STEPS)]
        done = self.assert_as_one_rank(model, data, ["--lr=0.01"], lambda rows: held, "--precision=fp16", ranks=(2, 4))
        self.assertEqual(done[1], 1)

    def test_a_step_that_is_not_finite_ends_the_run(self):
        model, bad = self.model(), 6
        data = self.data(bad=bad)
        for name in ahead_schedules(3):
            flags = ["--stages=3", f"--schedule={name}"]
            run = self.run_plan(self.plan(model, *flags), data, expect=1)
            waits = self.run_plan(self.plan(model, *flags, WAITING), data, expect=1)
            self.assertEqual(run[0], waits[0])
            self.assertEqual(len(run[0].splitlines()), bad)
            fault = [next(line for line in text.splitlines() if f"step {bad + 1}:" in line) for text in (run[3], waits[3])]
            self.assertEqual(fault[0].replace(str(self.folder), ""), fault[1].replace(str(self.folder), ""))
            self.assertIn("nothing was updated", fault[0])

    def test_evaluation_sees_the_right_parameters(self):
        model, data = self.model(), self.data()
        limit = 0.8
        flags = ["--lr=0.02", f"--eval-data={data}", "--eval-every=3", f"--clip-norm={limit}"]
        reference = self.run_plan(self.plan(model, "--stages=1"), data, *flags)[2]["evaluations"]
        self.assertEqual(len(reference), 1 + STEPS // 3)
        for name in ("zb-h2", "zb-v"):
            run = self.run_plan(self.plan(model, "--stages=4", f"--schedule={name}"), data, *flags)[2]
            self.assertEqual(run["evaluations"], reference)
            self.assertGreater(run["updates_ahead"], 0)

    def test_steps_apart_give_the_same(self):
        model, data = self.model(), self.data()
        plan = self.plan(model, "--stages=4", "--schedule=zb-v")
        ahead = self.run_plan(plan, data, "--clip-norm=0.5")
        for flag in ("--check-finite", f"--profile={self.folder / 'profile.json'}"):
            apart = self.run_plan(plan, data, "--clip-norm=0.5", flag)
            self.assertEqual(apart[2]["updates_ahead"], 0)
            self.assertEqual(apart[:2], ahead[:2])

    def test_the_trace_shows_what_was_undone(self):
        model, data = self.model(), self.data(bad=5, value=math.inf)
        plan = self.plan(model, "--stages=4", "--schedule=zb-h2", "--precision=fp16")
        for steps, undone in ((4, False), (8, True)):
            trace = self.folder / f"trace{steps}.json"
            self.run_plan(plan, data, "--lr=0.01", f"--steps={steps}", f"--trace={trace}")
            events = [e for e in json.loads(trace.read_text())["traceEvents"] if e.get("cat") == "undone"]
            self.assertEqual(bool(events), undone)
            if undone:
                names = {e["name"] for e in events if e["pid"] == 0}
                self.assertTrue({"0UPDATE", "0F0"} <= names, names)
                self.assertFalse(any(re.match(r"\d+[BIW]\d", name) for name in names), names)

    def test_waits_where_memory_is_short(self):
        model = self.model()
        flags = ["--stages=4", "--schedule=zb-h2", "--recompute=none", f"--microbatches={MICROBATCHES}", f"--batch={BATCH}", "--json"]
        report = lambda *more: json.loads(self.run_tool("pipec", model, *flags, "--dry-run", *more).stdout)
        ahead, waiting = most_needed(report()), most_needed(report(WAITING))
        self.assertGreater(ahead, waiting)
        self.assertEqual(most_needed(report(f"--memory={(ahead + waiting) // 2}")), waiting)

    def test_the_modelled_step_is_shorter(self):
        model = self.folder / "wide.onnx"
        self.run_tool("make-model", "mlp", "--layers=16", "--inputs=64", "--hidden=64", "--classes=64", "--batch=32", "-o", model)
        for name in ("zb-h2", "zb-v"):
            flags = ["--stages=4", f"--schedule={name}", "--microbatches=12", "--json", "--dry-run"]
            times = [json.loads(self.run_tool("pipec", model, *flags, *more).stdout)["step_time_s"] for more in ([], [WAITING])]
            self.assertLess(times[0], 0.99 * times[1])


if __name__ == "__main__":
    main()
