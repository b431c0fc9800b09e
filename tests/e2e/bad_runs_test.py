"""What piperun refuses: exit 1, a message that names the fault; and what a full disk leaves behind: nothing."""

import json
import math
import os
import pathlib
import resource
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from pipec_testing import BIN, TIMEOUT, Case, Weights, main, write_npz

CLASSES, INPUTS, BATCH = 10, 16, 8


class BadRuns(Case):
    def setUp(self):
        super().setUp()
        self.run_tool("make-model", "mlp", f"--inputs={INPUTS}", "--hidden=16", "--batch=2", "-o", "model.onnx")
        self.plan = self.compile("model.onnx", "--stages=2", f"--batch={BATCH}", "--microbatches=4")

    def data(self, **changes):
        values = Weights(5).random
        arrays = {"x": ("float32", (BATCH, INPUTS), [values.gauss(0, 1) for _ in range(BATCH * INPUTS)]),
                  "labels": ("int64", (BATCH,), [values.randrange(CLASSES) for _ in range(BATCH)])}
        arrays.update(changes)
        path = self.folder / "data.npz"
        write_npz(path, {name: array for name, array in arrays.items() if array})
        return path

    def fails(self, *flags, names, plan=None):
        done = self.run_tool("piperun", plan or self.plan, "--threads=1", "--timeout=20", "--export=out", *flags, expect=1)
        for name in names:
            self.assertIn(name, done.stderr)
        self.assertFalse((self.folder / "out").exists(), "a failed run left an export")
        return done.stderr

    def test_good_data_trains(self):
        self.run_tool("piperun", self.plan, f"--data={self.data()}", "--threads=1")

    def test_values_that_cannot_be_read_are_wrong_usage(self):
        for flags, words in ((["--lr=[=0.1"], "--lr: '[' is no regular expression"),
                             (["--weight-decay=(=0"], "--weight-decay: '(' is no regular expression"),
                             (["--steps"], "--steps: the value is missing, wanted N"),
                             (["--device=null"], "--export: device null computes nothing")):
            self.assertIn(f"piperun: {words}", self.run_tool("piperun", self.plan, "--data=synthetic", "--export=out", *flags,
                                                             expect=2).stderr)

    def test_devices_that_compute_nothing_have_no_loss(self):
        plans = {"1f1b": self.plan, "pipedream": self.compile("model.onnx", "--stages=2", "--batch=2", "--schedule=pipedream")}
        for device in "null", "replay":
            for schedule, plan in plans.items():
                with self.subTest(device=device, schedule=schedule):
                    metrics = self.folder / "metrics.jsonl"
                    flags = ["--steps=2", f"--device={device}", f"--metrics={metrics}", "--eval-data=synthetic"]
                    done = self.run_tool("piperun", plan, "--data=synthetic", *flags)
                    self.assertIn(f"loss          none: device {device} computes nothing\n", done.stdout)
                    self.assertIn("step 1/2  no loss  lr", done.stderr)
                    self.assertRegex(done.stderr, "evaluation after step 0: no loss, ")
                    self.assertNotRegex(done.stdout + done.stderr, "loss 0|norm 0|evaluation    loss|accuracy")
                    self.assertEqual([json.loads(line) for line in metrics.read_text().splitlines()],
                                     [{"step": step, "loss": None, "lr": 0.001} for step in (1, 2)])
                    said = json.loads(self.run_tool("piperun", plan, "--data=synthetic", *flags, "--json").stdout)
                    self.assertEqual([said["first_loss"], said["last_loss"], *[row["loss"] for row in said["evaluations"]]], [None] * 4)

    def test_one_of_a_thing_is_singular(self):
        flags = ["--stages=1", "--batch=1", "--microbatches=1"]
        said = self.run_tool("pipec", "model.onnx", *flags, "-o", "one.plan").stdout
        done = self.run_tool("piperun", "one.plan", "--data=synthetic", "--steps=1", "--threads=1", "--eval-data=synthetic")
        self.assertIn("1 rank, 1 microbatch of 1, 1 thread a rank", done.stderr)
        self.assertNotRegex(said + done.stdout + done.stderr, r"\b1 (samples|microbatches|steps|ranks|stages|threads|nodes|parameters)\b")

    def test_data_is_required(self):
        self.run_tool("piperun", self.plan, expect=2)

    def test_label_out_of_range(self):
        for label in (CLASSES, -1):
            labels = [0] * BATCH
            labels[5] = label
            self.fails(f"--data={self.data(labels=('int64', (BATCH,), labels))}", names=["label", str(label)])

    def test_missing_input(self):
        self.fails(f"--data={self.data(x=None)}", names=["x"])
        self.fails(f"--data={self.data(labels=None)}", names=["labels"])

    def test_wrong_shape(self):
        wrong = ("float32", (BATCH, INPUTS + 1), [0.0] * (BATCH * (INPUTS + 1)))
        self.fails(f"--data={self.data(x=wrong)}", names=["x", str(INPUTS + 1), str(INPUTS)])

    def test_wrong_type(self):
        self.fails(f"--data={self.data(x=('int64', (BATCH, INPUTS), [0] * (BATCH * INPUTS)))}", names=["x", "int64", "float32"])

    def test_different_numbers_of_samples(self):
        self.fails(f"--data={self.data(labels=('int64', (BATCH - 1,), [0] * (BATCH - 1)))}", names=["labels"])

    def test_fewer_samples_than_a_batch(self):
        few = {"x": ("float32", (3, INPUTS), [0.0] * (3 * INPUTS)), "labels": ("int64", (3,), [0] * 3)}
        self.fails(f"--data={self.data(**few)}", names=["3", str(BATCH)])

    def test_data_that_does_not_exist_or_is_no_npz(self):
        self.fails("--data=absent.npz", names=["absent.npz"])
        self.fails(f"--data={self.write('junk.npz', 'junk')}", names=["junk.npz"])

    def test_nan_loss_names_step_and_stage(self):
        x = [0.0] * (BATCH * INPUTS)
        x[7] = math.nan
        self.fails(f"--data={self.data(x=('float32', (BATCH, INPUTS), x))}", names=["step", "nan"])

    def test_edited_plan(self):
        path = self.plan / "rank-001.plan"
        original = path.read_bytes()
        edited = bytearray(original)
        edited[len(edited) // 2] ^= 0x10
        for contents in (bytes(edited), original[:100], original + b"x", b""):
            path.write_bytes(contents)
            self.fails("--data=synthetic", "--steps=1", names=["rank-001.plan"])
        path.unlink()
        self.fails("--data=synthetic", "--steps=1", names=["rank-001.plan"])

    def test_edited_manifest(self):
        path = self.plan / "manifest.json"
        original = path.read_text()
        for field, value in (("microbatches", 5), ("optimizer", "sgd"), ("labels", "x")):
            path.write_text(json.dumps({**json.loads(original), field: value}))
            self.fails("--data=synthetic", "--steps=1", names=["manifest.json", "edited"])
        path.write_text("{")
        self.fails("--data=synthetic", "--steps=1", names=["manifest.json"])

    def test_settings_that_make_no_sense(self):
        for flag in ("--beta1=1", "--beta2=1.5", "--clip-norm=nan", "--epochs=1e300", "--steps=-1", "--lr=nan"):
            done = self.run_tool("piperun", self.plan, "--data=synthetic", flag, expect=2)
            self.assertIn(flag.split("=")[0], done.stderr)
        self.fails("--data=synthetic", "--momentum=0.5", names=["--momentum", "adamw"])

    def test_places_that_cannot_be_written_are_known_before_the_run(self):
        for flag in ("--metrics", "--trace", "--profile"):
            for place in ("absent/file", "."):
                done = self.fails("--data=synthetic", f"{flag}={place}", names=[flag])
                self.assertNotIn("step 1/", done)
        done = self.run_tool("piperun", self.plan, "--data=synthetic", "--export=absent/out", expect=1)
        self.assertIn("absent", done.stderr)
        self.assertFalse((self.folder / "absent").exists())
        (self.plan / "export.onnx").unlink()
        self.assertNotIn("step 1/", self.fails("--data=synthetic", names=["export.onnx"]))

    def test_export_leaves_its_neighbours_alone(self):
        for name in ("out.tmp", "out.old"):
            (self.folder / name).mkdir()
            (self.folder / name / "letter.txt").write_text("dear")
        for _ in range(2):
            self.run_tool("piperun", self.plan, "--data=synthetic", "--steps=1", "--threads=1", "--export=out")
        left = sorted(str(path.relative_to(self.folder)) for path in self.folder.glob("out*/*"))
        self.assertEqual(left, ["out.old/letter.txt", "out.tmp/letter.txt", "out/model.onnx", "out/model.safetensors"])

    def test_a_trace_into_a_device_leaves_the_device(self):
        self.run_tool("piperun", self.plan, "--data=synthetic", "--steps=1", "--trace=/dev/stdout")
        pipe = self.folder / "pipe"
        os.mkfifo(pipe)
        reader = subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE)
        self.run_tool("piperun", self.plan, "--data=synthetic", "--steps=1", f"--trace={pipe}")
        self.assertIn("traceEvents", json.loads(reader.communicate(timeout=TIMEOUT)[0]))
        self.assertTrue(pipe.is_fifo())

    def test_not_a_plan(self):
        (self.folder / "folder").mkdir()
        self.fails("--data=synthetic", plan=self.folder / "folder", names=["folder"])
        self.fails("--data=synthetic", plan=self.folder / "absent", names=["absent"])

    def test_export_over_something_else(self):
        mine = self.folder / "mine"
        mine.mkdir()
        (mine / "letter.txt").write_text("dear")
        done = self.run_tool("piperun", self.plan, "--data=synthetic", "--steps=1", "--threads=1", "--export=mine", expect=1)
        self.assertIn("mine", done.stderr)
        self.assertEqual([entry.name for entry in mine.iterdir()], ["letter.txt"])


