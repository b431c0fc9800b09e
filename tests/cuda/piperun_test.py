#!/usr/bin/env python3
"""piperun as preset cuda builds it, over one emulated GPU: what --device and --transport take, and what they say.

    PIPEC_BIN=FOLDER piperun_test.py
"""

import json
import os
import pathlib
import subprocess
import tempfile
import unittest

BIN = pathlib.Path(os.environ["PIPEC_BIN"])


def run(*words, code=0):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    assert done.returncode == code, (words, done.returncode, done.stdout, done.stderr)
    return done


class Piperun(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        model = pathlib.Path(cls.folder.name, "m.onnx")
        run(BIN / "make-model", "mlp", "--layers=4", "--hidden=6", "--inputs=5", "--classes=3", "--batch=2", "-o", model)
        cls.plans = {ranks: pathlib.Path(cls.folder.name, f"{ranks}.plan") for ranks in (1, 2)}
        for ranks, plan in cls.plans.items():
            run(BIN / "pipec", model, f"--stages={ranks}", "--microbatches=4", "-o", plan)
        cls.plans["replicas"] = pathlib.Path(cls.folder.name, "replicas.plan")
        run(BIN / "pipec", model, "--stages=1", "--replicas=2", "--microbatches=2", "-o", cls.plans["replicas"])

    def piperun(self, ranks, *flags, code=0):
        return run(BIN / "emulated" / "piperun", self.plans[ranks], "--data=synthetic", "--steps=3", *flags, code=code)

    def test_nccl_takes_a_gpu_a_rank(self):
        self.piperun(1, "--device=cuda", "--transport=nccl")
        said = self.piperun(2, "--device=cuda", "--transport=nccl", code=1).stderr
        self.assertIn("--transport=nccl needs a GPU a rank: the plan has 2 ranks, this host 1 GPU; with --transport=local", said)

    def test_nccl_connects_gpus(self):
        self.assertIn("--transport=nccl connects GPUs: it needs --device=cuda, not cpu", self.piperun(2, "--transport=nccl", code=2).stderr)

    def test_replicas_have_gpus_of_their_own_or_share_one(self):
        self.assertIn("2 ranks share 1 GPU", self.piperun("replicas", "--device=cuda").stderr)
        self.assertIn("the plan has 2 ranks, this host 1 GPU",
                      self.piperun("replicas", "--device=cuda", "--transport=nccl", code=1).stderr)

    def test_the_plan_counts_what_a_gpu_has_of_steps(self):
        model, plan = pathlib.Path(self.folder.name, "m.onnx"), pathlib.Path(self.folder.name, "gpu.plan")
        planned, taken = [], []
        for schedule, ranks, microbatches in ("1f1b", 1, 4), ("1f1b", 1, 64), ("pipedream-2bw", 2, 4), ("pipedream-2bw", 2, 64):
            flags = [model, "--device=h200", f"--stages={ranks}", f"--schedule={schedule}", f"--microbatches={microbatches}", "--json"]
            report = json.loads(run(BIN / "pipec", *flags, "-o", plan).stdout)
            planned.append({stage["rank"]: stage["workspace_bytes"] for stage in report["stages"]})
            done = run(BIN / "emulated" / "piperun", plan, "--device=cuda", "--data=synthetic", "--steps=1", "--json")
            taken.append(dict(enumerate(json.loads(done.stdout)["workspace_bytes"])))
            if ranks > 1:
                continue
            needed = report["peak_bytes"] + report["workspace_bytes"]
            refused = run(BIN / "pipec", *flags, "--dry-run", "--recompute=none", f"--memory={needed - 1}", code=1).stderr
            self.assertIn(f"needs {needed} bytes of memory", refused)
        for few, many in (0, 1), (2, 3):  # kernels want as much of either
            self.assertEqual({r: planned[many][r] - planned[few][r] for r in planned[few]},
                             {r: taken[many][r] - taken[few][r] for r in taken[few]})
            self.assertGreater(min(planned[few].values()), 0)

    def test_ranks_share_a_gpu(self):
        self.assertIn("2 ranks share 1 GPU", self.piperun(2, "--device=cuda").stderr)


if __name__ == "__main__":
    unittest.main()
