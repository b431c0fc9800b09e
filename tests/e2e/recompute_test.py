"""--recompute: the same numbers from less memory, and only where memory asks for it."""

import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from pipec_testing import Case, Weights, main, most_needed, schedules, write_npz

MODELS = {
    "mlp": ["mlp", "--layers=24", "--inputs=16", "--hidden=16", "--classes=4", "--skips"],
    "gpt": ["gpt", "--layers=4", "--hidden=16", "--heads=2", "--sequence=8", "--vocabulary=12", "--dropout=0.2"],
}
COMMON = ["--microbatches=4", "--batch=512"]


class RecomputeForward(Case):
    def model(self, kind):
        path = self.folder / f"{kind}.onnx"
        self.run_tool("make-model", *MODELS[kind], "--batch=symbolic", "--seed=1", "-o", path)
        return path

    def data(self, kind):
        values, path = Weights(7).random, self.folder / f"{kind}.npz"
        if kind == "gpt":
            tokens = [values.randrange(12) for _ in range(1024 * 8)]
            write_npz(path, {"input_ids": ("int64", (1024, 8), tokens), "labels": ("int64", (1024, 8), tokens[1:] + [0])})
        else:
            write_npz(path, {"x": ("float32", (1024, 16), [values.gauss(0, 1) for _ in range(1024 * 16)]),
                             "labels": ("int64", (1024,), [values.randrange(4) for _ in range(1024)])})
        return path

    def report(self, model, *flags):
        return json.loads(self.run_tool("pipec", model, *COMMON, *flags, "--dry-run", "--json").stdout)

    def test_the_same_numbers(self):
        for kind in MODELS:
            model, data = self.model(kind), self.data(kind)
            flags = ["--epochs=2", "--clip-norm=1", "--lr=0.01"]
            reference = self.train(self.compile(model, "--stages=1", "--recompute=none", *COMMON), data, *flags)
            self.assertEqual(len(set(reference.losses)), 4)
            for stages in (1, 2, 4):
                for schedule in schedules(stages, microbatches=4):
                    with self.subTest(model=kind, schedule=schedule, stages=stages):
                        plan = self.compile(model, f"--stages={stages}", f"--schedule={schedule}", "--recompute=all", *COMMON)
                        self.assert_same_run(self.train(plan, data, *flags), reference, f"{kind} {schedule} P={stages}")

    def test_the_same_numbers_where_some_of_it_runs_again(self):
        for kind in MODELS:
            model, data = self.model(kind), self.data(kind)
            reference = self.train(self.compile(model, "--stages=1", "--recompute=none", *COMMON), data, "--lr=0.01")
            for schedule, stages in (("gpipe", 1), ("1f1b", 2), ("zb-v", 2)):
                flags = [f"--schedule={schedule}", f"--stages={stages}"]
                kept, again = (most_needed(self.report(model, *flags, f"--recompute={how}")) for how in ("none", "all"))
                with self.subTest(model=kind, schedule=schedule, stages=stages):
                    plan = self.compile(model, *flags, f"--memory={(kept + again) // 2}", *COMMON)
                    self.assert_same_run(self.train(plan, data, "--lr=0.01"), reference, f"{kind} {schedule} P={stages}")

    def test_less_memory_more_time(self):
        for kind in MODELS:
            for stages in (1, 2):
                for schedule in ("gpipe", "1f1b"):
                    with self.subTest(model=kind, stages=stages, schedule=schedule):
                        flags = [f"--stages={stages}", f"--schedule={schedule}"]
                        kept = self.report(self.model(kind), *flags, "--recompute=none")
                        again = self.report(self.model(kind), *flags, "--recompute=all")
                        self.assertLess(again["peak_bytes"], 0.8 * kept["peak_bytes"])
                        self.assertGreater(again["step_time_s"], kept["step_time_s"])
                        self.assertGreaterEqual(again["bound_ratio"], 1)

    def test_auto_only_where_memory_asks_for_it(self):
        model = self.model("gpt")
        flags = ["--stages=2", "--schedule=gpipe"]
        kept, again = self.report(model, *flags, "--recompute=none"), self.report(model, *flags, "--recompute=all")
        plenty = self.report(model, *flags, f"--memory={most_needed(kept)}")
        self.assertEqual(plenty["peak_bytes"], kept["peak_bytes"])
        between = (most_needed(kept) + most_needed(again)) // 2
        scarce = self.report(model, *flags, f"--memory={between}")
        self.assertLessEqual(most_needed(scarce), between)
        # What fits with everything recomputed fits, and the more memory there is, the less is computed again.
        step = max(1, (kept["peak_bytes"] - again["peak_bytes"]) // 7)
        times = []
        for memory in range(most_needed(again), most_needed(kept), step):
            report = self.report(model, *flags, f"--memory={memory}")
            self.assertLessEqual(most_needed(report), memory)
            times.append(report["step_time_s"])
        self.assertLessEqual(max(times), 1.001 * again["step_time_s"])
        self.assertGreater(min(times), kept["step_time_s"])
        self.assertLess(times[-1], kept["step_time_s"] + 0.5 * (again["step_time_s"] - kept["step_time_s"]))
        self.assertGreaterEqual(len(set(times)), 3, "some of the forward nodes, more or less of them")
        refused = self.run_tool("pipec", model, *COMMON, *flags, f"--memory={between}", "--recompute=none", "--dry-run", expect=1)
        self.assertIn("--recompute=", refused.stderr)


if __name__ == "__main__":
    main()
