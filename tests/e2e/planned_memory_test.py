"""The memory that a plan says is the memory that a run takes: the arenas to the byte, the process within 5 %."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from pipec_testing import BIN, Case, main

# Flags of a model, and what makes the same nodes small: the difference of two runs knows nothing of code and of what a
# process takes anyway.
MODELS = {
    "gpt": (["gpt", "--layers=4", "--heads=4", "--batch=2"],
            ["--hidden=256", "--sequence=128", "--vocabulary=2048"], ["--hidden=16", "--sequence=8", "--vocabulary=32"]),
    "resnet": (["resnet", "--layers=1", "--batch=4"], ["--hidden=48", "--image=3x64x64"], ["--hidden=8", "--image=3x32x32"]),
    "unet": (["unet", "--layers=2", "--batch=4"], ["--hidden=32", "--image=3x64x64"], ["--hidden=8", "--image=3x16x16"]),
}
SCHEDULES = {1: ["gpipe", "zb-h1"], 2: ["1f1b", "zb-v"], 4: ["1f1b", "interleaved"]}


class PlannedMemory(Case):
    def model(self, kind, large):
        flags = MODELS[kind]
        path = self.folder / f"{kind}{large}.onnx"
        self.run_tool("make-model", *flags[0], *flags[1 if large else 2], "-o", path)
        return path

    def planned_and_taken(self, model, *flags):
        """Bytes of all ranks: planned arenas and the run's workspace; and what the process had at most."""
        plan = self.folder / "model.plan"
        report = json.loads(self.run_tool("pipec", model, "-o", plan, *flags, "--microbatches=4", "--json").stdout)
        with tempfile.TemporaryFile() as out:
            process = subprocess.Popen([str(BIN / "piperun"), str(plan), "--data=synthetic", "--steps=1", "--threads=1", "--json"],
                                       stdout=out, stderr=subprocess.DEVNULL)
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            self.assertEqual(process.returncode, 0, f"{model} {flags}")
            out.seek(0)
            run = json.loads(out.read())
        planned = {stage["rank"]: stage["peak_bytes"] for stage in report["stages"]}
        self.assertEqual(run["arena_bytes"], [planned[rank] for rank in range(len(planned))], f"{model} {flags}")
        self.assertEqual(len(run["workspace_bytes"]), len(planned))
        return sum(run["arena_bytes"]) + sum(run["workspace_bytes"]), usage.ru_maxrss * 1024

    def test_arenas_to_the_byte_and_the_process_within_five_percent(self):
        for kind in MODELS:
            small, large = self.model(kind, False), self.model(kind, True)
            for stages, schedules in SCHEDULES.items():
                for schedule in schedules:
                    with self.subTest(model=kind, stages=stages, schedule=schedule):
                        flags = [f"--stages={stages}", f"--schedule={schedule}"]
                        planned, taken = self.planned_and_taken(large, *flags)
                        planned_small, taken_small = self.planned_and_taken(small, *flags)
                        self.assertGreater(planned - planned_small, 20e6)
                        self.assertLess(abs((taken - taken_small) / (planned - planned_small) - 1), 0.05)


if __name__ == "__main__":
    main()
