"""B33: activations and receive buffers live as long as the schedule needs them, not for the whole step."""

import json
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from pipec_testing import Case, Weights, listed_schedules, main, write_npz

STAGES, LAYERS, WIDTH, ROWS = 4, 8, 512, 512  # 1 MB of float32 a value

# What a row of --list-schedules says that rank r keeps, in stages of which V make 1/P of the model: V times the text.
KEPT = {
    "M": lambda P, V, M, r: V * M,
    "min(P-r, M)": lambda P, V, M, r: min(P - r, M),
    "min(2(P-1-r)+1, M)": lambda P, V, M, r: min(2 * (P - 1 - r) + 1, M),
    "min((V-1)N+2(P-1-r)+1, VM)/V": lambda P, V, M, r: min((V - 1) * (M // max(1, M // P)) + 2 * (P - 1 - r) + 1, V * M),
    "((V-1)N+P)/V until W": lambda P, V, M, r: (V - 1) * (M // max(1, M // P)) + P,
    "2P until W": lambda P, V, M, r: 2 * P,
    "P until W": lambda P, V, M, r: 2 * P,
    "P/2+1 until W, rounded down": lambda P, V, M, r: 2 * (P // 2 + 1),
    "(P+4)/3 until W, rounded down": lambda P, V, M, r: 2 * ((P + 4) // 3),
    "P+1/2 until W": lambda P, V, M, r: 2 * P + 1,
}


def most_kept(actions):
    """Of a list of compute actions in their order, the most microbatches of its stages between F and B or W."""
    kept, most = set(), 0
    for action in actions:
        stage, kind, m = re.fullmatch(r"(\d+)([FBIW])(\d+)", action).groups()
        if kind == "F":
            kept.add((stage, m))
            most = max(most, len(kept))
        elif kind in "BW":
            kept.remove((stage, m))
    return most


class B33(Case):
    def setUp(self):
        super().setUp()
        self.model = self.folder / "mlp.onnx"
        self.run_tool("make-model", "mlp", f"--layers={LAYERS}", f"--inputs={WIDTH}", f"--hidden={WIDTH}", f"--classes={WIDTH}",
                      f"--batch={ROWS}", "-o", self.model)

    def small_model(self):
        """A model with a little of everything, and data for eight microbatches."""
        model, data = self.folder / "small.onnx", self.folder / "data.npz"
        self.run_tool("make-model", "mlp", "--layers=8", "--inputs=64", "--hidden=64", "--classes=8", "--batch=64", "-o", model)
        values = Weights(7).random
        write_npz(data, {"x": ("float32", (512, 64), [values.gauss(0, 1) for _ in range(512 * 64)]),
                         "labels": ("int64", (512,), [values.randrange(8) for _ in range(512)])})
        return model, data

    def cut(self, schedule):
        """The same at any number of microbatches: pipec's own follows the step, and with it the number."""
        each = LAYERS // (STAGES * listed_schedules()[schedule]["default_virtual_stages"])
        return "--cut=" + ",".join(f"layers.{k}.relu" for k in range(each - 1, LAYERS - 1, each))

    def peak(self, schedule, microbatches):
        done = self.run_tool("pipec", self.model, f"--stages={STAGES}", f"--schedule={schedule}", self.cut(schedule),
                             f"--microbatches={microbatches}", "--dry-run", "--json")
        return json.loads(done.stdout)["peak_bytes"]

    def planned(self, schedule, microbatches):
        """(by rank: the bound of its arena and the bytes of activations when most is live, those of a microbatch of a stage; by
        rank: the compute actions in their order)."""
        written = self.folder / "order.csv"
        done = self.run_tool("pipec", self.model, f"--stages={STAGES}", f"--schedule={schedule}", self.cut(schedule),
                             f"--microbatches={microbatches}", "--dry-run", "--print=planned", f"--emit-schedule={written}")
        ranks = []
        for line in done.stdout.splitlines():
            if match := re.match(r"memory rank \d+: \d+ bytes, lower bound (\d+)(?:.*, activation (\d+))?", line):
                ranks.append([int(match[1]), int(match[2] or 0), 0])
            if match := re.match(r" +activation (\S+): (\d+) bytes at ", line):
                ranks[-1][2] += int(match[2])
        lines = [re.sub(r"[();]|OVERLAP_F_B", lambda m: "," if m[0] == ";" else "", line).split(",")
                 for line in written.read_text().splitlines()]
        return ranks, lines

    def test_peak_does_not_grow_with_microbatches(self):
        for schedule, row in listed_schedules().items():
            with self.subTest(schedule=schedule):
                # Enough for the schedule to keep what it can: 2P and one that waits.
                few, many = self.peak(schedule, 8 if schedule == "1f1b" else 16), self.peak(schedule, 64)
                if row["activations"] == "M":
                    # These keep every microbatch: the instrument can tell the difference.
                    self.assertGreater(many, 2.5 * few)
                else:
                    self.assertLess(abs(many / few - 1), 0.05)

    def test_memory_is_for_what_is_in_flight(self):
        for schedule, row in listed_schedules().items():
            V = row["default_virtual_stages"]
            bounds = []
            for microbatches in (16, 32):
                with self.subTest(schedule=schedule, microbatches=microbatches):
                    ranks, lines = self.planned(schedule, microbatches)
                    kept = KEPT[row["activations"]]
                    self.assertEqual(len(ranks), STAGES)
                    for rank, ((_, activations, one), line) in enumerate(zip(ranks, lines)):
                        self.assertLessEqual(most_kept(line), kept(STAGES, V, microbatches, rank), f"rank {rank}")
                        # One more for each of its stages: what goes as a message is there a little longer.
                        self.assertGreater(one, WIDTH * ROWS * 4)
                        self.assertLessEqual(activations, (most_kept(line) + V) * one / V, f"rank {rank}")
                    bounds.append([bound for bound, _, _ in ranks])
            if row["activations"] != "M":
                with self.subTest(schedule=schedule):
                    # One value more may be on its way.
                    for few, many in zip(*bounds):
                        self.assertLess(abs(many - few), 1.1 * WIDTH * ROWS * 4, "memory grows with the number of microbatches")

    def test_one_f_one_b_keeps_what_the_field_says(self):
        for microbatches in (8, 64):
            for rank, (_, activations, one) in enumerate(self.planned("1f1b", microbatches)[0]):
                self.assertLessEqual(activations, (STAGES - rank) * one, f"rank {rank}")

    def test_runs_keep_no_more_than_their_row_says(self):
        model, data = self.small_model()
        trace = self.folder / "trace.json"
        for schedule, row in listed_schedules().items():
            with self.subTest(schedule=schedule):
                plan = self.compile(model, f"--stages={STAGES}", f"--schedule={schedule}", "--microbatches=8")
                self.run_tool("piperun", plan, f"--data={data}", "--threads=1", f"--trace={trace}")
                events = json.loads(trace.read_text())
                events = events["traceEvents"] if isinstance(events, dict) else events
                measured = {}
                for event in sorted((e for e in events if e["ph"] == "X"), key=lambda e: e["ts"]):
                    if re.fullmatch(r"\d+[FBIW]\d+", event["name"]):
                        measured.setdefault(event["pid"], []).append(event["name"])
                self.assertEqual(sorted(measured), list(range(STAGES)))
                for rank, actions in measured.items():
                    self.assertLessEqual(most_kept(actions), KEPT[row["activations"]](STAGES, row["default_virtual_stages"], 8, rank))
                    self.assertGreaterEqual(len(actions), 2 * 8 * row["default_virtual_stages"])

    def test_two_hundred_steps_take_no_more_memory_than_five(self):
        model, data = self.small_model()
        for schedule in listed_schedules():
            with self.subTest(schedule=schedule):
                plan = self.compile(model, f"--stages={STAGES}", f"--schedule={schedule}", "--microbatches=8")
                few, many = [self.grown(plan, data, steps) for steps in (5, 200)]
                # Where the allocator and the threads put their own differs from run to run by what few values take; one value
                # a step that is not given back would be four times the limit.
                self.assertLess(many - few, (200 - 5) * 64 * 64 * 4 / 4)

    def grown(self, plan, data, steps):
        """Bytes that a run's own memory grew by."""
        done = self.run_tool("piperun", plan, f"--data={data}", f"--epochs={steps}", "--threads=1", "--json")
        return json.loads(done.stdout)["grown_bytes"]


if __name__ == "__main__":
    main()
