"""--stages=auto and --microbatches=auto: the two best plans of all that explicit flags give, within the memory, or why none."""

import json
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from pipec_testing import ROOT, Case, Weights, main, model_text

DEVICE = ["--device=h200", "--optimizer=sgd"]
RANKS = range(1, 9)  # of one host
POWERS = (1, 2, 4, 8, 16, 32, 64)


def flags_of(row):
    return [f"--stages={row['ranks']}", f"--microbatches={row['microbatches']}", f"--schedule={row['schedule']}",
            f"--virtual-stages={row['virtual_stages']}"]


def sample_seconds(row):
    return row["step_time_s"] / row["batch"]


class AutoPlan(Case):
    def setUp(self):
        super().setUp()
        self.model = self.folder / "model.onnx"
        self.run_tool("make-model", "mlp", "--layers=6", "--inputs=32", "--hidden=32", "--classes=4", "--batch=symbolic", "-o", self.model)

    def report(self, *flags, expect=0):
        """What --json says; of what is refused the message, or None if either is expected."""
        done = self.run_tool("pipec", self.model, *DEVICE, *flags, "--dry-run", "--json", expect=expect)
        if done.returncode == 0:
            return json.loads(done.stdout)
        return done.stderr if expect else None

    def by_hand(self, ranks, microbatches, *flags):
        """What each pair gives, None if it is refused."""
        return {(p, m): self.report(f"--stages={p}", f"--microbatches={m}", *flags, expect=None) for p in ranks for m in microbatches}

    def assert_two_best(self, report, reports, what):
        fits = {pair: by_hand for pair, by_hand in reports.items() if by_hand}
        best = sorted(fits.values(), key=sample_seconds)
        found = [row for row in report["candidates"] if "refusal" not in row]
        for place in range(2):
            self.assertAlmostEqual(sample_seconds(found[place]) / sample_seconds(best[place]), 1, delta=1e-9, msg=f"{what}, place {place}")
        self.assertEqual((report["ranks"], report["microbatches"], report["step_time_s"]),
                         (found[0]["ranks"], found[0]["microbatches"], found[0]["step_time_s"]), what)
        for row in found:
            alone = fits[row["ranks"], row["microbatches"]]
            self.assertEqual((row["step_time_s"], row["peak_bytes"], row["batch"]),
                             (alone["step_time_s"], alone["peak_bytes"], alone["batch"]), what)
        self.assertGreater(report["candidates_passed_over"], 0, what)
        self.assertLess(len(report["candidates"]), len(reports), what)

    def test_the_two_best_are_those_of_all(self):
        for batch, microbatches in (["--batch=16"], POWERS[:5]), ([], POWERS):
            self.assert_two_best(self.report("--stages=auto", "--microbatches=auto", *batch), self.by_hand(RANKS, microbatches, *batch), batch)

    def test_one_of_the_two(self):
        reports = self.by_hand(RANKS, [4])
        report = self.report("--stages=auto", "--microbatches=4")
        self.assertEqual(report["step_time_s"], min(r["step_time_s"] for r in reports.values() if r))
        self.assertEqual(report["microbatches"], 4)
        flags = ["--stages=3", "--schedule=interleaved", "--batch=24"]
        reports = self.by_hand([3], [1, 2, 3, 4, 6, 8, 12, 24], *flags[1:])
        report = self.report(*flags, "--microbatches=auto")
        self.assertEqual((report["ranks"], report["schedule"]), (3, "interleaved"))
        self.assertEqual(report["step_time_s"], min(r["step_time_s"] for r in reports.values() if r))

    def test_inference(self):
        flags = ["--mode=infer", "--batch=8"]
        reports = {(p, m): json.loads(self.run_tool("pipec", self.model, "--device=h200", *flags, f"--stages={p}", f"--microbatches={m}",
                                                    "--dry-run", "--json").stdout) for p in RANKS for m in (1, 2, 4, 8)}
        report = json.loads(self.run_tool("pipec", self.model, "--device=h200", *flags, "--stages=auto", "--microbatches=auto", "--dry-run",
                                          "--json").stdout)
        self.assertEqual(report["step_time_s"], min(r["step_time_s"] for r in reports.values()))

    def test_unequal_devices(self):
        # The first devices are the fast ones: with the last of them no plan is fastest.
        cluster = f"--cluster={ROOT / 'samples/clusters/mixed-8.json'}"
        self.run_tool("make-model", "mlp", "--layers=12", "--inputs=2048", "--hidden=2048", "--classes=8", "--batch=symbolic", "--no-weights",
                      "-o", self.model)
        flags = [cluster, "--optimizer=sgd", "--batch=1024", "--microbatches=8", "--dry-run", "--json"]
        reports = [json.loads(self.run_tool("pipec", self.model, f"--stages={p}", *flags).stdout) for p in RANKS]
        report = json.loads(self.run_tool("pipec", self.model, "--stages=auto", *flags).stdout)
        first, second = sorted(r["step_time_s"] for r in reports)[:2]
        self.assertEqual([row["step_time_s"] for row in report["candidates"][:2]], [first, second])
        self.assertLess(report["ranks"], 8)
        self.assertIn("mixed-8.json", report["notes"][0])

    def test_memory_changes_the_choice(self):
        flags = ["--stages=auto", "--microbatches=auto", "--batch=64", "--recompute=none"]
        free = self.report(*flags)
        limit = free["peak_bytes"] * 2 // 3
        tight = self.report(*flags, f"--memory={limit}")
        self.assertNotEqual((tight["ranks"], tight["microbatches"]), (free["ranks"], free["microbatches"]))
        self.assertLessEqual(tight["peak_bytes"], limit)
        self.assert_two_best(tight, self.by_hand(RANKS, POWERS, *flags[2:], f"--memory={limit}"), "limited")
        self.assertTrue(any("refusal" in row for row in tight["candidates"]))

    def test_nothing_fits(self):
        flags = ["--stages=auto", "--microbatches=auto"]
        refusal = self.report(*flags, "--memory=2kB", expect=1)
        self.assertIn("no plan of 1 to 8 ranks and 1 to 64 microbatches fits 2000 bytes a device", refusal)
        would_do = re.search(r"; (\d+) bytes a device would do, with (--stages=\d+ --microbatches=\d+ --schedule=\S+);", refusal)
        self.assertTrue(would_do, refusal)
        alone = self.report(f"--memory={would_do[1]}", *would_do[2].split())
        self.assertLessEqual(alone["peak_bytes"], int(would_do[1]))
        self.assertLessEqual(self.report(*flags, f"--memory={would_do[1]}")["peak_bytes"], int(would_do[1]))
        self.assertIn("--optimizer", refusal)
        # Only where a microbatch has more than the one sample.
        self.assertNotIn("--batch", refusal)
        self.assertIn("a smaller microbatch (--batch)", self.report(*flags, "--memory=2kB", "--batch=4096", expect=1))
        for batch, smaller in ("4", False), ("8", True):
            refusal = self.report("--stages=2", "--microbatches=4", f"--batch={batch}", "--memory=2kB", expect=1)
            self.assertEqual("a smaller microbatch (--batch, --microbatches)" in refusal, smaller, refusal)

    def test_statistics_of_one_sample(self):
        self.run_tool("make-model", "resnet", "--image=3x16x16", "--layers=18", "--no-weights", "-o", self.model)
        flags = ["--stages=1", "--microbatches=auto"]
        refusal = self.report(*flags, expect=1)
        self.assertIn("--batch=N", refusal)
        self.assertNotIn("--microbatches", refusal)
        report = self.report(*flags, "--batch=4")
        self.assertGreater(report["batch"], report["microbatches"])

    def test_schedules_are_chosen_as_well(self):
        report = self.report("--stages=auto", "--microbatches=auto", "--batch=16", "--schedule=auto")
        for p, m in (report["ranks"], report["microbatches"]), (report["ranks"], 16), (2, 8):
            for schedule in "1f1b", "zb-h1", "gpipe":
                alone = self.report(f"--stages={p}", f"--microbatches={m}", "--batch=16", f"--schedule={schedule}")
                self.assertGreaterEqual(alone["step_time_s"], report["step_time_s"] * (1 - 1e-9), (p, m, schedule))

    def test_what_is_chosen_is_what_its_flags_give(self):
        flags = ["--microbatches=auto", "--batch=16", "--optimizer=sgd"]
        plan = self.compile(self.model, "--stages=auto", *flags)
        row = json.loads(self.run_tool("pipec", self.model, "--stages=auto", *flags, "--dry-run", "--json").stdout)["candidates"][0]
        alone = self.compile(self.model, *flags_of(row), *flags[1:])
        self.assertEqual(sorted(p.name for p in plan.glob("rank-*.plan")), sorted(p.name for p in alone.glob("rank-*.plan")))
        for rank in plan.glob("rank-*.plan"):
            self.assertEqual(rank.read_bytes(), (alone / rank.name).read_bytes())

    def test_text_names_the_runner_up_and_what_was_assumed(self):
        text = self.run_tool("pipec", self.model, *DEVICE, "--stages=auto", "--microbatches=auto", "--dry-run").stdout
        self.assertIn("note: ranks are chosen from 1, 2, 3, 4, 5, 6, 7, 8: one host of h200 (--cluster)", text)
        self.assertIn("note: microbatches are chosen from 1, 2, 4, 8, 16, 32, 64, with which the batch grows (--microbatches, --batch)", text)
        report = self.report("--stages=auto", "--microbatches=auto")
        first, second = report["candidates"][:2]
        longer = 100 * (sample_seconds(second) / sample_seconds(first) - 1)
        self.assertIn(f"the second, --stages={second['ranks']} --microbatches={second['microbatches']} --schedule=1f1b, takes "
                      f"{longer:.1f} % longer a sample", text)

    def test_one_device_is_the_fastest(self):
        # Between two products of next to no work 10 us pass on the wire.
        w = Weights()
        path = self.write("model.onnxtxt", model_text(["float[N,8] x"], ["float[N,8] y"], [w.tensor("v", 8, 8), w.tensor("w", 8, 8)],
                                                      ["h = MatMul(x, v)", "y = MatMul(h, w)"]))
        report = json.loads(self.run_tool("pipec", path, *DEVICE, "--stages=auto", "--batch=1", "--microbatches=1", "--dry-run", "--json").stdout)
        self.assertEqual(report["ranks"], 1)
        (advice,) = [line for line in report["advice"] if "gains only bubbles" in line]
        self.assertIn("the model fits one device", advice)
        two = next(row for row in report["candidates"] if row["ranks"] > 1 and "refusal" not in row)
        longer = 100 * (sample_seconds(two) / sample_seconds(report["candidates"][0]) - 1)
        self.assertIn(f"the best one of {two['ranks']} ranks takes {longer:.1f} % longer a sample", advice)

    def test_mistakes(self):
        for flags, names in ((["--stages=auto", "--cut=a,b"], ["--cut", "--stages=3"]),
                             (["--stages=auto", "--schedule=some.csv"], ["some.csv", "--stages"]),
                             (["--microbatches=auto", "--schedule=some.csv"], ["some.csv", "--microbatches"]),
                             (["--stages=many"], ["'many'", "auto"]), (["--stages=0"], ["below 1"])):
            with self.subTest(flags):
                done = self.run_tool("pipec", self.model, "--dry-run", *flags, expect=2)
                for name in names:
                    self.assertIn(name, done.stderr)
        for flag in "--stages=auto", "--microbatches=auto":
            done = self.run_tool("pipec-opt", self.model, "--passes=partition-stages", flag, expect=1)
            self.assertIn("only pipec does", done.stderr)


if __name__ == "__main__":
    main()
