"""The memory that a plan says is the memory that a run takes: the arenas to the byte, the process within 5 %."""

import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from pipec_testing import Case, main, most_needed

# So large that what a process takes beside what was planned, such as the code that kernels are made of, is little.
MODELS = {
    "mlp": ["--layers=8", "--inputs=1280", "--hidden=1280", "--classes=1280", "--batch=16"],
    "gpt": ["--layers=4", "--heads=4", "--hidden=256", "--sequence=128", "--vocabulary=2048", "--batch=2"],
    "resnet": ["--layers=1", "--hidden=64", "--image=3x64x64", "--batch=8"],
    "unet": ["--layers=2", "--hidden=32", "--image=3x64x64", "--batch=8"],
}
SCHEDULES = {1: ["gpipe"], 2: ["zb-v", "pipedream-2bw"], 4: ["1f1b"]}


class PlannedMemory(Case):
    def test_arenas_to_the_byte_and_the_process_within_five_percent(self):
        for kind, flags in MODELS.items():
            model, plan = self.folder / f"{kind}.onnx", self.folder / "model.plan"
            self.run_tool("make-model", kind, *flags, "-o", model)
            for stages, schedules in SCHEDULES.items():
                for schedule in schedules:
                    with self.subTest(model=kind, stages=stages, schedule=schedule):
                        report = json.loads(self.run_tool("pipec", model, "-o", plan, f"--stages={stages}", f"--schedule={schedule}",
                                                          "--microbatches=4", "--json").stdout)
                        run = json.loads(self.run_tool("piperun", plan, "--data=synthetic", "--steps=2", "--json").stdout)
                        self.check(report, run)

    def check(self, report, run):
        planned = {stage["rank"]: stage["peak_bytes"] for stage in report["stages"]}
        self.assertEqual(run["arena_bytes"], [planned[rank] for rank in range(report["ranks"])])
        for stage in report["stages"]:
            self.assertLessEqual(stage["peak_bytes"], 1.01 * stage["live_bytes"])
        workspace = {stage["rank"]: stage["workspace_bytes"] for stage in report["stages"]}
        self.assertEqual(run["workspace_bytes"], [workspace[rank] for rank in range(report["ranks"])])
        taken = sum(run["arena_bytes"]) + sum(run["workspace_bytes"])
        self.assertGreater(taken, 90e6)
        self.assertLess(abs(run["grown_bytes"] / taken - 1), 0.05)

    def test_the_limit_counts_workspace(self):
        model, plan = self.folder / "gpt.onnx", self.folder / "model.plan"
        self.run_tool("make-model", "gpt", "--preset=gpt-tiny", "-o", model)
        flags = ["--stages=1", "--microbatches=4", "--recompute=none", "--json"]
        report = json.loads(self.run_tool("pipec", model, *flags, "--dry-run").stdout)
        needed = most_needed(report)
        self.assertGreater(report["workspace_bytes"], 0)
        refused = self.run_tool("pipec", model, *flags, "--dry-run", f"--memory={needed - 1}", expect=1)
        self.assertIn(f"needs {needed} bytes of memory", refused.stderr)
        self.run_tool("pipec", model, "-o", plan, *flags, f"--memory={needed}")
        run = ["piperun", plan, "--data=synthetic", "--steps=1"]
        self.run_tool(*run)
        # Every thread more has workspace of its own.
        self.assertIn("--threads", self.run_tool(*run, "--threads=16", expect=1).stderr)


if __name__ == "__main__":
    main()
