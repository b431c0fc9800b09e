"""bf16 and fp16 against PyTorch's float32: the losses of 20 steps stay within 2e-2 of its curve, as those of PyTorch's own autocast
to bfloat16 do."""

import json
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "support"))
from pipec_testing import Case, main
from reference_test import FLAGS, STEPS

LIMIT = 2e-2


def distance(losses, reference):
    return max(abs(a / b - 1) for a, b in zip(losses, reference, strict=True))


class Precision(Case):
    def test_losses(self):
        numbers = json.loads((HERE / "numbers.json").read_text())
        autocast = json.loads((HERE / "bf16.json").read_text())["losses"]
        self.assertEqual(set(autocast), set(numbers["losses"]))
        for case, losses in autocast.items():
            self.assertLess(distance(losses, numbers["losses"][case]), LIMIT, f"{case} is no measure of precision")
        for case, reference in numbers["losses"].items():
            name, optimizer = case.split("-")
            for precision in ("bf16", "fp16"):
                with self.subTest(case=case, precision=precision):
                    plan = self.compile(HERE / f"{name}.onnx", "--stages=2", f"--microbatches={numbers['microbatches'].get(name, 4)}",
                                        "--batch=16", f"--optimizer={optimizer}", f"--precision={precision}")
                    run = self.train(plan, HERE / f"{name}.npz", f"--epochs={STEPS}", f"--lr={numbers['rates'][case]}",
                                     *FLAGS[optimizer])
                    self.assertEqual(len(run.losses), STEPS)
                    self.assertLess(distance(run.losses, reference), LIMIT)
                    self.assertGreater(distance(run.losses, reference), 1e-6, "computed in float32")
                    self.assertLess(run.losses[-1], 0.8 * run.losses[0])


if __name__ == "__main__":
    main()
