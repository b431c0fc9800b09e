"""Where the model is cut: any valid order of its nodes, never the numbers; what the user hears of it."""

import json
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from pipec_testing import Case, Weights, main, model_text, pipelines, write_npz

WIDTH, TOWER, SAMPLES = 64, 6, 32


def towers():
    """Two towers on one input, joined at the end. Their nodes are written in turns; they share a weight, and both
    drop values at random."""
    weights = Weights()
    initializers = [weights.tensor("shared", WIDTH, WIDTH), weights.tensor("head", WIDTH, 8), "float ratio = {0.25}", "bool yes = {1}"]
    nodes, ends = [], {"a": "x", "b": "x"}
    for k in range(TOWER):
        for tower in "ab":
            weight = "shared" if k == 1 else f"{tower}w{k}"
            if k != 1:
                initializers.append(weights.tensor(weight, WIDTH, WIDTH))
            nodes += [f"{tower}m{k} = MatMul({ends[tower]}, {weight})", f"{tower}t{k} = Tanh({tower}m{k})"]
            ends[tower] = f"{tower}t{k}"
            if k == 2:
                nodes.append(f"{tower}d{k} = Dropout({ends[tower]}, ratio, yes)")
                ends[tower] = f"{tower}d{k}"
    nodes += [f"sum = Add({ends['a']}, {ends['b']})", "y = MatMul(sum, head)"]
    return model_text([f"float[N,{WIDTH}] x"], ["float[N,8] y"], initializers, nodes)


class Cut(Case):
    def stages_of(self, model, *flags):
        """Stage of each MatMul and Tanh by the name of its output."""
        text = self.run_tool("pipec", model, *flags, "--print=staged", "--dry-run").stdout
        return {name: int(stage) for stage, name in re.findall(r"^\s*(\d+)F (\w+): .*= (?:MatMul|Tanh)\(", text, re.M)}

    def test_towers_one_after_the_other_train_as_one_rank(self):
        model = self.write("towers.onnxtxt", towers())
        stage = self.stages_of(model, "--stages=2", "--microbatches=4", "--batch=16")
        lies = {tower: {stage[f"{tower}t{k}"] for k in range(1, TOWER - 1)} for tower in "ab"}
        self.assertIn(lies, ({"a": {0}, "b": {1}}, {"a": {1}, "b": {0}}), "one tower a stage")
        values = Weights(5).random
        data = self.folder / "data.npz"
        write_npz(data, {"x": ("float32", (SAMPLES, WIDTH), [values.gauss(0, 1) for _ in range(SAMPLES * WIDTH)]),
                         "labels": ("int64", (SAMPLES,), [values.randrange(8) for _ in range(SAMPLES)])})
        reference = self.train(self.compile(model, "--stages=1", "--microbatches=4", "--batch=16"), data)
        for stages in (2, 4):
            for schedule, flags in pipelines(stages=stages, microbatches=4):
                with self.subTest(schedule=schedule, stages=stages):
                    plan = self.compile(model, *flags, "--microbatches=4", "--batch=16")
                    self.assert_same_run(self.train(plan, data), reference, schedule)

    def compared(self, model, cut):
        done = self.run_tool("pipec", model, "--stages=2", f"--cut={cut}", "--dry-run")
        return float(re.search(r"slowest stage of --cut takes ([\d.]+) times as long", done.stdout + done.stderr)[1])

    def test_own_cut_is_compared(self):
        model = self.write("towers.onnxtxt", towers())
        self.assertLess(self.compared(model, "at2"), 1.4)
        self.assertGreater(self.compared(model, "am0"), 1.5)

    def test_a_slow_head_leaves_fewer_layers_to_its_stage(self):
        """The last layer is as wide as a vocabulary: equal numbers of layers would make its stage the slowest."""
        weights = Weights()
        initializers = [weights.tensor(f"w{i}", WIDTH, WIDTH) for i in range(16)] + [weights.tensor("head", WIDTH, 512)]
        nodes = [f"h{i} = MatMul({f't{i - 1}' if i else 'x'}, w{i})" for i in range(16)]
        nodes = [node for i in range(16) for node in (nodes[i], f"t{i} = Tanh(h{i})")] + ["y = MatMul(t15, head)"]
        model = self.write("head.onnxtxt", model_text([f"float[256,{WIDTH}] x"], ["float[256,512] y"], initializers, nodes))
        done = self.run_tool("pipec", model, "--stages=3", "--dry-run", "--json")
        held = [row["parameters"] // WIDTH**2 for row in json.loads(done.stdout)["stages"]]
        self.assertEqual(sum(held), 16 + 8)
        self.assertLess(held[2] - 8, 3)
        self.assertLess(json.loads(done.stdout)["bound_ratio"], 1.02)
        text = self.run_tool("pipec", model, "--stages=3", "--dry-run")
        self.assertRegex(text.stdout + text.stderr, r"equally many nodes a stage the slowest would take [1-9]\.\d\d times")

    def test_a_vocabulary_fifty_times_as_wide_as_the_model(self):
        """The last product takes as long as several layers: the cut evens that out where equally many layers would not."""
        for kind, layers in (("gpt", 12), ("llama", 9)):
            with self.subTest(model=kind):
                model = self.folder / f"{kind}.onnx"
                self.run_tool("make-model", kind, f"--layers={layers}", "--hidden=64", "--heads=2", "--sequence=64", "--vocabulary=3200",
                              "--batch=4", "--no-weights", "-o", model)
                done = self.run_tool("pipec", model, "--stages=4", "--dry-run", "--json")
                report = json.loads(done.stdout)
                loads = [row["forward_s"] + row["backward_s"] for row in report["stages"]]
                self.assertLess(max(loads), 1.1 * sum(loads) / 4)
                self.assertLess(report["bound_ratio"], 1.03)
                text = self.run_tool("pipec", model, "--stages=4", "--dry-run")
                ratio = re.search(r"equally many nodes a stage the slowest would take ([\d.]+) times", text.stdout + text.stderr)
                self.assertGreater(float(ratio[1]), 1.3)

    def test_several_stages_a_rank_keep_the_pipeline_busy(self):
        """Ranks of equal loads are not enough: where one stage is much longer than the others, all ranks wait for it."""
        model = self.folder / "unet.onnx"
        self.run_tool("make-model", "unet", "--layers=2", "--hidden=8", "--image=3x32x32", "--batch=2", "--no-weights", "-o", model)
        done = self.run_tool("pipec", model, "--stages=2", "--virtual-stages=4", "--schedule=interleaved", "--microbatches=16", "--dry-run",
                             "--json")
        report = json.loads(done.stdout)
        work = sum(row["forward_s"] + row["backward_s"] for row in report["stages"])
        self.assertLess(report["step_time_s"], 1.25 * 16 * work / 2)


if __name__ == "__main__":
    main()
