"""A sequence of double length needs double memory, not four times: nobody keeps attention's weights, nor has all of them at once."""

import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from pipec_testing import Case, main, most_needed

LENGTHS = (512, 1024, 2048)


class AttentionMemory(Case):
    def needed(self, kind, mode, length):
        model = self.folder / "model.onnx"
        flags = ["--layers=2", "--heads=4", "--hidden=16", "--vocabulary=16", f"--sequence={length}"]
        self.run_tool("make-model", kind, *flags, "-o", model)
        report = self.run_tool("pipec", model, "--stages=1", "--microbatches=1", f"--mode={mode}", "--dry-run", "--json")
        return most_needed(json.loads(report.stdout))

    def test_memory_grows_with_the_length_not_its_square(self):
        for kind in ("gpt", "bert", "llama"):
            for mode in ("train", "infer"):
                with self.subTest(kind=kind, mode=mode):
                    short, middle, long = (self.needed(kind, mode, length) for length in LENGTHS)
                    # Beside what grows lies what does not: parameters, the block whose weights are at hand.
                    self.assertLess(long - middle, 2.2 * (middle - short))
                    # One head's weights alone would take as much again.
                    self.assertLess(long, LENGTHS[-1] ** 2 * 4)


if __name__ == "__main__":
    main()
