"""What pipec refuses: exit 1, one message that names the fault and what would help, nothing written."""

import json
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from pipec_testing import BIN, TIMEOUT, Case, Weights, main, model_text

WIDTH = 8


def mlp(layers=3, batch="4", last=None, opset=21, extra_nodes=(), outputs=None):
    weights, initializers, nodes, x = Weights(), [], [], "x"
    for i in range(layers):
        initializers.append(weights.tensor(f"w{i}", WIDTH, WIDTH))
        nodes += [f"h{i} = MatMul({x}, w{i})", f"r{i} = Relu(h{i})"]
        x = f"r{i}"
    nodes += list(extra_nodes)
    return model_text([f"float[{batch},{WIDTH}] x"], outputs or [f"float[{batch},{WIDTH}] {x}"], initializers, nodes, opset)


class BadModels(Case):
    def refuses(self, model, *flags, names):
        """One line on stderr that holds each of `names`, and no plan."""
        message = self.compile(model, *flags, expect=1)
        self.assertEqual(len(message.strip().splitlines()), 1, message)
        for name in names:
            self.assertIn(name, message)
        self.assertEqual([entry.name for entry in self.folder.iterdir() if entry.name.startswith("plan")], [])
        return message

    def test_not_onnx(self):
        self.refuses(self.write("cat.onnx", "this is no model"), names=["cat.onnx"])

    def test_empty(self):
        self.refuses(self.write("empty.onnx", ""), names=["empty.onnx"])

    def test_text_with_a_syntax_error(self):
        self.refuses(self.write("bad.onnxtxt", mlp().replace("Relu(", "Relu((")), names=["bad.onnxtxt"])

    def test_truncated(self):
        self.run_tool("make-model", "mlp", "-o", "model.onnx")
        whole = (self.folder / "model.onnx").read_bytes()
        for length in (10, len(whole) // 2, len(whole) - 1):
            path = self.folder / "cut.onnx"
            path.write_bytes(whole[:length])
            self.refuses(path, names=["cut.onnx"])

    def test_absent(self):
        self.refuses(self.folder / "absent.onnx", names=["absent.onnx"])

    def test_unknown_op(self):
        model = mlp(extra_nodes=["[oops] y = Frobnicate(r2)"], outputs=[f"float[4,{WIDTH}] y"])
        self.refuses(self.write("model.onnxtxt", model), names=["Frobnicate", "21"])

    def test_unknown_domain(self):
        model = mlp(extra_nodes=["y = com.example.Special(r2)"], outputs=[f"float[4,{WIDTH}] y"])
        model = model.replace('["" : 21]', '["" : 21, "com.example" : 3]')
        self.refuses(self.write("model.onnxtxt", model), names=["Special", "com.example"])

    def test_opset_from_the_future(self):
        self.refuses(self.write("model.onnxtxt", mlp(opset=999)), names=["999"])

    def test_unbound_dimension_names_the_flag(self):
        model = model_text([f"float[4,L,{WIDTH}] x"], [f"float[4,L,{WIDTH}] y"], [Weights().tensor("w", WIDTH, WIDTH)],
                           ["h = MatMul(x, w)", "y = Relu(h)"])
        path = self.write("model.onnxtxt", model)
        self.refuses(path, names=["L", "--dim"])
        self.compile(path, "--dim", "L=2", "--stages=2")

    def test_dimension_that_does_not_exist(self):
        self.refuses(self.write("model.onnxtxt", mlp(batch="N")), "--dim=M=4", names=["M"])

    def test_more_stages_than_can_be_cut(self):
        message = self.refuses(self.write("model.onnxtxt", mlp()), "--stages=50", names=["50", "at most"])
        most = int(message.split("at most ")[1].split()[0].rstrip(",.;"))
        self.compile(self.folder / "model.onnxtxt", f"--stages={most}")

    def test_batch_that_does_not_divide_names_the_nearest(self):
        path = self.write("model.onnxtxt", mlp(batch="N"))
        self.refuses(path, "--batch=10", "--microbatches=4", names=["--batch=10", "--batch=8", "--microbatches=5"])
        self.compile(path, "--batch=10", "--microbatches=5")

    def test_batch_that_is_not_the_models(self):
        """Written for 4 samples, two in a row: that cannot be said of 3."""
        path = self.write("model.onnxtxt", model_text(
            ["float[4,8] x"], ["float[4,8] y"], [Weights().tensor("w", 8, 8), "int64[2] pairs = {2, 16}", "int64[2] back = {4, 8}"],
            ["p = Reshape(x, pairs)", "b = Reshape(p, back)", "y = MatMul(b, w)"]))
        self.refuses(path, "--batch=12", "--microbatches=4", names=["Reshape", "axis 0", "batch of 4", "3 sample"])

    def test_interleaved_microbatches_name_the_nearest(self):
        path = self.write("model.onnxtxt", mlp(layers=12))
        self.refuses(path, "--stages=4", "--schedule=interleaved", "--virtual-stages=2", "--microbatches=9", names=["9"])
        self.compile(path, "--stages=4", "--schedule=interleaved", "--virtual-stages=2", "--microbatches=10")

    def test_loss_that_is_not_a_scalar(self):
        self.refuses(self.write("model.onnxtxt", mlp()), "--loss=output:r2", names=["r2", "one element"])

    def test_loss_that_does_not_exist(self):
        self.refuses(self.write("model.onnxtxt", mlp()), "--loss=output:los", names=["los"])

    def test_loss_that_depends_on_no_parameter(self):
        model = model_text([f"float[4,{WIDTH}] x"], ["float y"], [], ["y = ReduceMean<keepdims=0>(x)"])
        self.refuses(self.write("model.onnxtxt", model), "--stages=1", names=["parameter"])

    def test_regex_that_matches_nothing(self):
        path = self.write("model.onnxtxt", mlp())
        self.refuses(path, "--train=nothing.*", names=["--train"])
        self.refuses(path, "--freeze=nothing.*", names=["--freeze=nothing.*", "such as"])

    def test_flags_of_training_in_inference(self):
        path = self.write("model.onnxtxt", mlp())
        for flag in ("--loss=mse", "--optimizer=sgd", "--train=.*", "--freeze=.*", "--lora=.*:1", "--class-weights=no.npy",
                     "--label-smoothing=0.1", "--ignore-index=3", "--recompute=all"):
            with self.subTest(flag=flag):
                self.assertIn(f"pipec: {flag.split('=')[0]} belongs to --mode=train", self.compile(path, "--mode=infer", flag, expect=2))

    def test_results_do_not_replace_the_model(self):
        path = self.write("model.onnxtxt", mlp())
        before = path.read_bytes()
        for flag in ("--trace", "--report", "--emit-schedule"):
            self.refuses(path, f"{flag}={path}", names=[flag, "is the model"])
        self.assertEqual(path.read_bytes(), before)

    def test_batch_normalization_over_one_value(self):
        w = Weights()
        nodes = ["h, m, v = BatchNormalization<training_mode = 1>(x, s, b, mean, var)", "y = MatMul(h, w)"]
        path = self.write("model.onnxtxt", model_text(
            ["float[N,8] x"], ["float[N,8] y"], [w.tensor(name, 8) for name in ("s", "b", "mean", "var")] + [w.tensor("w", 8, 8)], nodes))
        self.refuses(path, "--stages=1", "--microbatches=4", "--batch=4", names=["BatchNormalization", "one value a channel", "--batch"])
        self.compile(path, "--stages=1", "--microbatches=4", "--batch=8")

    def test_model_larger_than_the_device_names_the_least_memory(self):
        self.run_tool("make-model", "gpt", "--preset=gpt-3", "--layers=64", "--no-weights", "-o", "large.onnx")
        done = self.run_tool("pipec", "large.onnx", "--device=h200", "--stages=8", "--dry-run", expect=1)
        self.assertIn("--memory", done.stderr)

    def test_weights_that_do_not_exist(self):
        self.run_tool("make-model", "mlp", "--no-weights", "-o", "model.onnx")
        self.refuses(self.folder / "model.onnx", names=["model.onnx.data"])
        self.run_tool("pipec", "model.onnx", "--dry-run")

    def test_folder_that_is_no_plan_is_left_alone(self):
        mine = self.folder / "mine"
        mine.mkdir()
        (mine / "letter.txt").write_text("dear")
        done = self.run_tool("pipec", self.write("model.onnxtxt", mlp()), "-o", mine, expect=1)
        self.assertIn("mine", done.stderr)
        self.assertEqual([(entry.name, entry.read_text()) for entry in mine.iterdir()], [("letter.txt", "dear")])

    def test_plan_is_replaced_whole(self):
        path = self.write("model.onnxtxt", mlp())
        self.run_tool("pipec", path, "--stages=3", "-o", "a.plan")
        self.run_tool("pipec", path, "--stages=2", "-o", "a.plan")
        self.assertEqual(len(list((self.folder / "a.plan").glob("rank-*.plan"))), 2)

    def test_what_is_written_is_said(self):
        path = self.write("model.onnxtxt", mlp())
        for word in "wrote", "replaced":
            done = self.run_tool("pipec", path, "--json", "-o", "a.plan", "--trace=t.json")
            json.loads(done.stdout)
            self.assertIn(f"{word} t.json\n{word if word == 'wrote' else 'replaced the plan'} a.plan (timeline: a.plan/report.html)", done.stderr)
        self.assertIn("replaced the plan a.plan", self.run_tool("pipec", path, "--print=planned", "-o", "a.plan").stderr)
        done = self.run_tool("pipec", path, "--dry-run", "--trace=t.json", "--report=r.html")
        self.assertTrue(done.stdout.endswith("\n\nreplaced t.json\nwrote r.html\n"), done.stdout[-200:])
        text = self.write("text", "a text of some length, long enough")
        for word in "wrote", "replaced":
            self.assertEqual(self.run_tool("make-model", "mlp", "-o", "m.onnx").stderr, f"{word} m.onnx\n")
            self.assertEqual(self.run_tool("make-data", "text", text).stderr,
                             "".join(f"{word} {name}\n" for name in ("train.bin", "eval.bin", "vocabulary.json")))

    def test_refusal_leaves_the_older_plan(self):
        path = self.write("model.onnxtxt", mlp())
        self.run_tool("pipec", path, "--stages=2", "-o", "a.plan")
        before = {entry.name: entry.read_bytes() for entry in (self.folder / "a.plan").iterdir() if entry.is_file()}
        self.run_tool("pipec", path, "--stages=50", "-o", "a.plan", expect=1)
        after = {entry.name: entry.read_bytes() for entry in (self.folder / "a.plan").iterdir() if entry.is_file()}
        self.assertEqual(after, before)

    def test_settings_of_another_loss_and_passes_that_do_not_exist(self):
        path = self.write("model.onnxtxt", mlp())
        done = self.run_tool("pipec", path, "--loss=mse", "--label-smoothing=0.1", "--disable-pass=fold", expect=2)
        for word in ("--label-smoothing", "--loss=mse", "--disable-pass", "fold-constants"):
            self.assertIn(word, done.stderr)

    def test_sizes_beyond_all_plans(self):
        path = self.write("model.onnxtxt", mlp(batch="N"))
        for flags in (["--microbatches=99999999"], ["--batch=9223372036854775807", "--microbatches=1"],
                      ["--stages=100000", "--virtual-stages=100000", "--schedule=interleaved"]):
            self.assertIn("at most", self.run_tool("pipec", path, *flags, expect=2).stderr)
        self.assertIn("--memory", self.run_tool("pipec", path, "--memory=0", expect=2).stderr)
        self.assertIn("--hidden", self.run_tool("make-model", "mlp", "--hidden=99999999999", expect=2).stderr)

    def test_without_a_pass_that_the_plan_needs(self):
        path = self.write("model.onnxtxt", mlp())
        for name in ("build-update", "partition-stages", "insert-messages", "order-actions", "plan-memory"):
            self.refuses(path, f"--disable-pass={name}", names=[])

    def test_output_that_cannot_be_written(self):
        path = self.write("model.onnxtxt", mlp())
        with open("/dev/full", "w") as full:
            done = subprocess.run([BIN / "pipec", path, "--dry-run"], stdout=full, stderr=subprocess.PIPE, text=True,
                                  timeout=TIMEOUT)
        self.assertEqual(done.returncode, 1)
        self.assertIn("standard output", done.stderr)

    def test_values_that_cannot_be_read_are_wrong_usage(self):
        path = self.write("model.onnxtxt", mlp())
        for flags, words in ((["--train=["], "--train: '[' is no regular expression"),
                             (["--freeze=("], "--freeze: '(' is no regular expression"),
                             (["--lora=[:2"], "--lora: '[' is no regular expression"),
                             (["--dim=N=many"], "--dim: N: 'many' is not a whole number"),
                             (["--dim=N=-1"], "--dim: N: -1 is below 0"), ([f"--dim=N={2**64}"], "is not a whole number"),
                             (["--stages"], "--stages: the value is missing, wanted P|auto"),
                             (["--json=maybe"], "--json: 'maybe' is not known; valid are true, false"),
                             (["--json", "--json"], "--json is given 2 times"),
                             (["--mode=infer", "--optimizer=sgd"], "--optimizer belongs to --mode=train")):
            self.assertIn(f"pipec: {words}" if words.startswith("--") else words, self.compile(path, *flags, expect=2))

    def test_all_mistakes_of_a_call_at_once(self):
        done = self.run_tool("pipec", "--stagse=2", "--schedule=1f2b", "--optimizer=sdg", "--microbatches=0", "x.onnx", expect=2)
        for word in ("--stagse", "--stages", "gpipe", "momentum", "--microbatches"):
            self.assertIn(word, done.stderr)


if __name__ == "__main__":
    main()
