"""Schedules in PyTorch's CSV: what pipec writes it reads, runs and gets the same numbers from; what is unsound it refuses, at its place."""

import json
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from pipec_testing import Case, Weights, main, schedules, write_npz

GOLDENS = pathlib.Path(__file__).resolve().parents[1] / "data/schedules"
COMMON = ["--batch=16"]


class ScheduleFiles(Case):
    def setUp(self):
        super().setUp()
        self.model = self.folder / "model.onnx"
        self.run_tool("make-model", "mlp", "--layers=9", "--inputs=8", "--hidden=8", "--classes=4", "--batch=symbolic", "-o", self.model)
        values = Weights(7).random
        self.data = self.folder / "data.npz"
        write_npz(self.data, {"x": ("float32", (32, 8), [values.gauss(0, 1) for _ in range(32 * 8)]),
                              "labels": ("int64", (32,), [values.randrange(4) for _ in range(32)])})

    def reference(self):
        return self.train(self.compile(self.model, "--stages=1", "--microbatches=8", *COMMON), self.data)

    def test_what_is_written_can_be_read(self):
        reference = self.reference()
        for schedule in schedules(ranks=2, microbatches=8):
            with self.subTest(schedule=schedule):
                written, again = self.folder / "written.csv", self.folder / "again.csv"
                self.compile(self.model, "--stages=2", "--microbatches=8", f"--schedule={schedule}", f"--emit-schedule={written}", *COMMON)
                plan = self.compile(self.model, f"--schedule={written}", f"--emit-schedule={again}", *COMMON)
                self.assertEqual(again.read_text(), written.read_text())
                self.assert_same_run(self.train(plan, self.data), reference, schedule)

    def test_files_of_others(self):
        reference = self.reference()
        for golden in sorted(GOLDENS.glob("*.csv")):
            with self.subTest(golden=golden.name):
                self.assert_same_run(self.train(self.compile(self.model, f"--schedule={golden}", *COMMON), self.data), reference, golden.name)

    def test_an_order_of_ones_own(self):
        # Two microbatches through, then two more; half of the backwards in two parts.
        text = ("0F0,0F1,0B0,0I1,0F2,0W1,0F3,0I2,0W2,0B3\n"
                "1F0,1I0,1W0,1F1,1B1,1F2,1F3,1I2,1W2,1B3\n")
        path = self.write("own.csv", text)
        reference = self.train(self.compile(self.model, "--stages=1", "--microbatches=4", *COMMON), self.data)
        self.assert_same_run(self.train(self.compile(self.model, f"--schedule={path}", *COMMON), self.data), reference, "own")

    def test_forward_only_is_for_inference(self):
        path = self.write("forward.csv", "0F0,0F1\n1F0,1F1\n")
        self.assertIn("--mode=infer", self.compile(self.model, f"--schedule={path}", *COMMON, expect=1))
        self.compile(self.model, f"--schedule={path}", "--mode=infer", *COMMON)

    def test_unsound_orders_are_refused_at_their_cell(self):
        for what, text, cell, row in (
                ("missing", "0F0,0F1,0B0\n1F0,1F1,1B0,1B1\n", "line 1, cell 3", "0F0  0F1 >0B0<"),
                ("double", "0F0,,0F0,0B0\n1F0,1B0\n", "line 1, cell 3", "0F0 >0F0< 0B0"),
                ("out of order", "0F0,0F1,0B1,0B0\n1F0,1F1,1B0,1B1\n", "line 1, cell 4", "0F0  0F1  0B1 >0B0<"),
                ("deadlock", "0F0,0B0,0F1,0B1\n1F0,1F1,,1B0,1B1\n", "line 1, cell 2", "0F0 >0B0< 0F1  0B1"),
                ("deadlock, other rank", "0F0,0B0,0F1,0B1\n1F0,,,1F1,1B0,1B1\n", "line 2, cell 4", "1F0 >1F1< 1B0  1B1"),
                ("a stage on two lines", "0F0,0B0\n,0F1,0B1\n", "line 2, cell 2, 0F1", ""),
                ("no action", "0F0,0Q0\n", "line 1, cell 2, '0Q0'", "")):
            with self.subTest(fault=what):
                message = self.compile(self.model, f"--schedule={self.write('bad.csv', text)}", "--batch=16", expect=1)
                self.assertIn(cell, message)
                self.assertIn(row, message)

    def test_too_much_memory_is_refused_at_its_cell(self):
        # 65536 x 8 floats, 2 MB, for each value that is kept; seven layers and more on rank 0, little on rank 1.
        path = self.write("large.csv", "0F0,0F1,,0F2,0F3,0B0,0B1,0B2,0B3\n1F0,1B0,1F1,1B1,1F2,1B2,1F3,1B3\n")
        common = [f"--schedule={path}", "--batch=262144", "--recompute=none"]
        cut = [*common, "--cut=" + "layers.6.relu"]
        done = self.run_tool("pipec", self.model, *cut, "--dry-run", "--json")
        peaks = [stage["peak_bytes"] + stage["workspace_bytes"] for stage in json.loads(done.stdout)["stages"]]
        self.assertGreater(peaks[0], peaks[1])
        a_microbatch = 8 * 65536 * 8 * 4  # what rank 0 keeps of one: x and seven of its values
        for short, cell in ((1, "0F3 (line 1, cell 5)"), (a_microbatch + 1, "0F2 (line 1, cell 4)"),
                            (2 * a_microbatch + 1, "0F1 (line 1, cell 2)"), (3 * a_microbatch + 1, "0F0 (line 1, cell 1)")):
            with self.subTest(short=short):
                message = self.compile(self.model, *cut, f"--memory={peaks[0] - short}B", expect=1)
                self.assertIn(f"rank 0 needs {peaks[0]} bytes", message)
                self.assertIn(cell, message)
                self.assertIn(f">{cell.split()[0]}<", message)
        self.compile(self.model, *cut, f"--memory={peaks[0]}B")
        # Without a cut of one's own no cut may fit: then it is that of the one that needs least.
        message = self.compile(self.model, *common, "--memory=20MB", expect=1)
        self.assertRegex(message, r"rank \d needs \d+ bytes of memory")
        self.assertRegex(message, r"[01]F\d \(line [12], cell \d\): \d microbatch.* more than the limit of 20000000\npipec:   rank [01]: ")

    def test_flags_may_only_repeat_the_shape(self):
        path = self.write("two.csv", "0F0,0B0\n1F0,1B0\n")
        self.compile(self.model, f"--schedule={path}", "--stages=2", "--microbatches=1", *COMMON)
        for flag in ("--stages=4", "--microbatches=2", "--virtual-stages=2"):
            message = self.compile(self.model, f"--schedule={path}", flag, *COMMON, expect=1)
            self.assertTrue(re.search(re.escape(flag), message) and "has 1" in message or "has 2" in message, message)
        self.assertIn("cannot read", self.compile(self.model, "--schedule=nowhere.csv", *COMMON, expect=1))
        self.assertIn("zb-v", self.compile(self.model, "--schedule=zbv", *COMMON, expect=2))


if __name__ == "__main__":
    main()
