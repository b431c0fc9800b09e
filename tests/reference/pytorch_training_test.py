"""Models that PyTorch exported train as in PyTorch: the losses of 20 steps, in every cut."""

import json
import pathlib
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from pipec_testing import ROOT, Case, main, read_npz, write_npz

DATA = ROOT / "tests/data/pytorch"
# The exported models of each case. What the exporter folded trains with other parameters than PyTorch's model.
MODELS = {"vit": ["vit-torchscript", "vit-dynamo"], "lstm": ["lstm-torchscript", "lstm-dynamo"],
          "nested": ["nested-torchscript", "nested-dynamo"], "resnet-train": ["resnet-torchscript-train"],
          "resnet": ["resnet-dynamo-train"]}
# A buffer of PyTorch's module, which TorchScript does not tell from a parameter.
BUFFERS = {"nested": ["--freeze=^table$"]}


class PyTorchTraining(Case):
    def data(self, case):
        arrays = read_npz(DATA / f"{case.split('-')[0]}.npz")
        path = self.folder / f"{case}.npz"
        kinds = {"<f4": ("float32", 4, "f"), "<i8": ("int64", 8, "q")}
        write_npz(path, {name: (kinds[descr][0], shape, struct.unpack(f"<{len(data) // kinds[descr][1]}{kinds[descr][2]}", data))
                         for name, (descr, shape, data) in arrays.items() if name != "logits"})
        return path

    def test_losses_are_pytorchs(self):
        numbers = json.loads((DATA / "training.json").read_text())
        self.assertEqual(set(numbers["cases"]), set(MODELS))
        for case, models in MODELS.items():
            rate, losses = numbers["cases"][case]["rate"], numbers["cases"][case]["losses"]
            self.assertLess(losses[-1], 0.8 * losses[0], f"{case}: the reference learns nothing")
            for model in models:
                # Statistics of a batch are those of its microbatches.
                for stages, microbatches in ((1, 1), (2, 1)) if case == "resnet-train" else ((1, 1), (2, 2), (4, 4)):
                    with self.subTest(model=model, stages=stages, microbatches=microbatches):
                        plan = self.compile(DATA / f"{model}.onnx", "--batch=4", f"--microbatches={microbatches}",
                                            f"--stages={stages}", "--optimizer=momentum", *BUFFERS.get(case, []))
                        run = self.train(plan, self.data(case), f"--epochs={len(losses)}", f"--lr={rate}",
                                         f"--momentum={numbers['momentum']}", "--weight-decay=0")
                        self.assertEqual(len(run.losses), len(losses))
                        for got, loss in zip(run.losses, losses):
                            self.assertAlmostEqual(got / loss, 1, delta=1e-5)


if __name__ == "__main__":
    main()
