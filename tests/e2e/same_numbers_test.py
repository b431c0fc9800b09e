"""However a model is cut, losses and parameters are bit-identical to one rank's; ranks work at the same time and on their own files."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from pipec_testing import BIN, TIMEOUT, Case, Weights, main, schedules, write_npz

MODELS = {
    "mlp": ["mlp", "--layers=9", "--inputs=8", "--hidden=16", "--classes=4"],
    "mlp with skips": ["mlp", "--layers=9", "--inputs=8", "--hidden=16", "--classes=4", "--skips"],
    "gpt, tied, dropout": ["gpt", "--layers=3", "--hidden=16", "--heads=2", "--sequence=8", "--vocabulary=12", "--dropout=0.2"],
}
MICROBATCHES, BATCH, SAMPLES = 8, 16, 48


class SameNumbers(Case):
    def data(self, model):
        values = Weights(7).random
        path = self.folder / "data.npz"
        if model.startswith("gpt"):
            tokens = [values.randrange(12) for _ in range(SAMPLES * 8)]
            write_npz(path, {"input_ids": ("int64", (SAMPLES, 8), tokens), "labels": ("int64", (SAMPLES, 8), tokens[1:] + [0])})
        else:
            write_npz(path, {"x": ("float32", (SAMPLES, 8), [values.gauss(0, 1) for _ in range(SAMPLES * 8)]),
                             "labels": ("int64", (SAMPLES,), [values.randrange(4) for _ in range(SAMPLES)])})
        return path

    def model(self, name):
        path = self.folder / "model.onnx"
        self.run_tool("make-model", *MODELS[name], "--batch=symbolic", "--seed=1", "-o", path)
        return path

    def test_every_model_schedule_and_stage_count(self):
        for name in MODELS:
            model, data = self.model(name), self.data(name)
            common = [f"--microbatches={MICROBATCHES}", f"--batch={BATCH}"]
            flags = ["--shuffle", "--epochs=2", "--seed=3", "--clip-norm=1", "--lr=0.01", "--lr-schedule=cosine"]
            reference = self.train(self.compile(model, "--stages=1", *common), data, *flags)
            self.assertEqual(len(reference.losses), 6)
            self.assertEqual(len(set(reference.losses)), 6)
            for stages in (1, 2, 3, 4):
                for schedule in schedules(stages, microbatches=MICROBATCHES):
                    with self.subTest(model=name, schedule=schedule, stages=stages):
                        plan = self.compile(model, f"--stages={stages}", f"--schedule={schedule}", *common)
                        self.assert_same_run(self.train(plan, data, *flags), reference, f"{name} {schedule} P={stages}")

    def test_seed_changes_dropout(self):
        name = "gpt, tied, dropout"
        plan, data = self.compile(self.model(name), "--stages=2", "--microbatches=8", "--batch=16"), self.data(name)
        runs = [self.train(plan, data, f"--seed={seed}") for seed in (0, 0, 1)]
        self.assert_same_run(runs[1], runs[0], "the same seed")
        self.assertNotEqual(runs[2].losses[0], runs[0].losses[0])

    def test_ranks_work_at_the_same_time(self):
        model = self.folder / "wide.onnx"
        self.run_tool("make-model", "mlp", "--layers=8", "--inputs=8", "--hidden=1024", "--classes=4", "--batch=symbolic", "-o", model)
        plan = self.compile(model, "--stages=4", "--microbatches=6", "--batch=768")
        values = Weights(7).random
        data, trace = self.folder / "wide.npz", self.folder / "trace.json"
        write_npz(data, {"x": ("float32", (1536, 8), [values.gauss(0, 1) for _ in range(1536 * 8)]),
                         "labels": ("int64", (1536,), [values.randrange(4) for _ in range(1536)])})
        self.run_tool("piperun", plan, f"--data={data}", "--threads=1", f"--trace={trace}")
        events = json.loads(trace.read_text())
        events = events["traceEvents"] if isinstance(events, dict) else events
        work = [e for e in events if e["ph"] == "X" and re.fullmatch(r"\d+[FB]\d+", e["name"])]
        self.assertEqual({e["pid"] for e in work}, {0, 1, 2, 3})
        for a in range(4):
            for b in range(a):
                overlap = any(x["ts"] < y["ts"] + y["dur"] and y["ts"] < x["ts"] + x["dur"]
                              for x in work if x["pid"] == a for y in work if y["pid"] == b)
                self.assertTrue(overlap, f"ranks {a} and {b} never work at the same time")

    def test_a_rank_opens_only_its_own_plan_file(self):
        if not shutil.which("strace"):
            self.fail("strace is missing; tools/setup.sh installs it")
        plan = self.compile(self.model("mlp"), "--stages=4", "--microbatches=8", "--batch=16")
        log = self.folder / "opened"
        command = ["strace", "-f", "-qq", "-e", "trace=openat", "-o", log, BIN / "piperun", plan, f"--data={self.data('mlp')}"]
        # The leak checker of the address sanitizer cannot run under strace.
        environment = dict(os.environ, ASAN_OPTIONS="detect_leaks=0")
        subprocess.run([str(word) for word in command], check=True, capture_output=True, timeout=TIMEOUT, env=environment)
        opened = {}  # rank file -> threads that opened it
        for line in log.read_text().splitlines():
            if match := re.match(r"(\d+) +openat\(.*/(rank-\d+\.plan)\"", line):
                opened.setdefault(match[2], set()).add(match[1])
        self.assertEqual(set(opened), {f"rank-00{r}.plan" for r in range(4)})
        threads = [thread for ids in opened.values() for thread in ids]
        self.assertEqual(len(threads), len(set(threads)), f"a thread opened two plan files, or two threads one: {opened}")
        self.assertTrue(all(len(ids) == 1 for ids in opened.values()))


if __name__ == "__main__":
    main()
