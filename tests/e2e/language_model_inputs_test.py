"""What language models are fed: tokens from a file, positions and masks by --input, and nothing for what an exporter added for
generation: past_key_values.* have length 0."""

import pathlib
import random
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from pipec_testing import Case, Weights, main, model_text

HEADS, SIZE, VOCABULARY, SEQUENCE = 2, 4, 16, 6
HIDDEN = HEADS * SIZE


def decoder(with_past, total="past_sequence_length + sequence_length"):
    """One attention layer as exporters write a decoder: with_past, its keys and values follow those of the past."""
    w = Weights(2)
    weights = [w.tensor("wte", VOCABULARY, HIDDEN), w.tensor("wpe", 32, HIDDEN),
               *(w.tensor(name, HIDDEN, HIDDEN) for name in "qkv"), w.tensor("head", HIDDEN, VOCABULARY),
               f"int64[4] split = {{0, 0, {HEADS}, {SIZE}}}", f"int64[3] merge = {{0, 0, {HIDDEN}}}", "float scale = {0.5}",
               "int64[2] inner = {1, 2}", "float far = {-10000}", "float one = {1}"]
    inputs = ["int64[batch,sequence_length] input_ids", f'int64[batch,"{total}"] attention_mask',
              "int64[batch,sequence_length] position_ids"]
    state = f'float[batch,{HEADS},past_sequence_length,{SIZE}]'
    nodes = ["e = Gather(wte, input_ids)", "p = Gather(wpe, position_ids)", "x = Add(e, p)"]
    for name in "qkv":
        nodes += [f"{name}0 = MatMul(x, {name})", f"{name}1 = Reshape({name}0, split)",
                  f"{name}2 = Transpose<perm = [0, 2, 1, 3]>({name}1)"]
    keys, values = "k2", "v2"
    outputs = [f"float[batch,sequence_length,{VOCABULARY}] logits"]
    if with_past:
        for name, own in (("key", "k2"), ("value", "v2")):
            inputs.append(f'{state} "past_key_values.0.{name}"')
            nodes.append(f'"present.0.{name}" = Concat<axis = 2>("past_key_values.0.{name}", {own})')
            outputs.append(f'float[batch,{HEADS},"{total}",{SIZE}] "present.0.{name}"')
        keys, values = '"present.0.key"', '"present.0.value"'
    nodes += [f"kt = Transpose<perm = [0, 1, 3, 2]>({keys})", "s0 = MatMul(q2, kt)", "s1 = Mul(s0, scale)",
              "m0 = Cast<to = 1>(attention_mask)", "m1 = Unsqueeze(m0, inner)", "m2 = Sub(one, m1)", "m3 = Mul(m2, far)",
              "s = Add(s1, m3)", "a = Softmax<axis = -1>(s)", f"o0 = MatMul(a, {values})",
              "o1 = Transpose<perm = [0, 2, 1, 3]>(o0)", "o2 = Reshape(o1, merge)", "y = Add(x, o2)", "logits = MatMul(y, head)"]
    return model_text(inputs, outputs, weights, nodes)


class LanguageModelInputs(Case):
    def setUp(self):
        super().setUp()
        r = random.Random(4)
        self.tokens = self.folder / "tokens.bin"
        self.tokens.write_bytes(bytes(r.randrange(VOCABULARY) for _ in range(400)))
        self.flags = ("--batch=8", "--microbatches=4", "--input", "attention_mask=ones", "--input", "position_ids=range")

    def losses(self, model, *flags):
        plan = self.compile(model, *self.flags, *flags)
        return self.train(plan, self.tokens, "--tokens=u8", "--lr=0.01", steps=5)

    def test_a_decoder_with_past_trains_as_the_one_without(self):
        with_past, without = (self.write(f"past{k}.onnxtxt", decoder(k)) for k in (True, False))
        size, whole = f"sequence_length={SEQUENCE}", f"past_sequence_length + sequence_length={SEQUENCE}"
        want = self.losses(without, "--dim", size, "--dim", whole)
        self.assertLess(want.losses[-1], want.losses[0])
        for stages in (1, 2):
            self.assert_same_run(self.losses(with_past, "--dim", size, f"--stages={stages}"), want, f"{stages} stages")
        done = self.run_tool("pipec", with_past, *self.flags, "--dim", size, "--dry-run")
        self.assertIn("past_key_values.0.key, past_key_values.0.value have length 0 (--dim)", done.stdout + done.stderr)

    def test_a_past_of_another_length_is_an_input(self):
        model = self.write("past.onnxtxt", decoder(True))
        done = self.run_tool("pipec", model, "--dim", f"sequence_length={SEQUENCE}", "--dim", "past_sequence_length=3",
                             *self.flags, "-o", self.folder / "plan")
        self.assertIn(f"past_key_values.0.key float32[8,{HEADS},3,{SIZE}]", done.stdout)
        zero = self.losses(model, "--dim", f"sequence_length={SEQUENCE}", "--dim", "past_sequence_length=0")
        self.assertEqual(len(zero.losses), 5)

    def test_other_dimensions_are_not_guessed(self):
        model = self.write("past.onnxtxt", decoder(True, total="total_length"))
        refusal = self.compile(model, *self.flags, "--dim", f"sequence_length={SEQUENCE}", expect=1)
        self.assertIn("dimension 'total_length' has no value; bind it with --dim total_length=N", refusal)
        refusal = self.compile(model, *self.flags, "--dim", "sequence_length=0", "--dim", "total_length=6", expect=1)
        self.assertIn("--dim sequence_length=0: wanted at least 1", refusal)


if __name__ == "__main__":
    main()
