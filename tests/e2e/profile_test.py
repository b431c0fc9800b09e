"""piperun --profile measures, pipec --profile plans with what was measured: at any P and M, at other batches with what is fitted
to it, and saying so."""

import json
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from pipec_testing import Case, Weights, main, with_a_message, write_npz


class Profile(Case):
    def setUp(self):
        super().setUp()
        self.model = self.folder / "model.onnx"
        # The first and the last layer are unlike the others.
        self.run_tool("make-model", "mlp", "--layers=9", "--inputs=8", "--hidden=16", "--classes=4",
                      "--batch=4", "-o", self.model)
        values = Weights(7).random
        self.data = self.folder / "data.npz"
        write_npz(self.data, {"x": ("float32", (64, 8), [values.gauss(0, 1) for _ in range(64 * 8)]),
                              "labels": ("int64", (64,), [values.randrange(4) for _ in range(64)])})

    def profile(self, *flags, device="cpu"):
        path = self.folder / "profile.json"
        plan = self.compile(self.model, "--microbatches=8", *flags)
        self.run_tool("piperun", plan, f"--data={self.data}", f"--profile={path}", f"--device={device}", "--threads=1")
        with_a_message(path)
        return path

    def report(self, *flags):
        return json.loads(self.run_tool("pipec", self.model, *flags, "--dry-run", "--json").stdout)

    def doctored(self, path, change):
        document = json.loads(path.read_text())
        for node in document["nodes"]:
            node["seconds"] = change(node)
        document["messages"], document["action_seconds"] = [], 0
        self.write("doctored.json", json.dumps(document))
        return self.folder / "doctored.json"

    def test_serves_other_shapes_of_the_pipeline(self):
        path = self.profile("--stages=2")
        given = f"--profile={path}"
        modelled = self.report("--stages=2", "--microbatches=8")
        self.assertEqual((modelled["times"], modelled["message_times"]), ("modelled", "modelled"))
        self.assertEqual({row["times"] for row in modelled["stages"]}, {"modelled"})
        for flags in (["--stages=2", "--microbatches=8"], ["--stages=4", "--microbatches=16"], ["--stages=1", "--microbatches=2"],
                      ["--stages=2", "--microbatches=8", "--schedule=zb-h1"], ["--stages=2", "--schedule=interleaved", "--microbatches=4"]):
            with self.subTest(flags=flags):
                report = self.report(*flags, given)
                self.assertEqual({row["times"] for row in report["stages"]}, {"measured"}, report)
                # Sums over ranks are of other lengths at other P.
                self.assertIn("measured", report["times"])
                self.assertTrue(any("2 ranks of 1 thread each (--profile)" in note for note in report["notes"]), report["notes"])
        text = self.run_tool("pipec", self.model, "--microbatches=8", "--stages=2", given, "--dry-run").stdout
        # With other costs the cut is another one, and with it what sums over the parameters of a rank are long.
        self.assertRegex(text, r"times for cpu: (9[5-9][0-9.]* % )?measured")
        self.assertRegex(text, r"step time +[0-9.]+ ms \(from (costs 9[5-9][0-9.]* % )?measured")
        self.assertIn("of messages: fitted", text)

    def test_inference_too(self):
        report = self.report("--mode=infer", "--microbatches=8", f"--profile={self.profile('--mode=infer')}")
        self.assertEqual(report["times"], "measured")
        for row in report["stages"]:
            self.assertGreater(row["forward_s"], 0)
            self.assertEqual(row["backward_s"], 0)

    def test_what_is_missing_is_fitted(self):
        path = self.profile("--stages=2")
        document = json.loads(path.read_text())
        self.assertGreater(len(document["nodes"]), 20)
        document["nodes"] = [node for node in document["nodes"] if node["op"] not in ("MatMul", "Gemm")]
        partly = self.write("partly.json", json.dumps(document))
        report = self.report("--stages=2", "--microbatches=8", f"--profile={partly}")
        for row in report["stages"]:
            self.assertRegex(row["times"], r"^[0-9.]+ % measured, [0-9.]+ % fitted$")
        self.assertRegex(report["simulated"], r"^from costs [0-9.]+ % measured, [0-9.]+ % fitted$")

    def test_the_share_of_what_is_measured_is_that_of_a_step(self):
        # Of another batch only the update is measured, which a step has once, however many microbatches it has.
        path = self.profile("--stages=2")
        shares = []
        for microbatches in (2, 20):
            report = self.report("--stages=2", f"--microbatches={microbatches}", f"--batch={8 * microbatches}", f"--profile={path}")
            shares.append(float(re.match(r"from costs ([0-9.]+) % measured", report["simulated"])[1]) / 100)
        self.assertLess(shares[1], shares[0] / 3)

    def test_another_batch_is_fitted(self):
        # Both batches are profiled, for what each node does; times are those of a law. Fitted to those of one batch, it says
        # what every node of the other takes.
        def by_law(node):
            return 3e-6 + 2e-9 * node["bytes"] + 5e-10 * node["flops"]

        small = self.doctored(self.profile("--stages=2"), by_law)
        small = small.rename(self.folder / "small.json")
        large = self.doctored(self.profile("--stages=2", "--batch=64"), by_law)
        flags = ["--stages=2", "--microbatches=8"]
        for batch, fitted, measured in ((64, small, large), (32, large, small)):
            with self.subTest(batch=batch):
                report, truth = (self.report(*flags, f"--batch={batch}", f"--profile={path}") for path in (fitted, measured))
                self.assertEqual({row["times"] for row in truth["stages"]}, {"measured"})
                for row, true in zip(report["stages"], truth["stages"], strict=True):
                    # What has no batch axis, sums over parameters, is measured.
                    self.assertRegex(row["times"], r"fitted$")
                    for field in ("forward_s", "backward_s"):
                        self.assertAlmostEqual(row[field] / true[field], 1, delta=1e-6)
                self.assertAlmostEqual(report["step_time_s"] / truth["step_time_s"], 1, delta=1e-6)
                self.assertRegex(report["simulated"], r"^from .*fitted")
        page = self.run_tool("pipec", self.model, *flags, "--batch=64", f"--profile={small}", "-o", self.folder / "fitted.plan")
        self.assertIn("(from costs", page.stdout)
        self.assertIn("% fitted", (self.folder / "fitted.plan" / "report.html").read_text())

    def test_the_cut_follows_what_was_measured(self):
        path = self.profile("--stages=2")

        def first_stage(change):
            report = self.report("--stages=2", "--microbatches=8", f"--profile={self.doctored(path, change)}")
            self.assertEqual({row["times"] for row in report["stages"]}, {"measured"})
            return report["stages"][0]["nodes"], report["step_time_s"]

        even, step = first_stage(lambda node: 1e-4)
        slow_head, step_of_slow_head = first_stage(lambda node: 1 if "float32[4,4]" in node["key"].split("->")[0] else 1e-4)
        slow_start, _ = first_stage(lambda node: 1 if "float32[4,8]" in node["key"] else 1e-4)
        self.assertGreater(slow_head, even)
        self.assertLess(slow_start, even)
        self.assertGreater(step_of_slow_head, step + 1)

    def test_the_update_is_part_of_the_step(self):
        path = self.profile("--stages=2")
        steps = [self.report("--stages=2", "--microbatches=8", "--cut=layers.4.linear", f"--profile={self.doctored(path, change)}")
                 for change in (lambda node: 1e-4, lambda node: 1 if node["kind"] == "UPDATE" else 1e-4)]
        self.assertGreater(steps[1]["step_time_s"], steps[0]["step_time_s"] + 1)
        self.assertEqual(steps[1]["bubble_ratio"], steps[0]["bubble_ratio"])

    def test_replay_takes_as_long_as_was_measured(self):
        # 1 ms a node is far above what the executor itself takes; no run can be faster than its waits.
        path = self.doctored(self.profile("--stages=2"), lambda node: 1e-3)
        flags = ["--stages=4", "--microbatches=8", f"--profile={path}"]
        expected = self.report(*flags)["step_time_s"]
        self.assertGreater(expected, 0.1)
        done = self.run_tool("piperun", self.compile(self.model, *flags), "--data=synthetic", "--device=replay", "--steps=2", "--json")
        self.assertGreaterEqual(json.loads(done.stdout)["seconds"], 2 * 0.98 * expected)

    def test_refusals(self):
        path = self.profile("--stages=2")
        flags = ["--stages=2", "--microbatches=8"]
        self.assertIn("profile was measured on cpu, the plan is for h200",
                      self.compile(self.model, *flags, "--device=h200", f"--profile={path}", expect=1))
        broken = self.write("broken.json", path.read_text()[:1000])
        self.assertIn("not a profile", self.compile(self.model, *flags, f"--profile={broken}", expect=1))
        self.assertIn("cannot read", self.compile(self.model, *flags, f"--profile={self.folder}/none.json", expect=1))
        idle = json.loads(path.read_text())
        for node in idle["nodes"]:
            node["seconds"] = 0
        idle = self.write("idle.json", json.dumps(idle))
        report = json.loads(self.run_tool("pipec", self.model, *flags, f"--profile={idle}", "--dry-run", "--json").stdout)
        self.assertTrue(any("no node of the profile took any time" in note for note in report["notes"]), report["notes"])
        replayed = self.profile("--stages=2", device="replay")
        self.assertIn("measured on replay", self.compile(self.model, *flags, f"--profile={replayed}", expect=1))


if __name__ == "__main__":
    main()
