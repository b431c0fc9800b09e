"""Models that others trained, of packages that tools/setup.sh fetches: onnxruntime's outputs (tests/reference/make_trained_models.py),
whole and cut.

silero-vad hears voices: an If on the sampling rate, an LSTM whose state goes from window to window. magika tells what kind of file
some bytes are.
"""

import json
import pathlib
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from pipec_testing import CACHE, ROOT, Case, floats, main, npy, read_npz, write_npz

DATA = ROOT / "tests/data/trained_models"
SILERO, MAGIKA = CACHE / "silero-vad-6.2.3/silero_vad.onnx", CACHE / "magika-1.0.3"
TOLERANCE = 1e-4
STREAMS, STATE = 4, (2, 4, 128)
STAGES = 1, 2, 3


def rows(array, size):
    """The first axis of a float array, taken apart."""
    values = floats(array[2])
    return [values[k : k + size] for k in range(0, len(values), size)]


class TrainedModels(Case):
    def setUp(self):
        super().setUp()
        for path in SILERO, MAGIKA / "model.onnx":
            self.assertTrue(path.exists(), f"{path} is not there: run tools/setup.sh")

    def infer(self, plan, data):
        write_npz(self.folder / "data.npz", data)
        self.run_tool("piperun", plan, "--data=data.npz", "--outputs=out.npz", "--threads=1", "--timeout=30")
        return read_npz(self.folder / "out.npz")

    def assert_close(self, got, wanted, what):
        for i, (a, b) in enumerate(zip(got, wanted, strict=True)):
            self.assertLessEqual(abs(a - b), TOLERANCE, f"{what}[{i}]: {a}, onnxruntime {b}")

    def compile_silero(self, rate, width, stages, *flags):
        return self.compile(SILERO, "--mode=infer", f"--stages={stages}", "--microbatches=1", f"--batch={STREAMS}",
                            "--dim", f"input:1={width}", "--dim", f"state:1={STREAMS}", *flags)

    def listen(self, plan, rate, more=None):
        """Every window of four streams, each with the state that we had after the one before: bytes of outputs and states."""
        inputs, outputs = (read_npz(DATA / f"silero-{rate}.{kind}.npz") for kind in ("inputs", "outputs"))
        windows, _, width = inputs["input"][1]
        heard, state = [], [0.0] * (2 * STREAMS * 128)
        for k, (x, probability, after) in enumerate(zip(rows(inputs["input"], STREAMS * width), rows(outputs["output"], STREAMS),
                                                         rows(outputs["stateN"], 2 * STREAMS * 128), strict=True)):
            got = self.infer(plan, {"input": ("float32", (STREAMS, width), x), "state": ("float32", STATE, state), **(more or {})})
            self.assertEqual([array[1] for _, array in sorted(got.items())], [(STREAMS, 1), STATE])
            self.assert_close(floats(got["output"][2]), probability, f"{rate} Hz, window {k}, output")
            self.assert_close(floats(got["stateN"][2]), after, f"{rate} Hz, window {k}, stateN")
            state = floats(got["stateN"][2])
            heard.append((got["output"][2], got["stateN"][2]))
        self.assertEqual(len(heard), windows)
        return heard

    def test_silero(self):
        for rate, width in (16000, 576), (8000, 288):
            (self.folder / "rate.npy").write_bytes(npy("int64", (), [rate]))
            first = None
            for stages in STAGES:
                with self.subTest(rate=rate, stages=stages):
                    heard = self.listen(self.compile_silero(rate, width, stages, "--input", "sr=rate.npy"), rate)
                    first = first or heard
                    self.assertEqual(heard, first, "not the numbers of one stage")
            # Silence, then a voice, in every stream.
            probabilities = [floats(output) for output, _ in first]
            self.assertLess(max(probabilities[1]), 0.2)
            self.assertGreater(min(probabilities[-1]), 0.9)

    def test_silero_when_only_the_run_knows_the_rate(self):
        for stages in STAGES:
            with self.subTest(stages=stages):
                self.listen(self.compile_silero(8000, 288, stages), 8000, {"sr": ("int64", (), [8000])})

    def test_silero_windows_that_fit_one_rate_only_ask_for_the_rate(self):
        error = self.compile(SILERO, "--mode=infer", "--stages=1", "--microbatches=1", "--dim", "input:1=576", "--dim", "state:1=1",
                             expect=1)
        self.assertIn("both branches must fit (--input sr=FILE.npy decides now)", error)

    def test_magika(self):
        inputs, wanted = (read_npz(DATA / f"magika.{kind}.npz") for kind in ("inputs", "outputs"))
        _, shape, raw = inputs["bytes"]
        data = {"bytes": ("int32", shape, struct.unpack(f"<{len(raw) // 4}i", raw))}
        names = json.loads((MAGIKA / "config.min.json").read_text())["target_labels_space"]
        first = None
        for stages in STAGES:
            with self.subTest(stages=stages):
                plan = self.compile(MAGIKA / "model.onnx", "--mode=infer", f"--stages={stages}", "--microbatches=2", "--batch=4")
                got = self.infer(plan, data)["target_label"]
                self.assertEqual(got[1], wanted["target_label"][1])
                self.assert_close(floats(got[2]), floats(wanted["target_label"][2]), "target_label")
                first = first or got
                self.assertEqual(got, first, "not the numbers of one stage")
        self.assertIsNotNone(first)
        kinds = [names[scores.index(max(scores))] for scores in rows(first, len(names))]
        self.assertEqual(kinds, ["python", "shell", "json", "csv", "c", "html", "png", "xml"])


if __name__ == "__main__":
    main()
