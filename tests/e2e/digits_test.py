"""The digits sample learns: four ranks, evaluated on rows it never saw."""

import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from pipec_testing import ROOT, Case, main


class Digits(Case):
    def test_accuracy(self):
        train, evaluation, model, plan = (self.folder / name for name in ("train.npz", "eval.npz", "digits.onnx", "digits.plan"))
        self.run_tool("make-data", "digits", ROOT / "samples/digits/digits.csv.gz", "-o", train, f"--eval={evaluation}")
        self.run_tool("make-model", "mlp", "--layers=4", "--inputs=64", "--hidden=64", "--classes=10", "--batch=8", "-o", model)
        self.run_tool("pipec", model, "--stages=4", "--microbatches=4", "-o", plan)
        done = self.run_tool("piperun", plan, f"--data={train}", f"--eval-data={evaluation}", "--shuffle", "--epochs=15",
                             "--lr=3e-3", "--lr-schedule=cosine", "--threads=1", "--json")
        first, last = (row for row in json.loads(done.stdout)["evaluations"])
        self.assertEqual(first["samples"], 359)
        self.assertLess(first["accuracy"], 0.3)
        self.assertGreater(last["accuracy"], 0.95)


if __name__ == "__main__":
    main()
