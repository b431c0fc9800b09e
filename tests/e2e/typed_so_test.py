"""`pipec model.onnx --stages 8 --schedule 1f1b`, typed so, then `piperun`: nothing else is needed."""

import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from pipec_testing import Case, main, read_safetensors


class TypedSo(Case):
    def setUp(self):
        super().setUp()
        self.run_tool("make-model", "gpt", "--layers=8", "--hidden=32", "--heads=2", "--sequence=16", "--vocabulary=64",
                      "-o", "model.onnx")

    def test_eight_stages(self):
        done = self.run_tool("pipec", "model.onnx", "--stages", "8", "--schedule", "1f1b")
        plan = self.folder / "model.plan"
        for entry in ("manifest.json", "model.onnx", "parameters", "report.html", *[f"rank-{r:03}.plan" for r in range(8)]):
            self.assertTrue((plan / entry).exists(), entry)
        # What was assumed is said with the flag that changes it; then the table, then what to run next.
        for flag in ("--microbatches", "--batch", "--optimizer"):
            self.assertIn(flag, done.stdout)
        table = done.stdout[done.stdout.index("stage  rank"):].splitlines()[1:9]
        rows = [line.split() for line in table]
        self.assertEqual([row[0] for row in rows], [str(s) for s in range(8)])
        self.assertIn("bubble ratio", done.stdout)
        self.assertIn("piperun model.plan", done.stdout)

        self.run_tool("piperun", "model.plan", "--data=synthetic", "--steps=3", "--threads=1", "--metrics=metrics.jsonl",
                      "--trace=trace.json", "--export=trained")
        losses = [json.loads(line)["loss"] for line in (self.folder / "metrics.jsonl").read_text().splitlines()]
        self.assertEqual(len(losses), 3)
        self.assertLess(losses[-1], losses[0])
        trace = json.loads((self.folder / "trace.json").read_text())
        events = trace["traceEvents"] if isinstance(trace, dict) else trace
        self.assertEqual({event["pid"] for event in events if event["ph"] == "X"}, set(range(8)))
        trained = read_safetensors(self.folder / "trained" / "model.safetensors")
        self.assertIn("transformer.wte.weight", trained)

    def test_the_exported_model_compiles_again(self):
        self.run_tool("pipec", "model.onnx", "--stages", "2")
        self.run_tool("piperun", "model.plan", "--data=synthetic", "--steps=1", "--threads=1", "--export=trained")
        self.run_tool("pipec", self.folder / "trained" / "model.onnx", "--stages", "3", "-o", "again.plan")
        self.run_tool("piperun", "again.plan", "--data=synthetic", "--steps=1", "--threads=1")


if __name__ == "__main__":
    main()
