"""--memory: what one limit allows a larger one allows too, no slower; and the least that a refusal names will do."""

import json
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from pipec_testing import Case, main, most_needed

MODELS = {
    "mlp": ["mlp", "--layers=8", "--hidden=32", "--classes=10", "--inputs=16", "--batch=4"],
    "gpt": ["gpt", "--layers=4", "--hidden=16", "--heads=2", "--sequence=16", "--vocabulary=64", "--batch=4"],
    "resnet": ["resnet", "--layers=1", "--hidden=8", "--image=3x32x32", "--classes=10", "--batch=4"],
    "unet": ["unet", "--layers=2", "--hidden=8", "--image=3x32x32", "--batch=2"],
}
# What keeps activations of several microbatches, of several stages, weights in several versions, and results in infer mode.
PIPELINES = {
    "mlp": (["--stages=4", "--schedule=pipedream"], ["--stages=2", "--schedule=pipedream-2bw", "--microbatches=4"]),
    "gpt": (["--stages=2", "--schedule=gpipe", "--microbatches=4"],
            ["--stages=3", "--schedule=zb-h1", "--microbatches=6"]),
    "resnet": (["--stages=2", "--mode=infer", "--microbatches=4"],),
    "unet": (["--stages=4", "--microbatches=8"],),
}
LIMITS = 6


class MemoryLimits(Case):
    def compiled(self, model, memory, *flags):
        """(step time, bytes that a rank needs) of the plan; the bytes that a refusal names if there is none."""
        done = self.run_tool("pipec", model, *flags, f"--memory={memory}", "--dry-run", "--json", expect=None)
        if done.returncode == 0:
            report = json.loads(done.stdout)
            return report["step_time_s"], most_needed(report)
        self.assertEqual(done.returncode, 1, done.stderr)
        return int(re.search(r"needs (\d+) bytes of memory", done.stderr)[1])

    def test_more_memory_is_never_worse(self):
        for kind, pipelines in PIPELINES.items():
            model = self.folder / f"{kind}.onnx"
            self.run_tool("make-model", *MODELS[kind], "-o", model)
            for flags in pipelines:
                with self.subTest(model=kind, flags=flags):
                    fastest, most = self.compiled(model, "1TB", *flags)
                    least = self.compiled(model, 1, *flags)
                    self.assertLess(least, most)
                    self.assertEqual(self.compiled(model, least - 1, *flags), least)
                    limits = [least + (most - least) * k // LIMITS for k in range(LIMITS + 1)]
                    plans = [self.compiled(model, memory, *flags) for memory in limits]
                    for memory, plan in zip(limits, plans):
                        self.assertIsInstance(plan, tuple, f"{memory} bytes are refused, {least} were enough")
                        self.assertLessEqual(plan[1], memory)
                    times = [plan[0] for plan in plans]
                    self.assertEqual(times, sorted(times, reverse=True), f"steps for {limits} bytes")
                    self.assertEqual(times[-1], fastest)

    def test_inference_has_no_optimizer_to_change(self):
        model = self.folder / "mlp.onnx"
        self.run_tool("make-model", "mlp", "-o", model)
        for flags, said in ((["--mode=infer"], False), (["--microbatches=2"], True)):
            refusal = self.run_tool("pipec", model, "--dry-run", "--memory=1kB", *flags, expect=1).stderr
            self.assertIn("less is needed with", refusal)
            self.assertEqual("optimizer" in refusal, said, refusal)


if __name__ == "__main__":
    main()
