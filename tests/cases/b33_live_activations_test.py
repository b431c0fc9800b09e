"""B33: activations and receive buffers live as long as the schedule needs them, not for the whole step."""

import json
import pathlib
import re
import resource
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from pipec_testing import BIN, TIMEOUT, Case, Weights, main, write_npz

STAGES, WIDTH, ROWS = 4, 512, 512  # 1 MB of float32 a value


class B33(Case):
    def setUp(self):
        super().setUp()
        self.model = self.folder / "mlp.onnx"
        self.run_tool("make-model", "mlp", "--layers=8", f"--inputs={WIDTH}", f"--hidden={WIDTH}", f"--classes={WIDTH}",
                      f"--batch={ROWS}", "-o", self.model)

    def peak(self, schedule, microbatches):
        done = self.run_tool("pipec", self.model, f"--stages={STAGES}", f"--schedule={schedule}",
                             f"--microbatches={microbatches}", "--dry-run", "--json")
        return json.loads(done.stdout)["peak_bytes"]

    def test_peak_does_not_grow_with_microbatches(self):
        few, many = self.peak("1f1b", 8), self.peak("1f1b", 64)
        self.assertLess(abs(many / few - 1), 0.02)
        # gpipe keeps every microbatch: the instrument can tell the difference.
        self.assertGreater(self.peak("gpipe", 64), 4 * self.peak("gpipe", 8))

    def test_slots_are_bounded_by_what_is_in_flight(self):
        for microbatches in (8, 64):
            done = self.run_tool("pipec", self.model, f"--stages={STAGES}", f"--microbatches={microbatches}", "--dry-run",
                                 "--print=planned")
            rank, seen = None, {"activation": 0, "message": 0}
            for line in done.stdout.splitlines():
                if match := re.match(r"memory rank (\d+):", line):
                    rank = int(match[1])
                if match := re.match(r" +\[.*\) (activation|message) .*: \d+ bytes(?: x (\d+))?$", line):
                    kind, slots = match[1], int(match[2] or 1)
                    seen[kind] += 1
                    # What arrived and waits for its F is no activation yet: one more.
                    self.assertLessEqual(slots, STAGES - rank + (kind == "message"), f"rank {rank}: {line}")
            self.assertGreaterEqual(min(seen.values()), STAGES - 1, seen)

    def test_two_hundred_steps_take_no_more_memory_than_five(self):
        model = self.folder / "small.onnx"
        self.run_tool("make-model", "mlp", "--layers=8", "--inputs=64", "--hidden=64", "--classes=8", "--batch=64", "-o", model)
        plan = self.compile(model, f"--stages={STAGES}", "--microbatches=8")
        values = Weights(7).random
        data = self.folder / "data.npz"
        write_npz(data, {"x": ("float32", (512, 64), [values.gauss(0, 1) for _ in range(512 * 64)]),
                         "labels": ("int64", (512,), [values.randrange(8) for _ in range(512)])})
        peaks = []
        for steps in (5, 200):
            # ru_maxrss of the children only grows: the longer run comes second.
            subprocess.run([str(BIN / "piperun"), str(plan), f"--data={data}", f"--epochs={steps}", "--threads=1"],
                           check=True, capture_output=True, timeout=TIMEOUT)
            peaks.append(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
        self.assertLess(peaks[1] / peaks[0], 1.02)


if __name__ == "__main__":
    main()
