"""Losses against PyTorch's numbers (make_losses.py), whole batch there, 1, 4 and 16 microbatches in 1 and 2 stages here: the
loss and the gradient are those of the whole batch, with class weights, ignored labels, every reduction, several outputs."""

import json
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "support"))
from pipec_testing import Case, floats, main, model_text, npy, relative_difference, schedules, write_npz

NUMBERS = json.loads((HERE / "losses.json").read_text())
BATCH, IGNORED = 16, NUMBERS["ignored"]
BODY = ["h0 = MatMul(x, w1)", "h = Tanh(h0)", "e = MatMul(h, early)", "g0 = MatMul(h, w2)", "g = Tanh(g0)",
        "l = MatMul(g, late)"]
TABLE = f"float[5] table = {{{', '.join(map(str, NUMBERS['weights']))}}}"
LABELS = {"first": "int64[N] first", "second": "int64[N] second", "target": "float[N,5] target"}
IGNORING = f"<ignore_index = {IGNORED}>"

# name -> nodes behind the body, outputs, --loss, other flags.
IN_MODEL = {
    "plain": (["loss = SoftmaxCrossEntropyLoss(l, first)"], "auto"),
    "weights": (["loss = SoftmaxCrossEntropyLoss(l, first, table)"], "auto"),
    "ignored": ([f"p = LogSoftmax<axis = 1>(l)", f"loss = NegativeLogLikelihoodLoss{IGNORING}(p, first)"], "auto"),
    "weights_ignored": ([f"mean = SoftmaxCrossEntropyLoss{IGNORING}(l, first, table)", "half = Mul(mean, point_five)",
                         "loss = Div(half, point_five)"], "auto"),
    "sum": ([f'sum = SoftmaxCrossEntropyLoss<reduction = "sum", ignore_index = {IGNORED}>(l, first, table)',
             "loss = Div(sum, sixty_four)"], "auto"),
    "none": ([f'each = SoftmaxCrossEntropyLoss<reduction = "none", ignore_index = {IGNORED}>(l, first, table)',
              "loss = ReduceMean<keepdims = 0>(each)"], "auto"),
    "two_heads": (["a = SoftmaxCrossEntropyLoss(e, first)", "d = Sub(l, target)", "s = Mul(d, d)",
                   "b = ReduceMean<keepdims = 0>(s)"], "output:a*0.5,b*2"),
    "two_heads_same_labels": ([f"a = SoftmaxCrossEntropyLoss{IGNORING}(e, first, table)",
                               f"b = SoftmaxCrossEntropyLoss{IGNORING}(l, first, table)"], "output:a*0.25,b"),
    "two_heads_two_labels": (["a = SoftmaxCrossEntropyLoss(e, first)", "b = SoftmaxCrossEntropyLoss(l, second)"],
                             "output:b*-0.125,a"),
    "two_heads_two_weights": ([f"a = SoftmaxCrossEntropyLoss{IGNORING}(e, first)",
                               "b = SoftmaxCrossEntropyLoss(l, second, table)"], "output:a,b"),
}
BY_FLAGS = {
    "plain": [],
    "weights": ["--class-weights=table.npy"],
    "ignored": [f"--ignore-index={IGNORED}"],
    "smoothed": ["--label-smoothing=0.2"],
    "all_three": ["--class-weights=table.npy", f"--ignore-index={IGNORED}", "--label-smoothing=0.2"],
}
# The weights of the two losses are known only at the end of a step, and they are two.
WHOLE_BATCH_ONLY = "two_heads_two_weights"


def freeze_table(model):
    return ("--freeze=^table$",) if TABLE in model.read_text() else ()


