"""Ops that cast 16-bit floats themselves, as plans for GPUs have them: the numbers are those of casts beside them, wherever the
model is cut, and no float32 form of logits or of what is normalised is left."""

import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from pipec_testing import Case, floats, main, pipelines, read_npz

GPT = ["--layers=4", "--hidden=32", "--heads=4", "--sequence=8", "--vocabulary=96", "--batch=symbolic", "--seed=1"]
COMMON = ["--microbatches=4", "--batch=8", "--device=h200"]
APART = "--disable-pass=fuse-casts"


class FusedCasts(Case):
    def setUp(self):
        super().setUp()
        self.model = self.folder / "gpt.onnx"
        self.run_tool("make-model", "gpt", *GPT, "-o", self.model)

    def printed(self, level, *flags):
        return self.run_tool("pipec", self.model, *COMMON, "--stages=1", "--dry-run", f"--print={level}", *flags).stdout

    def test_training(self):
        for precision in ("bf16", "fp16"):
            flags = [*COMMON, f"--precision={precision}"]
            train = lambda *more: self.train(self.compile(self.model, *flags, *more), "synthetic", "--steps=3")
            apart = train("--stages=1", APART)
            self.assert_same_run(train("--stages=1"), apart, precision)
            for schedule, how in [*pipelines(stages=4, microbatches=4), ("recompute", ["--stages=4", "--recompute=all"])]:
                with self.subTest(precision=precision, schedule=schedule):
                    self.assert_same_run(train(*how), apart, schedule)
            # At what a cast made that is none any more: in front of the normalization, and behind it.
            for cast in ("add_2/float32", f"ln_1/{'bfloat16' if precision == 'bf16' else 'float16'}"):
                self.assert_same_run(train("--stages=2", f"--cut=transformer.h.1.{cast}"), apart, cast)

    def test_convolutional_nets(self):
        self.run_tool("make-model", "resnet", "--layers=1", "--hidden=4", "--image=3x16x16", "--batch=symbolic", "--seed=1", "-o", self.model)
        flags = [*COMMON, "--precision=bf16"]
        runs = [self.train(self.compile(self.model, *flags, *more), "synthetic", "--steps=3")
                for more in (["--stages=1", APART], ["--stages=1"], ["--stages=4"])]
        for run in runs[1:]:
            self.assert_same_run(run, runs[0], "resnet")
        of_normalization = re.compile(r"BatchNormalization\w*\(.*to=(?:1|16)}")
        self.assertEqual(len(of_normalization.findall(self.printed("training", "--precision=bf16"))), 36)

    def test_inference(self):
        outputs = []
        for k, flags in enumerate((["--stages=1", APART], ["--stages=1"], ["--stages=4"])):
            plan = self.compile(self.model, "--mode=infer", "--precision=bf16", *COMMON, *flags)
            out = self.folder / f"{k}.npz"
            self.run_tool("piperun", plan, "--data=synthetic", f"--outputs={out}", "--threads=1")
            outputs.append(floats(read_npz(out)["logits"][2]))
        self.assertEqual(outputs[1], outputs[0])
        self.assertEqual(outputs[2], outputs[0])

    def test_no_wide_form_is_left(self):
        apart, fused = (self.printed("training", "--precision=bf16", *flags) for flags in ([APART], []))
        logits, hidden = "float32[2,8,96]", re.compile(r"float32\[2,8,32\][^,=]* = Cast")
        self.assertIn(logits, apart)
        self.assertNotIn(logits, fused)
        # But of the gradient of the embedding, which is added up in float32.
        self.assertEqual((len(hidden.findall(apart)), len(hidden.findall(fused))), (38, 2))

    def test_float32_stays(self):
        self.assertEqual(self.printed("training"), self.printed("training", APART))


if __name__ == "__main__":
    main()
