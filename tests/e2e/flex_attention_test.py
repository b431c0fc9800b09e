"""FlexAttention with subgraphs on its scores and probabilities: attention written out in Python, whole and cut, and trained."""

import math
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from pipec_testing import Case, Weights, elements, floats, main, read_npz, write_npz

B, HEADS, KEY_HEADS, L, S, E, EV = 2, 4, 2, 3, 5, 4, 6
SHAPES = {"q": (B, HEADS, L, E), "k": (B, KEY_HEADS, S, E), "v": (B, KEY_HEADS, S, EV)}
RANDOM = Weights(3).random
DATA = {name: [RANDOM.uniform(-1, 1) for _ in range(elements(shape))] for name, shape in SHAPES.items()}
BIAS = [RANDOM.uniform(-1, 1) for _ in range(HEADS * L * S)]  # [1, HEADS, L, S], of the graph around

# bias is the outer graph's; ReduceSum has its axes as they were before opset 13.
SCORE_MOD = ("score_mod = bend (float[b,h,l,s] x) => (float[b,h,l,s] y) <float two = {2}> "
             "{ a = Add(x, bias) t = Tanh(a) y = Mul(t, two) }")
PROB_MOD = ("prob_mod = share (float[b,h,l,s] x) => (float[b,h,l,s] y) "
            "{ a = Mul(x, x) n = ReduceSum<axes = [3]>(a) y = Div(a, n) }")


def model(mods, outputs=("y",), more=()):
    inputs = ", ".join(f"float[{','.join(map(str, shape))}] {name}" for name, shape in SHAPES.items())
    values = ", ".join(f"{v:.9g}" for v in BIAS)
    flex = f"y = ai.onnx.preview.FlexAttention<{', '.join(mods)}>(q, k, v)"
    lines = "".join(f"  {line}\n" for line in (flex, *more))
    return (f'<ir_version: 10, opset_import: ["" : 12, "ai.onnx.preview" : 1]>\nmodel ({inputs}) => '
            f"({', '.join('float ' + o if o == 'loss' else f'float[{B},{HEADS},{L},{EV}] {o}' for o in outputs)})\n"
            f"<float[1,{HEADS},{L},{S}] bias = {{{values}}}>\n{{\n{lines}}}\n")


def attention(bend, share, scale):
    """[B,HEADS,L,EV], flat."""
    def at(name, *index):
        place = 0
        for size, i in zip(SHAPES[name], index):
            place = place * size + i
        return DATA[name][place]

    y = []
    for b in range(B):
        for h in range(HEADS):
            key = h // (HEADS // KEY_HEADS)
            for i in range(L):
                scores = [scale * sum(at("q", b, h, i, e) * at("k", b, key, s, e) for e in range(E)) for s in range(S)]
                if bend:
                    scores = [2 * math.tanh(x + BIAS[(h * L + i) * S + s]) for s, x in enumerate(scores)]
                p = [math.exp(x) for x in scores]
                p = [x / sum(p) for x in p]
                if share:
                    p = [x * x / sum(z * z for z in p) for x in p]
                y += [sum(p[s] * at("v", b, key, s, e) for s in range(S)) for e in range(EV)]
    return y


class FlexAttention(Case):
    def test_inference(self):
        write_npz(self.folder / "data.npz", {name: ("float32", SHAPES[name], values) for name, values in DATA.items()})
        for bend, share, scale in ((0, 0, None), (1, 0, None), (0, 1, 0.3), (1, 1, 0.7)):
            mods = [SCORE_MOD] * bend + [PROB_MOD] * share + [f"scale = {scale}"] * (scale is not None)
            text = model(mods or ["softmax_precision = 1"])
            wanted = attention(bend, share, E**-0.5 if scale is None else scale)
            whole = None
            for stages, microbatches in ((1, 1), (2, 1), (3, 1), (2, 2)):
                with self.subTest(bend=bend, share=share, stages=stages, microbatches=microbatches):
                    plan = self.compile(self.write("model.onnxtxt", text), "--mode=infer", f"--stages={stages}",
                                        f"--microbatches={microbatches}", f"--batch={B}")
                    self.run_tool("piperun", plan, "--data=data.npz", "--outputs=out.npz", "--threads=1", "--timeout=20")
                    got = read_npz(self.folder / "out.npz")["y"]
                    self.assertEqual(got[1], (B, HEADS, L, EV))
                    for a, b in zip(floats(got[2]), wanted, strict=True):
                        self.assertAlmostEqual(a, b, delta=1e-6)
                    whole = whole or got
                    self.assertEqual(got, whole)

    def test_training_goes_through_the_subgraphs(self):
        """The bias, which only score_mod uses, learns what central differences say."""
        write_npz(self.folder / "data.npz", {name: ("float32", SHAPES[name], values) for name, values in DATA.items()})
        text = model([SCORE_MOD, PROB_MOD], ["loss"], ["s = Mul(y, y)", "loss = ReduceMean<keepdims = 0>(s)"])
        runs = [self.train(self.compile(self.write("model.onnxtxt", text), f"--stages={stages}", "--microbatches=1", "--optimizer=sgd"),
                           self.folder / "data.npz", "--lr=1", steps=1) for stages in (1, 2)]
        self.assert_same_run(runs[1], runs[0], "2 stages")
        learned = floats(runs[0].tensors["bias"][2])

        def loss():
            y = attention(1, 1, E**-0.5)
            return sum(v * v for v in y) / len(y)

        self.assertAlmostEqual(runs[0].losses[0], loss(), delta=1e-6)
        for place in range(0, len(BIAS), 7):
            kept = BIAS[place]
            slope = 0
            for sign in (1, -1):
                BIAS[place] = kept + sign * 1e-4
                slope += sign * loss() / 2e-4
            BIAS[place] = kept
            self.assertAlmostEqual(learned[place] - kept, -slope, delta=2e-6)

    def test_subgraphs_that_do_not_fit_are_refused(self):
        for mod, words in (
            ("score_mod = two (float[b,h,l,s] x) => (float[b,h,l,s] y, float[b,h,l,s] z) { y = Neg(x) z = Neg(x) }", "has 2 outputs, wanted one"),
            ("prob_mod = sum (float[b,h,l,s] x) => (float[b,h,l,o] y) { y = ReduceSum<axes = [3]>(x) }",
             f"makes float32[{B},{HEADS},{L},1] of float32[{B},{HEADS},{L},{S}], wanted the same type"),
        ):
            error = self.compile(self.write("model.onnxtxt", model([mod])), "--mode=infer", "--stages=1", expect=1)
            self.assertIn(words, error)
            self.assertIn("FlexAttention", error)


if __name__ == "__main__":
    main()
