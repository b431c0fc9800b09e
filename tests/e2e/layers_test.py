"""Convolutions, pooling, sampling, batch normalization and recurrent layers train, with the same numbers on every cut."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from pipec_testing import Case, Weights, floats, main, model_text, read_safetensors, schedules, write_npz

SAMPLES = 24


def convolutional():
    """Two blocks of Conv, BatchNormalization in training form, Relu; MaxPool, a residual, AveragePool; a classifier."""
    weights, nodes, initializers = Weights(3), [], []

    def normalized(x, y, channels):
        initializers.extend(f"float[{channels}] {y}_{name} = {{{', '.join([value] * channels)}}}"
                            for name, value in (("scale", "1"), ("bias", "0"), ("mean", "0"), ("variance", "1")))
        nodes.append(f"{y}, {y}_m, {y}_v = BatchNormalization<training_mode = 1, momentum = 0.75>"
                     f"({x}, {y}_scale, {y}_bias, {y}_mean, {y}_variance)")

    initializers += [weights.tensor("w1", 4, 2, 3, 3), weights.tensor("w2", 4, 2, 3, 3), weights.tensor("b2", 4),
                     weights.tensor("w3", 16, 3)]
    nodes.append("c1 = Conv<strides = [2, 2], pads = [1, 1, 1, 1]>(x, w1)")
    normalized("c1", "n1", 4)
    nodes += ["r1 = Relu(n1)", "p1 = MaxPool<kernel_shape = [2, 2], pads = [1, 1, 0, 0]>(r1)",
              "c2 = Conv<group = 2, auto_pad = \"SAME_UPPER\">(p1, w2, b2)"]
    normalized("c2", "n2", 4)
    nodes += ["s = Add(n2, p1)", "r2 = Relu(s)", "p2 = AveragePool<kernel_shape = [2, 2], strides = [2, 2]>(r2)",
              "f = Flatten(p2)", "logits = MatMul(f, w3)"]
    return model_text(["float[N,2,8,8] x"], ["float[N,3] logits"], initializers, nodes)


def recurrent():
    """LSTM in both directions, GRU, RNN, each reading what the one before says at every step."""
    weights = Weights(4)
    initializers = [weights.tensor("w1", 2, 16, 3), weights.tensor("r1", 2, 16, 4), weights.tensor("b1", 2, 32),
                    weights.tensor("w2", 1, 12, 8), weights.tensor("r2", 1, 12, 4), weights.tensor("b2", 1, 24),
                    weights.tensor("w3", 1, 4, 4), weights.tensor("r3", 1, 4, 4), weights.tensor("w4", 4, 3),
                    "int64[3] joined = {0, 0, -1}", "int64[1] one = {1}", "int64[1] zero = {0}"]
    nodes = ["t = Transpose<perm = [1, 0, 2]>(x)",
             "l = LSTM<hidden_size = 4, direction = \"bidirectional\">(t, w1, r1, b1)",
             "lt = Transpose<perm = [0, 2, 1, 3]>(l)", "lj = Reshape(lt, joined)",
             "g = GRU<hidden_size = 4, linear_before_reset = 1>(lj, w2, r2, b2)", "gj = Squeeze(g, one)",
             "o, h = RNN<hidden_size = 4>(gj, w3, r3)", "last = Squeeze(h, zero)", "a = LpNormalization(last)", "e = Atan(a)",
             "logits = MatMul(e, w4)"]
    return model_text(["float[N,5,3] x"], ["float[N,3] logits"], initializers, nodes)


def sampling():
    """A grid that the model makes itself, a convolution with offsets of its own, blocks as channels."""
    weights = Weights(5)
    initializers = [weights.tensor("w1", 4, 2, 3, 3), weights.tensor("w2", 2, 4, 1, 1), weights.tensor("w3", 8, 4, 1, 1),
                    weights.tensor("w4", 4, 4, 2, 2), weights.tensor("w5", 16, 3)]
    nodes = ["c = Conv<pads = [1, 1, 1, 1]>(x, w1)", "o = Conv(c, w2)", "t = Transpose<perm = [0, 2, 3, 1]>(o)",
             "grid = Tanh(t)", "s = GridSample<padding_mode = \"reflection\">(c, grid)", "moves = Conv(s, w3)",
             "d = DeformConv<pads = [0, 0, 1, 1]>(s, w4, moves)", "e = SpaceToDepth<blocksize = 2>(d)",
             "l = LeakyRelu<alpha = 0.2>(e)", "p = GlobalAveragePool(l)", "f = Flatten(p)", "logits = MatMul(f, w5)"]
    return model_text(["float[N,2,8,8] x"], ["float[N,3] logits"], initializers, nodes)


MODELS = {"convolutional": (convolutional, (2, 8, 8)), "recurrent": (recurrent, (5, 3)), "sampling": (sampling, (2, 8, 8))}


class Layers(Case):
    def data(self, shape):
        values = Weights(7).random
        count = 1
        for size in shape:
            count *= size
        path = self.folder / "data.npz"
        write_npz(path, {"x": ("float32", (SAMPLES, *shape), [values.gauss(0, 1) for _ in range(SAMPLES * count)]),
                         "labels": ("int64", (SAMPLES,), [values.randrange(3) for _ in range(SAMPLES)])})
        return path

    def test_every_cut_gives_the_same_numbers(self):
        for name, (text, shape) in MODELS.items():
            model, data = self.write(f"{name}.onnxtxt", text()), self.data(shape)
            common = ["--microbatches=3", "--batch=12"]
            flags = ["--epochs=6", "--lr=0.02"]
            reference = self.train(self.compile(model, "--stages=1", *common), data, *flags)
            self.assertLess(sum(reference.losses[-2:]), 0.9 * sum(reference.losses[:2]), name)
            for stages in (2, 4):
                for schedule in schedules(stages, microbatches=3):
                    with self.subTest(model=name, schedule=schedule, stages=stages):
                        plan = self.compile(model, f"--stages={stages}", f"--schedule={schedule}", *common)
                        self.assert_same_run(self.train(plan, data, *flags), reference, f"{name} {schedule} P={stages}")

    def test_every_parameter_learns(self):
        for name, (text, shape) in MODELS.items():
            model, data = self.write(f"{name}.onnxtxt", text()), self.data(shape)
            plan = self.compile(model, "--stages=1", "--microbatches=3", "--batch=12")
            before = read_safetensors(plan / "parameters/model.safetensors")
            after = self.train(plan, data, "--epochs=1", "--lr=0.02").tensors
            for key, tensor in before.items():
                with self.subTest(model=name, parameter=key):
                    self.assertNotEqual(after[key], tensor)

    def test_running_statistics_move_in_the_order_of_microbatches(self):
        """Whatever the rate, they are those of the microbatches seen: 0.75 of the old and 0.25 of the new, one by one."""
        text = model_text(["float[N,1,1,2] x"], ["float[N,2] logits"],
                          ["float[1] s = {1}", "float[1] b = {0}", "float[1] m = {0}", "float[1] v = {1}", "float[2,2] w = {1, 0, 0, 1}"],
                          ["y, a, c = BatchNormalization<training_mode = 1, momentum = 0.75>(x, s, b, m, v)", "f = Flatten(y)",
                           "logits = MatMul(f, w)"])
        data = self.folder / "data.npz"
        write_npz(data, {"x": ("float32", (4, 1, 1, 2), [0, 2, 3, 5, 6, 10, -1, 0]), "labels": ("int64", (4,), [0, 1, 0, 1])})
        plan = self.compile(self.write("statistics.onnxtxt", text), "--microbatches=4", "--batch=4", "--stages=1")
        tensors = self.train(plan, data, "--epochs=1", "--lr=0").tensors
        mean, variance = 0.0, 1.0
        for a, b in ((0, 2), (3, 5), (6, 10), (-1, 0)):
            mean = 0.75 * mean + 0.25 * (a + b) / 2
            variance = 0.75 * variance + 0.25 * ((a - b) / 2) ** 2
        self.assertAlmostEqual(floats(tensors["m"][2])[0], mean, places=5)
        self.assertAlmostEqual(floats(tensors["v"][2])[0], variance, places=5)


if __name__ == "__main__":
    main()
