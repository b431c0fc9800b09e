"""--schedule=auto: never slower than a schedule with a name, within the memory, with the same numbers."""

import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from pipec_testing import Case, Weights, main, schedules, write_npz

COMMON = ["--batch=16", "--microbatches=8", "--optimizer=sgd"]


class AutoSchedule(Case):
    def setUp(self):
        super().setUp()
        self.model = self.folder / "model.onnx"
        self.run_tool("make-model", "mlp", "--layers=15", "--inputs=64", "--hidden=64", "--classes=10", "--skips", "--batch=symbolic",
                      "-o", self.model)

    def report(self, *flags):
        return json.loads(self.run_tool("pipec", self.model, *COMMON, *flags, "--dry-run", "--json").stdout)

    def test_same_numbers_as_one_device(self):
        values = Weights(3).random
        data = self.folder / "data.npz"
        write_npz(data, {"x": ("float32", (32, 64), [values.gauss(0, 1) for _ in range(32 * 64)]),
                         "labels": ("int64", (32,), [values.randrange(10) for _ in range(32)])})
        reference = self.train(self.compile(self.model, "--stages=1", *COMMON), data)
        for flags in (["--stages=3"], ["--stages=2", "--virtual-stages=2"]):
            with self.subTest(flags=flags):
                written = self.folder / "written.csv"
                plan = self.compile(self.model, *flags, "--schedule=auto", f"--emit-schedule={written}", *COMMON)
                self.assert_same_run(self.train(plan, data), reference, flags)
                # What it chose can be had again by its file.
                self.assert_same_run(self.train(self.compile(self.model, f"--schedule={written}", *COMMON), data), reference, flags)

    def test_never_slower_than_any_other(self):
        report = self.report("--stages=3", "--schedule=auto")
        candidates = [c for c in report["candidates"] if "refusal" not in c]
        self.assertEqual(report["step_time_s"], candidates[0]["step_time_s"])
        self.assertEqual([c["step_time_s"] for c in candidates], sorted(c["step_time_s"] for c in candidates))
        found = {(c["schedule"], c["virtual_stages"]): c for c in candidates}
        for schedule in schedules(ranks=3, microbatches=8):
            alone = self.report("--stages=3", f"--schedule={schedule}")
            self.assertGreaterEqual(alone["step_time_s"], report["step_time_s"] * (1 - 1e-9), schedule)
            row = found[schedule, alone["virtual_stages"]]
            self.assertEqual((row["step_time_s"], row["peak_bytes"]), (alone["step_time_s"], alone["peak_bytes"]), schedule)

    def test_the_stages_of_the_best_named_one_are_ordered_anew(self):
        report = self.report("--stages=3", "--schedule=auto")
        self.assertEqual(report["schedule"], "auto")
        best = next(c for c in report["candidates"] if c["schedule"] != "auto")
        self.assertLess(report["step_time_s"], best["step_time_s"])
        alone = self.report("--stages=3", f"--schedule={best['schedule']}", f"--virtual-stages={best['virtual_stages']}")
        self.assertEqual([s["nodes"] for s in report["stages"]], [s["nodes"] for s in alone["stages"]])
        self.assertGreaterEqual(report["candidates"][0]["order_s"], report["candidates_bound_s"])
        self.assertGreater(report["candidates_bound_s"], 0)

    def test_what_no_order_can_beat_is_known_of_a_named_one(self):
        report = self.report("--stages=1", "--schedule=auto")
        self.assertNotEqual(report["schedule"], "auto")
        self.assertAlmostEqual(report["candidates_bound_s"] / report["candidates"][0]["order_s"], 1)

    def test_keeps_to_the_memory(self):
        free = self.report("--stages=3", "--schedule=auto")
        least = min(c["peak_bytes"] for c in free["candidates"] if "refusal" not in c)
        self.assertLess(least, free["peak_bytes"])
        limit = (least + free["peak_bytes"]) // 2
        tight = self.report("--stages=3", "--schedule=auto", f"--memory={limit}")
        self.assertLessEqual(tight["peak_bytes"], limit)
        self.assertGreaterEqual(tight["step_time_s"], free["step_time_s"])
        self.assertTrue(any("refusal" in c or c["peak_bytes"] <= limit for c in tight["candidates"]))
        refusal = self.run_tool("pipec", self.model, *COMMON, "--stages=3", "--schedule=auto", "--memory=10kB", "--dry-run", expect=1).stderr
        self.assertIn("is 10000 (--memory);", refusal)

    def test_uneven_stages_gain(self):
        # First and last stage of a small transformer do more than the others: no schedule with a name knows that.
        self.run_tool("make-model", "gpt", "--layers=3", "--hidden=64", "--heads=4", "--sequence=32", "--vocabulary=800", "-o", self.model)
        command = ("pipec", self.model, "--stages=3", "--microbatches=6", "--schedule=auto", "--dry-run")
        report = json.loads(self.run_tool(*command, "--json").stdout)
        self.assertEqual(report["schedule"], "auto")
        self.assertGreater(report["candidates_bound_s"], 0)
        self.assertGreaterEqual(report["candidates"][0]["order_s"], report["candidates_bound_s"] * (1 - 1e-9))
        said = self.run_tool(*command)
        self.assertIn("what no order of such stages can beat", said.stdout)
        self.assertEqual(said.stderr.splitlines()[:2], [f"trying {what}, 3 ranks, 6 microbatches"
                                                        for what in ("schedules with a name", "orders that a search finds")])
        named = min(c["step_time_s"] for c in report["candidates"] if c["schedule"] != "auto" and "refusal" not in c)
        self.assertLess(report["step_time_s"], named)
        # Each row is what other flags give: the second is another plan than the first.
        flags = [tuple(c[key] for key in ("schedule", "ranks", "microbatches", "virtual_stages")) for c in report["candidates"]]
        self.assertEqual(len(set(flags)), len(flags))

    def test_for_inference_there_is_one(self):
        report = json.loads(self.run_tool("pipec", self.model, "--batch=16", "--microbatches=8", "--stages=3", "--schedule=auto",
                                          "--mode=infer", "--dry-run", "--json").stdout)
        self.assertEqual(report["schedule"], "infer")

    def test_passes_alone_do_not_choose(self):
        self.assertIn("only pipec does", self.run_tool("pipec-opt", self.model, "--passes=partition-stages", "--schedule=auto", expect=1).stderr)


if __name__ == "__main__":
    main()