class FullDisk(Case):
    """A disk that takes no more is played by a limit on the size of files."""

    def run_limited(self, tool, *args, limit):
        def preexec():
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

        # Python ignores SIGXFSZ, and so shall the tool: the write then fails as on a full disk.
        return subprocess.run([str(BIN / tool), *args], capture_output=True, text=True, timeout=TIMEOUT, cwd=self.folder,
                              preexec_fn=preexec, restore_signals=False, stdin=subprocess.DEVNULL)

    def setUp(self):
        super().setUp()
        self.run_tool("make-model", "mlp", "--hidden=256", "--inputs=256", "-o", "model.onnx")
        self.before = sorted(entry.name for entry in self.folder.iterdir())

    def names(self):
        return sorted(entry.name for entry in self.folder.iterdir())

    def test_compile(self):
        done = self.run_limited("pipec", "model.onnx", "--stages=2", "-o", "a.plan", limit=100_000)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("a.plan", done.stderr)
        self.assertEqual(self.names(), self.before)

    def test_compile_over_an_older_plan(self):
        self.run_tool("pipec", "model.onnx", "--stages=2", "-o", "a.plan")
        before = {path.name: path.read_bytes() for path in (self.folder / "a.plan").rglob("*") if path.is_file()}
        done = self.run_limited("pipec", "model.onnx", "--stages=3", "-o", "a.plan", limit=100_000)
        self.assertEqual(done.returncode, 1, done.stderr)
        after = {path.name: path.read_bytes() for path in (self.folder / "a.plan").rglob("*") if path.is_file()}
        self.assertEqual(after, before)

    def test_beside_the_plan(self):
        for flag in ("--report", "--trace", "--emit-schedule"):
            done = self.run_limited("pipec", "model.onnx", "--dry-run", f"{flag}=file", limit=100)
            self.assertEqual((done.returncode, self.names()), (1, self.before), done.stderr)
            self.assertIn("file", done.stderr)

    def test_made_model(self):
        done = self.run_limited("make-model", "mlp", "-o", "new.onnx", limit=1000)
        self.assertEqual((done.returncode, self.names()), (1, self.before), done.stderr)

    def test_metrics_keep_whole_lines(self):
        self.run_tool("pipec", "model.onnx", "--stages=2", "-o", "a.plan")
        done = self.run_limited("piperun", "a.plan", "--data=synthetic", "--threads=1", "--metrics=m", limit=200)
        self.assertEqual(done.returncode, 1, done.stderr)
        lines = (self.folder / "m").read_text().splitlines(keepends=True)
        self.assertEqual([json.loads(line)["step"] for line in lines], [1, 2])
        self.assertTrue(lines[-1].endswith("\n"))

    def test_export(self):
        self.run_tool("pipec", "model.onnx", "--stages=2", "-o", "a.plan")
        before = self.names()
        done = self.run_limited("piperun", "a.plan", "--data=synthetic", "--steps=1", "--threads=1", "--export=out", limit=100_000)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("out", done.stderr)
        self.assertEqual(self.names(), before)


if __name__ == "__main__":
    main()
