"""--print and --print-after show the module, or say why there is nothing to show and write no plan."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from pipec_testing import Case, main


class Print(Case):
    def setUp(self):
        super().setUp()
        self.model, self.plan = self.folder / "model.onnx", self.folder / "model.plan"
        self.run_tool("make-model", "mlp", "-o", self.model)

    def test_shows_the_module(self):
        for flag in ("--print=training", "--print-after=fuse-accumulate"):
            self.assertIn("level training", self.run_tool("pipec", self.model, "-o", self.plan, flag).stdout, flag)

    def test_says_why_there_is_nothing(self):
        for flags, said in (
                (["--mode=infer", "--print-after=fuse-accumulate"], "--print-after=fuse-accumulate: the pass does not run"),
                (["--disable-pass=fuse-accumulate", "--print-after=fuse-accumulate"], "the pass does not run"),
                (["--mode=infer", "--print=training"], "--print=training: the module is never at this level")):
            done = self.run_tool("pipec", self.model, "-o", self.plan, *flags, expect=1)
            self.assertIn(said, done.stderr)
            self.assertEqual(done.stdout, "")
            self.assertFalse(self.plan.exists())


if __name__ == "__main__":
    main()
