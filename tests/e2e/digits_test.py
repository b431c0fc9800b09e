"""The digits sample learns: four ranks, evaluated on rows it never saw."""

import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from pipec_testing import ROOT, Case, main


class Digits(Case):
    def accuracy(self, model, data_flags, epochs):
        train, evaluation, plan = (self.folder / name for name in ("train.npz", "eval.npz", "digits.plan"))
        self.run_tool("make-data", "digits", ROOT / "samples/digits/digits.csv.gz", "-o", train, f"--eval={evaluation}", *data_flags)
        self.run_tool("make-model", *model, "--classes=10", "--batch=8", "-o", "digits.onnx")
        self.run_tool("pipec", "digits.onnx", "--stages=4", "--microbatches=4", "-o", plan)
        done = self.run_tool("piperun", plan, f"--data={train}", f"--eval-data={evaluation}", "--shuffle", f"--epochs={epochs}",
                             "--lr=3e-3", "--lr-schedule=cosine", "--threads=1", "--json")
        first, last = (row for row in json.loads(done.stdout)["evaluations"])
        self.assertEqual(first["samples"], 359)
        self.assertLess(first["accuracy"], 0.3)
        return last["accuracy"]

    def test_mlp(self):
        self.assertGreater(self.accuracy(["mlp", "--layers=4", "--inputs=64", "--hidden=64"], [], 15), 0.95)

    def test_cnn(self):
        self.assertGreater(self.accuracy(["cnn", "--layers=4", "--image=1x8x8", "--hidden=16", "--dropout=0.3"], ["--images"], 10), 0.96)


if __name__ == "__main__":
    main()
