"""B02: a batch that the exporter wrote into constants is replaced where that is provable, else refused by node and axis.

Every model here has a twin that spells the same computation for any batch. Replaced, it must train bit for bit like its twin, and
like the whole batch in one microbatch up to rounding."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from pipec_testing import Case, Weights, floats, main, model_text, pipelines, read_npz, relative_difference, write_npz

EXPORTED, FEATURES, CLASSES, SAMPLES = 8, 256, 5, 16
IMAGE = [16, 4, 4]


def weights():
    w = Weights()
    return [w.tensor("w0", FEATURES, 12), w.tensor("b0", 12), w.tensor("w1", 12, 12), w.tensor("w2", 12, CLASSES)]


def model(batch, body, initializers):
    """`body` makes h0 [.,256] from x; three layers follow, so that cuts lie before and behind it."""
    nodes = [*body, "h1 = Gemm(h0, w0, b0)", "a1 = Tanh(h1)", "h2 = MatMul(a1, w1)", "a2 = Tanh(h2)", "y = MatMul(a2, w2)"]
    dims = ",".join(map(str, [batch, *IMAGE]))
    return model_text([f"float[{dims}] x"], [f"float[{batch},{CLASSES}] y"], [*weights(), *initializers], nodes)


def ints(name, *values):
    return f"int64[{len(values)}] {name} = {{{', '.join(map(str, values))}}}"


def rows(name, count, row):
    return f"int64[{count},{len(row)}] {name} = {{{', '.join(map(str, row * count))}}}"


ROW = Weights(3).tensor("row", 1, FEATURES)
TABLE = Weights(4).tensor("table", 7, FEATURES)
FLAT = ints("flat", -1, FEATURES)
ADD_ROW = ["f = Reshape(x, flat)", "h0 = Add(f, row)"]
# name -> (body, initializers) of the model with the batch in it, and of its twin.
BAKED = {
    "reshape": ((["h0 = Reshape(x, to)"], [ints("to", EXPORTED, FEATURES)]), (["h0 = Reshape(x, flat)"], [FLAT])),
    "reshape, rest": ((["h0 = Reshape(x, to)"], [ints("to", EXPORTED, -1)]), (["h0 = Reshape(x, flat)"], [FLAT])),
    "reshape, one sample": ((["h0 = Reshape(x, to)"], [ints("to", 1, FEATURES)]), (["h0 = Reshape(x, flat)"], [FLAT])),
    "reshape twice": ((["p = Reshape(x, to)", "q = Transpose <perm = [0, 2, 1]> (p)", "h0 = Reshape(q, to2)"],
                       [ints("to", EXPORTED, 16, 16), ints("to2", EXPORTED, FEATURES)]),
                      (["p = Reshape(x, to)", "q = Transpose <perm = [0, 2, 1]> (p)", "h0 = Reshape(q, flat)"],
                       [ints("to", -1, 16, 16), FLAT])),
    "expand": ((["f = Reshape(x, flat)", "e = Expand(row, to)", "h0 = Add(f, e)"], [FLAT, ROW, ints("to", EXPORTED, FEATURES)]),
               (ADD_ROW, [FLAT, ROW])),
    "tile": ((["f = Reshape(x, flat)", "e = Tile(row, times)", "h0 = Add(f, e)"], [FLAT, ROW, ints("times", EXPORTED, 1)]),
             (ADD_ROW, [FLAT, ROW])),
    "constant of shape": ((["f = Reshape(x, flat)", "e = ConstantOfShape <value = float[1] {0.5}> (to)", "h0 = Add(f, e)"],
                           [FLAT, ints("to", EXPORTED, FEATURES)]),
                          (["f = Reshape(x, flat)", "h0 = Add(f, half)"], [FLAT, "float half = {0.5}"])),
    "slice": ((["f = Reshape(x, flat)", "h0 = Slice(f, from, to, axes)"],
               [FLAT, ints("from", 0), ints("to", EXPORTED), ints("axes", 0)]),
              (["h0 = Reshape(x, flat)"], [FLAT])),
    "positions": ((["f = Reshape(x, images)", "g = Gather(table, ids)", "s = Add(f, g)", "h0 = ReduceMean <keepdims = 0> (s, one)"],
                   [ints("images", -1, 1, FEATURES), TABLE, rows("ids", EXPORTED, [2, 0, 5]), ints("one", 1)]),
                  (["f = Reshape(x, images)", "g = Gather(table, ids)", "s = Add(f, g)", "h0 = ReduceMean <keepdims = 0> (s, one)"],
                   [ints("images", -1, 1, FEATURES), TABLE, rows("ids", 1, [2, 0, 5]), ints("one", 1)])),
    "concat": ((["f = Reshape(x, halves)", "c = Expand(half, to)", "k = Concat <axis = 1> (f, c)", "h0 = ReduceSum <keepdims = 0> (k, one)"],
                [ints("halves", -1, 1, FEATURES), Weights(5).tensor("half", 1, 1, FEATURES), ints("to", EXPORTED, 1, FEATURES),
                 ints("one", 1)]),
               (["f = Reshape(x, halves)", "h0 = ReduceSum <keepdims = 0> (k, one)", "n = Shape <start = 0, end = 1> (x)",
                 "to = Concat <axis = 0> (n, tail)", "c = Expand(half, to)", "k = Concat <axis = 1> (f, c)"],
                [ints("halves", -1, 1, FEATURES), Weights(5).tensor("half", 1, 1, FEATURES), ints("tail", 1, FEATURES),
                 ints("one", 1)])),
}


class B02(Case):
    def setUp(self):
        super().setUp()
        values = Weights(2).random
        self.x = ("float32", (SAMPLES, *IMAGE), [values.gauss(0, 1) for _ in range(SAMPLES * FEATURES)])
        self.labels = ("int64", (SAMPLES,), [values.randrange(CLASSES) for _ in range(SAMPLES)])
        self.data = self.folder / "data.npz"
        write_npz(self.data, {"x": self.x, "labels": self.labels})

    def run_of(self, path, *flags):
        plan = self.compile(path, "--batch=8", "--optimizer=sgd", *flags)
        return self.train(plan, self.data, "--lr=0.1")

    def assert_close(self, run, reference, what):
        self.assertLess(relative_difference(run.losses, reference.losses), 1e-5, what)
        self.assertEqual(sorted(run.tensors), sorted(reference.tensors), what)
        for name, (dtype, _, data) in run.tensors.items():
            if dtype == "F32":
                self.assertLess(relative_difference(floats(data), floats(reference.tensors[name][2])), 1e-5, f"{what}: {name}")

    def test_replaced_models_train_like_their_twins_and_like_the_whole_batch(self):
        for name, (baked, twin) in BAKED.items():
            for batch in ("N", EXPORTED):
                with self.subTest(kind=name, batch=batch):
                    # A model for one sample has no other batch to be declared with.
                    declared = 1 if batch == EXPORTED and name.endswith("one sample") else batch
                    path = self.write("baked.onnxtxt", model(declared, *baked))
                    twin_path = self.write("twin.onnxtxt", model("N", *twin))
                    whole = self.run_of(twin_path, "--stages=1", "--microbatches=1")
                    for microbatches in (1, 2, 4, 8):
                        reference = self.run_of(twin_path, "--stages=1", f"--microbatches={microbatches}")
                        run = self.run_of(path, "--stages=2", f"--microbatches={microbatches}")
                        what = f"{name}, batch {batch}, M={microbatches}"
                        self.assertEqual(run.metrics, reference.metrics, what)
                        self.assert_close(run, whole, what)

    def test_every_schedule_stage_count_and_cut(self):
        path = self.write("baked.onnxtxt", model(EXPORTED, *BAKED["expand"][0]))
        reference = self.run_of(path, "--stages=1", "--microbatches=4")
        for stages, cut in ((2, "--cut=f"), (2, "--cut=h0"), (3, "--cut=h0,a2"), (3, "--cut=h1,h2")):
            for schedule, flags in pipelines(stages, microbatches=4):
                with self.subTest(schedule=schedule, stages=stages, cut=cut):
                    run = self.run_of(path, *flags, cut, "--microbatches=4")
                    self.assert_same_run(run, reference, schedule)

    def test_inference_equals_the_whole_batch(self):
        write_npz(self.data, {"x": self.x})
        for name, (baked, _) in BAKED.items():
            with self.subTest(kind=name):
                path = self.write("baked.onnxtxt", model("N", *baked))
                results = {}
                for flags in (("--stages=1", "--microbatches=1"), ("--stages=2", "--microbatches=4"), ("--stages=3", "--microbatches=8")):
                    plan = self.compile(path, "--mode=infer", "--batch=8", *flags)
                    outputs = self.folder / f"out{len(results)}.npz"
                    self.run_tool("piperun", plan, f"--data={self.data}", f"--outputs={outputs}", "--threads=1", "--timeout=30")
                    _, shape, data = read_npz(outputs)["y"]
                    self.assertEqual(shape, (SAMPLES, CLASSES))
                    results[flags] = floats(data)
                whole = results[("--stages=1", "--microbatches=1")]
                for flags, values in results.items():
                    self.assertLess(relative_difference(values, whole), 1e-5, flags)

    def test_what_folds_the_batch_or_can_be_read_in_two_ways_is_refused(self):
        differ = f"int64[{EXPORTED},3] ids = {{{', '.join(str(i % 7) for i in range(EXPORTED * 3))}}}"
        refused = {
            "merged": (["f = Reshape(x, to)", "h0 = Reshape(f, flat)"], [ints("to", EXPORTED * 16, 16), FLAT], ["Reshape", "axis 0"]),
            "folded": (["f = Reshape(x, to)", "h0 = Reshape(f, flat)"], [ints("to", EXPORTED // 2, 2 * FEATURES), FLAT],
                       ["Reshape", "axis 0"]),
            "two ways": (["f = Reshape(x, to)", "h0 = Reshape(f, flat)"], [ints("to", 1, 1, FEATURES), FLAT],
                         ["Reshape", "axes 0 and 1"]),
            "no batch fits": (["h0 = Reshape(x, to)"], [ints("to", 7, 37)], ["Reshape", "259"]),
            "rows differ": (["f = Reshape(x, images)", "g = Gather(table, ids)", "s = Add(f, g)",
                             "h0 = ReduceMean <keepdims = 0> (s, one)"],
                            [ints("images", -1, 1, FEATURES), TABLE, differ, ints("one", 1)], ["Add", "axis 0"]),
        }
        for name, (body, initializers, words) in refused.items():
            for mode in ("train", "infer"):
                with self.subTest(kind=name, mode=mode):
                    path = self.write("refused.onnxtxt", model("N", body, initializers))
                    message = self.compile(path, f"--mode={mode}", "--stages=2", "--batch=8", "--microbatches=4", expect=1)
                    for word in words:
                        self.assertIn(word, message)

    def test_samples_are_never_mixed_silently(self):
        """[8,-1] fits a microbatch of 2 as [2,..] read as 8 rows: no shape disagrees, but rows are quarters of samples then."""
        body = ["f = Reshape(x, to)", "m = ReduceMean <keepdims = 1> (f, one)", "s = Sub(f, m)", "h0 = Reshape(s, flat)"]
        path = self.write("silent.onnxtxt", model("N", body, [ints("to", EXPORTED, -1), ints("one", 1), FLAT]))
        whole = self.run_of(path, "--stages=1", "--microbatches=1")
        for microbatches in (2, 4, 8):
            self.assert_close(self.run_of(path, "--stages=2", f"--microbatches={microbatches}"), whole, microbatches)

    def test_the_models_own_batch_stays_the_default(self):
        path = self.write("baked.onnxtxt", model(EXPORTED, *BAKED["reshape"][0]))
        done = self.run_tool("pipec", path, "--microbatches=2", "--dry-run")
        self.assertIn("batch 16", done.stdout)
        self.assertNotIn("made for", done.stdout)
        done = self.run_tool("pipec", path, "--microbatches=2", "--batch=8", "--dry-run")
        self.assertIn("written for a batch of 8; made for 4: Reshape (Reshape, axis 0)", done.stdout)


if __name__ == "__main__":
    main()