class Losses(Case):
    def model(self, name, nodes):
        labels = [text for label, text in LABELS.items() if any(f" {label}" in node for node in nodes)]
        made = [node.split(" = ")[0] for node in nodes]
        outputs = [f"float {each}" for each in ("loss", "a", "b") if each in made]
        weights = [f"float[{','.join(map(str, shape))}] {key} = {{{', '.join(map(str, values))}}}"
                   for key, (shape, values) in NUMBERS["values"].items() if key != "early" or "e," in " ".join(nodes)]
        constants = [f"{TABLE}", "float point_five = {0.5}", "float sixty_four = {64}"]
        used = [c for c in constants if c.split(" = ")[0].split()[-1] in " ".join(nodes)]
        body = [node for node in BODY if not node.startswith("e ") or "e," in " ".join(nodes)]
        if not nodes:
            outputs = ["float[N,5] l"]
        return self.write(f"{name}.onnxtxt", model_text(["float[N,6] x", *labels], outputs, weights + used, body + nodes))

    def data(self, renamed=None):
        arrays = {}
        for name, (shape, values) in NUMBERS["data"].items():
            dtype = "int64" if name in ("first", "second") else "float32"
            arrays[(renamed or {}).get(name, name)] = (dtype, tuple(shape), values)
        path = self.folder / "data.npz"
        write_npz(path, arrays)
        return path

    def agree(self, name, model, data, *flags, microbatches=(1, 4, 16)):
        want = NUMBERS["cases"][name]
        for count in microbatches:
            for stages in (1, 2):
                with self.subTest(name=name, microbatches=count, stages=stages):
                    plan = self.compile(model, f"--stages={stages}", f"--microbatches={count}", f"--batch={BATCH}",
                                        "--optimizer=sgd", *freeze_table(model), *flags)
                    run = self.train(plan, data, f"--lr={NUMBERS['rate']}", f"--epochs={len(want['losses'])}")
                    for got, loss in zip(run.losses, want["losses"], strict=True):
                        self.assertAlmostEqual(got / loss, 1, delta=1e-5)
                    for parameter, (_, _, bytes_) in run.tensors.items():
                        if parameter in want["parameters"]:
                            self.assertLess(relative_difference(floats(bytes_), want["parameters"][parameter]), 1e-5)

    def test_of_the_model(self):
        data = self.data()
        for name, (nodes, loss) in IN_MODEL.items():
            counts = (1,) if name == WHOLE_BATCH_ONLY else (1, 4, 16)
            self.agree(name, self.model(name, nodes), data, f"--loss={loss}", microbatches=counts)

    def test_made_by_flags(self):
        data = self.data({"first": "labels"})
        (self.folder / "table.npy").write_bytes(npy("float32", (5,), NUMBERS["weights"]))
        for name, flags in BY_FLAGS.items():
            self.agree(name, self.model("logits", []), data, "--loss=cross-entropy",
                       *(flag.replace("table.npy", str(self.folder / "table.npy")) for flag in flags))

    def test_the_same_in_every_schedule(self):
        data = self.data()
        for name in ("two_heads", "two_heads_same_labels", "weights_ignored"):
            nodes, loss = IN_MODEL[name]
            flags = (self.model(name, nodes), "--microbatches=4", f"--batch={BATCH}", f"--loss={loss}")
            flags += freeze_table(flags[0])
            want = self.train(self.compile(*flags, "--stages=1"), data, "--epochs=3")
            for schedule in schedules():
                plan = self.compile(*flags, "--stages=2", f"--schedule={schedule}")
                self.assert_same_run(self.train(plan, data, "--epochs=3"), want, f"{name}, {schedule}")

    def test_two_weights_that_only_the_whole_batch_knows_are_refused(self):
        nodes, loss = IN_MODEL[WHOLE_BATCH_ONLY]
        refusal = self.compile(self.model("two", nodes), f"--loss={loss}", "--batch=16", "--microbatches=4", expect=1)
        self.assertIn("divides by a weight that the labels of the whole batch decide", refusal)
        self.assertIn("--microbatches=1", refusal)

    def test_labels_that_could_be_ignored_but_are_not(self):
        """As exporters write two cross-entropies: each has an ignore_index, that no label is."""
        nodes = ["a = SoftmaxCrossEntropyLoss<ignore_index = -100>(e, second)", "d = Sub(l, target)", "s = Mul(d, d)", "b = ReduceMean<keepdims = 0>(s)"]
        model, data = self.model("could", nodes), self.data()
        runs = {}
        for count in (1, 4):
            plan = self.compile(model, "--loss=output:a*0.5,b", f"--microbatches={count}", f"--batch={BATCH}", "--optimizer=sgd")
            runs[count] = self.train(plan, data, "--epochs=3")
        for got, want in zip(runs[4].losses, runs[1].losses, strict=True):
            self.assertAlmostEqual(got / want, 1, delta=1e-6)
        # One that is ignored would change what the loss is divided by: refused when it comes, or, where it is a class, at once.
        NUMBERS["data"]["second"][1][5] = -100
        done = self.run_tool("piperun", plan, f"--data={self.data()}", expect=1)
        NUMBERS["data"]["second"][1][5] = 3
        self.assertIn("label -100 at flat position", done.stderr)
        model = self.model("class", [nodes[0].replace("-100", "2"), *nodes[1:]])
        refusal = self.compile(model, "--loss=output:a*0.5,b", "--microbatches=4", f"--batch={BATCH}", expect=1)
        self.assertIn("divides by a weight that the labels of the whole batch decide", refusal)

    def test_every_case_is_trained(self):
        self.assertEqual(set(NUMBERS["cases"]), {*IN_MODEL, *BY_FLAGS})

    def test_mistakes(self):
        nodes, _ = IN_MODEL["two_heads"]
        model = self.model("mistakes", nodes)
        for loss, code, message in (
                ("output:a,c", 1, "names no output of the model, which has outputs 'a' float32[], 'b' float32[]"),
                ("output:a*0", 2, "the weight '0' is no number other than 0"), ("output:a,a", 2, "output 'a' is named twice"),
                ("output:a,,b", 2, "an output without a name"), ("output:a*x", 2, "the weight 'x' is no number other than 0")):
            with self.subTest(loss=loss):
                self.assertIn(message, self.compile(model, f"--loss={loss}", expect=code))
        (self.folder / "table.npy").write_bytes(npy("float32", (4,), NUMBERS["weights"][:4]))
        table = f"--class-weights={self.folder / 'table.npy'}"
        self.assertIn("--class-weights: ", self.compile(self.model("logits", []), table, expect=1))
        self.assertIn("goes with --loss=cross-entropy only", self.compile(self.model("own", IN_MODEL["plain"][0]), table, expect=1))
        self.assertIn("belong to --loss=cross-entropy", self.compile(model, table, "--loss=output:a", expect=2))


if __name__ == "__main__":
    main()
