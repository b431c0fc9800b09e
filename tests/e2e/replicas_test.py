"""--replicas: R pipelines share the batch and stay one model. With one microbatch each they do what R microbatches on one
pipeline do; however they are cut, they give the bits of replicas of one rank."""

import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from pipec_testing import Case, Weights, floats, main, model_text, relative_difference, schedules, write_npz

GPT = ["gpt", "--layers=2", "--hidden=16", "--heads=2", "--sequence=8", "--vocabulary=12", "--dropout=0.2"]  # tied
MLP = ["mlp", "--layers=4", "--inputs=8", "--hidden=16", "--classes=4"]
FLAGS = ["--shuffle", "--epochs=2", "--seed=3", "--lr=0.01", "--lr-schedule=cosine"]
SAMPLES = 48


def shape(ranks, replicas, microbatches, batch=16):
    return [f"--stages={ranks}", f"--replicas={replicas}", f"--microbatches={microbatches}", f"--batch={batch}"]


class Replicas(Case):
    def model(self, words):
        path = self.folder / f"{words[0]}.onnx"
        self.run_tool("make-model", *words, "--batch=symbolic", "--seed=1", "-o", path)
        return path

    def tokens(self):
        values, path = Weights(7).random, self.folder / "tokens.npz"
        tokens = [values.randrange(12) for _ in range(SAMPLES * 8)]
        write_npz(path, {"input_ids": ("int64", (SAMPLES, 8), tokens), "labels": ("int64", (SAMPLES, 8), tokens[1:] + [0])})
        return path

    def vectors(self, samples=SAMPLES, name="vectors.npz", change=lambda x, labels: None):
        values, path = Weights(7).random, self.folder / name
        x, labels = [values.gauss(0, 1) for _ in range(samples * 8)], [values.randrange(4) for _ in range(samples)]
        change(x, labels)
        write_npz(path, {"x": ("float32", (samples, 8), x), "labels": ("int64", (samples,), labels)})
        return path

    # Dropout: each replica draws the masks of its samples. Parameters that differed anywhere would show in the next loss.
    # Not bit for bit: a product that is added to the sum of the microbatches before it is rounded otherwise than one that
    # is added as a whole.
    def test_a_microbatch_each_is_as_many_microbatches(self):
        model, data = self.model(GPT), self.tokens()
        for clip in ([], ["--clip-norm=0.1"]):
            reference = self.train(self.compile(model, *shape(1, 1, 4)), data, *FLAGS, *clip)
            self.assertEqual(len(set(reference.losses)), 6)
            runs = [self.train(self.compile(model, *shape(ranks, 4, 1)), data, *FLAGS, *clip) for ranks in (1, 2)]
            self.assert_same_run(runs[1], runs[0], str(clip))
            for loss, other in zip(runs[0].losses, reference.losses, strict=True):
                self.assertLess(abs(loss - other), 1e-6 * abs(other))
            for name, (_, _, tensor) in reference.tensors.items():
                self.assertLess(relative_difference(floats(runs[0].tensors[name][2]), floats(tensor)), 1e-3, name)

    def test_every_schedule_and_stage_count(self):
        model, data = self.model(GPT), self.tokens()
        reference = self.train(self.compile(model, *shape(1, 2, 4)), data, *FLAGS)
        whole = self.train(self.compile(model, *shape(1, 1, 8)), data, *FLAGS)
        for loss, other in zip(reference.losses, whole.losses, strict=True):
            self.assertLess(abs(loss - other), 1e-5 * abs(other))
        for name, (_, _, tensor) in whole.tensors.items():
            self.assertLess(relative_difference(floats(reference.tensors[name][2]), floats(tensor)), 1e-2, name)
        for ranks in (1, 2, 3):
            for schedule in schedules(ranks, microbatches=4):
                with self.subTest(schedule=schedule, ranks=ranks):
                    plan = self.compile(model, *shape(ranks, 2, 4), f"--schedule={schedule}")
                    self.assert_same_run(self.train(plan, data, *FLAGS), reference, f"{schedule} P={ranks}")

    # Where updates do not wait for the norms of other ranks, and are made again as these clip, all replicas do so.
    def test_updates_that_are_made_again(self):
        model, data = self.model(GPT), self.tokens()
        clip = [*FLAGS, "--clip-norm=0.1"]
        reference = self.train(self.compile(model, *shape(1, 2, 4)), data, *clip)
        plan = self.compile(model, *shape(2, 2, 4), "--schedule=zb-h1")
        self.assert_same_run(self.train(plan, data, *clip), reference, "zb-h1")
        result = json.loads(self.run_tool("piperun", plan, f"--data={data}", "--json", *FLAGS).stdout)
        self.assertGreater(result["updates_ahead"], 0)

    # The weights of the replicas are unequal: a mean of their means would be another number.
    def test_ignored_labels_weigh_nothing_on_any_replica(self):
        def ignore(x, labels):
            for k in range(0, len(labels), 16):
                labels[k + 1:k + 8] = [-100] * 7
        model, data = self.model(MLP), self.vectors(change=ignore)
        reference = self.train(self.compile(model, *shape(1, 1, 2)), data, *FLAGS)
        run = self.train(self.compile(model, *shape(2, 2, 1)), data, *FLAGS)
        self.assert_same_run(run, reference, "ignored labels")
        self.assertNotEqual(self.train(self.compile(model, *shape(1, 1, 2)), self.vectors(), *FLAGS).losses, reference.losses)

    # A sample of replica 1 overflows float16 in the first step of each epoch: no replica may update.
    def test_an_overflow_on_one_replica_skips_the_step_on_all(self):
        def overflow(x, labels):
            x[8 * 12:8 * 13] = [60000.0] * 8
        model, data = self.model(MLP), self.vectors(change=overflow)
        flags = ["--epochs=4", "--lr=0.01"]
        reference = self.train(self.compile(model, *shape(1, 1, 2), "--precision=fp16"), data, *flags)
        skipped = json.loads(reference.metrics.splitlines()[-1])["skipped_steps"]
        self.assertEqual(skipped, 4, "the first of every three")
        for ranks in (1, 2):
            run = self.train(self.compile(model, *shape(ranks, 2, 1), "--precision=fp16"), data, *flags)
            self.assert_same_run(run, reference, f"P={ranks}")

    # As in PyTorch's DistributedDataParallel: every replica normalises its own microbatches; those of the first are kept.
    def test_running_statistics_are_the_first_replicas(self):
        w = Weights(3)
        ones, zeros = "float[4] {} = {{1, 1, 1, 1}}".format, "float[4] {} = {{0, 0, 0, 0}}".format
        model = self.write("norm.onnxtxt", model_text(
            ["float[N,8] x"], ["float[N,4] y"],
            [w.tensor("w0", 8, 4), ones("scale"), zeros("bias"), zeros("mean"), ones("var"), w.tensor("w1", 4, 4)],
            ["h = MatMul(x, w0)", "n = BatchNormalization(h, scale, bias, mean, var)", "y = MatMul(n, w1)"]))
        both, first = self.vectors(16), self.vectors(16, "first.npz", lambda x, labels: None)
        alone = self.train(self.compile(model, *shape(1, 1, 1, 8)), first, steps=1)
        replicas = self.train(self.compile(model, *shape(1, 2, 1)), both, steps=1)
        for name in ("mean", "var"):
            self.assertEqual(replicas.tensors[name], alone.tensors[name], name)
        self.assertNotEqual(replicas.tensors["w1"], alone.tensors["w1"])

    # Samples that fill no batch are padded, whatever the batch of the evaluation is.
    def test_evaluation_is_that_of_one_pipeline(self):
        model, data, held_out = self.model(MLP), self.vectors(), self.vectors(37, "held_out.npz")
        results = []
        for ranks, replicas, microbatches in ((1, 1, 2), (2, 2, 1)):
            plan = self.compile(model, *shape(ranks, replicas, microbatches))
            done = self.run_tool("piperun", plan, f"--data={data}", f"--eval-data={held_out}", "--eval-every=2", "--json")
            results.append(json.loads(done.stdout)["evaluations"])
        self.assertEqual([row["step"] for row in results[0]], [0, 2, 3])
        for one, two in zip(*results, strict=True):
            self.assertEqual((one["samples"], one["accuracy"]), (37, two["accuracy"]))
            self.assertAlmostEqual(one["loss"], two["loss"], delta=1e-9)

    def test_traces_and_profiles_name_the_replica(self):
        plan = self.compile(self.model(MLP), *shape(2, 2, 4), "--schedule=zb-h1")
        trace, profile = self.folder / "trace.json", self.folder / "profile.json"
        self.run_tool("piperun", plan, "--data=synthetic", "--steps=2", f"--trace={trace}", f"--profile={profile}")
        events = json.loads(trace.read_text())["traceEvents"]
        names = {event["pid"]: event["args"]["name"] for event in events if event["name"] == "process_name"}
        self.assertEqual(names, {0: "replica 0, rank 0", 1: "replica 0, rank 1", 2: "replica 1, rank 0", 3: "replica 1, rank 1"})
        for pid in range(4):
            order = [event["name"] for event in events if event.get("pid") == pid and event["ph"] == "X" and
                     event["args"]["step"] == 2]
            stage = pid % 2
            self.assertIn(f"{stage}REDUCE_GRAD", order)
            self.assertLess(order.index(f"{stage}W3"), order.index(f"{stage}REDUCE_GRAD"))
            self.assertLess(order.index(f"{stage}REDUCE_GRAD"), order.index("NORM"))
        self.assertEqual(json.loads(profile.read_text())["ranks"], 4)
        self.compile(self.model(MLP), *shape(2, 2, 4), "--schedule=zb-h1", f"--measured={trace}", f"--profile={profile}")

    # However one replica fails, the run ends at once and names it.
    def test_a_failure_of_one_replica_ends_all(self):
        def wrong(x, labels):
            labels[13] = 4
        plan = self.compile(self.model(MLP), *shape(2, 2, 2))
        done = self.run_tool("piperun", plan, f"--data={self.vectors(change=wrong)}", "--timeout=50", expect=1)
        self.assertIn("replica 1, rank 1, stage 1, action 1F1", done.stderr)
        def nothing(x, labels):
            x[8 * 13] = float("nan")
        done = self.run_tool("piperun", plan, f"--data={self.vectors(change=nothing)}", "--timeout=50", expect=1)
        self.assertIn("step 1: the loss is nan; such values were there before the step, first used in replica 1, stage 0", done.stderr)
        self.assertIn("of microbatch 1", done.stderr)

    def test_what_cannot_be_is_refused(self):
        model = self.model(MLP)
        for flags, words in ((["--replicas=2", "--schedule=pipedream"], "--replicas=2: replicas add up their gradients"),
                             (["--replicas=2", "--schedule=pipedream-2bw"], "--schedule=1f1b"),
                             (["--replicas=2", "--mode=infer"], "--replicas belongs to --mode=train"),
                             (["--replicas=3", "--microbatches=4", "--batch=16"],
                              "--batch=16 cannot be divided into 12 equal microbatches; --replicas=4 or --batch=12 would do"),
                             (["--replicas=4", "--microbatches=3", "--batch=16"],
                              "--batch=16 cannot be divided into 12 equal microbatches; --microbatches=4 or --batch=12 would do"),
                             (["--replicas=4000", "--stages=100"], "at most 65536 ranks"),
                             (["--replicas=2", "--shard-optimizer"], "--shard-optimizer")):
            usage = 1 if "--batch=16" in flags else 2
            self.assertIn(words, self.compile(model, *flags, expect=usage), flags)
        self.compile(model, "--replicas=0", expect=2)
        plan = self.compile(model, *shape(1, 2, 1))
        manifest = json.loads((plan / "manifest.json").read_text())
        self.assertEqual((manifest["replicas"], manifest["ranks"], manifest["microbatch_size"]), (2, 1, 8))
        few = self.vectors(12, "few.npz")
        done = self.run_tool("piperun", plan, f"--data={few}", expect=1)
        self.assertIn("12 samples, one batch needs 16", done.stderr)

    # The first P devices are replica 0's, the next P replica 1's.
    def test_a_cluster_has_devices_for_all_replicas(self):
        def cluster(*memory):
            devices = [{"profile": "h200", "memory_bytes": size} for size in memory]
            return self.write("cluster.json", json.dumps({"hosts": [{"name": "a", "devices": devices}]}))
        model = self.model(MLP)
        self.compile(model, *shape(2, 2, 4), f"--cluster={cluster(80e9, 40e9, 80e9, 40e9)}")
        self.assertIn("replicas need equal devices",
                      self.compile(model, *shape(2, 2, 4), f"--cluster={cluster(80e9, 40e9, 40e9, 80e9)}", expect=1))
        self.assertIn("has 3 devices, 2 replicas of 2 ranks need 4",
                      self.compile(model, *shape(2, 2, 4), f"--cluster={cluster(80e9, 80e9, 80e9)}", expect=1))


if __name__ == "__main__":
    main()
