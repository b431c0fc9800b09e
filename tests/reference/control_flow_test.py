"""Unrolled loops and scans, branches, sequences and optionals give what onnxruntime gives (make_control_flow.py)."""

import json
import pathlib
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from pipec_testing import ROOT, Case, main, read_npz, write_npz

DATA = ROOT / "tests/data/control_flow"
CODES = {"<f4": "f", "<i8": "q", "|b1": "?"}


class ControlFlow(Case):
    def test_every_model(self):
        models = sorted(DATA.glob("*.onnxtxt"))
        self.assertTrue(models)
        for path in models:
            arrays = json.loads(path.with_suffix(".json").read_text())
            data = self.folder / "x.npz"
            write_npz(data, {n: ("float32", tuple(a["shape"]), a["values"]) for n, a in arrays["inputs"].items()})
            for stages in (1,) if path.stem == "optionals" else (1, 2):  # one node is left of that model
                with self.subTest(model=path.stem, stages=stages):
                    plan = self.compile(path, "--mode=infer", f"--stages={stages}", "--microbatches=1")
                    self.run_tool("piperun", plan, f"--data={data}", "--outputs=out.npz", "--threads=1", "--timeout=20")
                    got = read_npz(self.folder / "out.npz")
                    self.assertEqual(sorted(got), sorted(arrays["outputs"]))
                    for name, wanted in arrays["outputs"].items():
                        descr, shape, raw = got[name]
                        self.assertEqual(list(shape), wanted["shape"], name)
                        values = struct.unpack(f"<{len(wanted['values'])}{CODES[descr]}", raw)
                        for a, b in zip(values, wanted["values"]):
                            self.assertAlmostEqual(a, b, delta=1e-5 * (1 + abs(b)), msg=name)


if __name__ == "__main__":
    main()
