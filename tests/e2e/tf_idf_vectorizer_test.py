"""TfIdfVectorizer in front of a layer: the counts of its definition, in every mode, whole and cut, in microbatches."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from pipec_testing import Case, Weights, floats, main, model_text, read_npz, write_npz

RANDOM = Weights(9).random
ROWS, LENGTH, SKIP = 4, 9, 2
NGRAMS, COLUMNS = [(2,), (0,), (0, 1), (1, 1), (2, 0)], [3, 0, 4, 1, 2]
WEIGHTS = [0.5, 2.0, -1.0, 4.0, 0.25]
TEXTS = [[RANDOM.randrange(3) for _ in range(LENGTH)] for _ in range(ROWS)]


def counts(text):
    row = [0] * len(NGRAMS)
    for ngram, column in zip(NGRAMS, COLUMNS):
        for distance in range(1, 2 if len(ngram) == 1 else SKIP + 2):
            for begin in range(LENGTH - (len(ngram) - 1) * distance):
                row[column] += all(text[begin + i * distance] == number for i, number in enumerate(ngram))
    return row


def model(mode, kind="int64", pool="pool_int64s = [2, 0, 0, 1, 1, 1, 2, 0]"):
    return model_text([f"{kind}[N,{LENGTH}] x"], [f"float[N,{len(COLUMNS)}] y"], ["float one = {1}"],
                      [f'c = TfIdfVectorizer<mode = "{mode}", min_gram_length = 1, max_gram_length = 2, max_skip_count = {SKIP}, '
                       f"ngram_counts = [0, 2], ngram_indexes = {COLUMNS}, weights = {WEIGHTS}, {pool}>(x)",
                       "d = Add(c, one)", "y = Mul(d, d)"])


class TfIdfVectorizer(Case):
    def test_every_mode(self):
        write_npz(self.folder / "data.npz", {"x": ("int64", (ROWS, LENGTH), [number for text in TEXTS for number in text])})
        modes = {"TF": lambda n, w: n, "IDF": lambda n, w: w if n else 0, "TFIDF": lambda n, w: n * w}
        for mode, scaled in modes.items():
            wanted = [(scaled(n, w) + 1) ** 2 for text in TEXTS for n, w in zip(counts(text), WEIGHTS)]
            for stages in (1, 2, 3):
                with self.subTest(mode=mode, stages=stages):
                    plan = self.compile(self.write("model.onnxtxt", model(mode)), "--mode=infer", f"--stages={stages}",
                                        "--microbatches=2", f"--batch={ROWS}")
                    self.run_tool("piperun", plan, "--data=data.npz", "--outputs=out.npz", "--threads=1", "--timeout=20")
                    got = read_npz(self.folder / "out.npz")["y"]
                    self.assertEqual(got[1], (ROWS, len(COLUMNS)))
                    self.assertEqual(list(floats(got[2])), wanted)

    def test_strings_are_refused(self):
        text = model("TF", "string", 'pool_strings = ["c", "a", "a", "b", "b", "b", "c", "a"]')
        error = self.compile(self.write("model.onnxtxt", text), "--mode=infer", "--stages=1", expect=1)
        self.assertIn("input 'x' has element type STRING, which is not supported", error)


if __name__ == "__main__":
    main()
