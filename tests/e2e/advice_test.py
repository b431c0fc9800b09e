"""Advice: each sentence stands in text, --json and report.html, and its numbers are those of the plans that it speaks of."""

import json
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from pipec_testing import Case, main


class Advice(Case):
    def make(self, *flags):
        model = self.folder / "model.onnx"
        self.run_tool("make-model", *flags, "--no-weights", "-o", model)
        return model

    def report(self, model, *flags):
        return json.loads(self.run_tool("pipec", model, "--dry-run", "--json", "--device=h200", *flags).stdout)

    def advice(self, model, pattern, *flags):
        """The match of the one sentence that there is, which is the same everywhere; and the report."""
        report = self.report(model, *flags)
        found = [line for line in report["advice"] if re.search(pattern, line)]
        self.assertEqual(len(found), 1, report["advice"])
        page = self.folder / "page.html"
        text = self.run_tool("pipec", model, "--dry-run", "--device=h200", f"--report={page}", *flags).stdout
        self.assertIn(f"advice: {found[0]}\n", text)
        data = re.search(r'<script type="application/json" id="data">(.*?)</script>', page.read_text(), re.DOTALL)
        self.assertIn(found[0], json.loads(data[1])["report"]["advice"])
        return re.search(pattern, found[0]), report

    def test_more_microbatches(self):
        model = self.make("mlp", "--layers=16", "--inputs=64", "--hidden=64", "--classes=64", "--batch=symbolic")
        match, report = self.advice(model, r"M=4 is small for 8 ranks: M=(\d+) lowers the bubble from ([\d.]+) % to ([\d.]+) % "
                                    r"\((--microbatches=\d+) (--batch=\d+)\)", "--stages=8", "--microbatches=4")
        self.assertEqual(match[2], f"{report['bubble_ratio'] * 100:.1f}")
        more = self.report(model, "--stages=8", match[4], match[5])
        self.assertEqual((more["microbatches"], more["batch"]), (int(match[1]), int(match[1])))
        # With the stages as they are; with more microbatches the cut may be a better one.
        self.assertLessEqual(more["bubble_ratio"] * 100, float(match[3]) + 0.05)
        self.assertLess(more["bubble_ratio"], report["bubble_ratio"])

    def test_a_batch_that_is_given_does_not_grow(self):
        model = self.make("mlp", "--layers=16", "--inputs=4096", "--hidden=4096", "--classes=4096", "--batch=symbolic")
        flags = ["--stages=8", "--batch=4096"]
        match, report = self.advice(model, r"M=4 is small for 8 ranks, which have a bubble of ([\d.]+) %: (--microbatches=auto) finds how many "
                                    "parts of the batch take least time$", "--microbatches=4", *flags)
        self.assertEqual(match[1], f"{report['bubble_ratio'] * 100:.1f}")
        best = self.report(model, match[2], *flags)
        self.assertEqual(best["batch"], 4096)
        self.assertLess(best["step_time_s"], report["step_time_s"])
        # None where there is no smaller part, nor where the best number was chosen.
        for flags in (["--microbatches=4", "--batch=4"], ["--microbatches=auto", "--batch=2"], ["--microbatches=auto"]):
            self.assertNotIn("is small for", str(self.report(model, "--stages=8", *flags)["advice"]), flags)

    def test_the_vocabulary_matrix(self):
        model = self.make("gpt", "--layers=4", "--hidden=64", "--heads=4", "--sequence=32", "--vocabulary=50257", "--batch=32")
        match, report = self.advice(model, r"stage (\d) takes ([\d.]+) x the mean of all stages: (\d+) % of it is node '[^']*' \((\w+)\) "
                                    r"with parameter '([^']+)' of 12.9 MB, which no cut can divide", "--stages=8")
        times = [row["forward_s"] + row["backward_s"] for row in report["stages"]]
        self.assertEqual(int(match[1]), times.index(max(times)))
        self.assertEqual((int(match[1]), match[5]), (7, "transformer.wte.weight"))
        self.assertEqual(match[2], f"{max(times) / (sum(times) / 8):.1f}")
        # Forward and both gradients, one of which is added to its sum: 4 us to launch each, and 4.8 TB/s for 1024 x 50257 logits
        # and the matrix.
        logits, matrix = 4 * 1024 * 50257, 4 * 64 * 50257
        work = 3 * 4e-6 + (3 * (logits + matrix + 4 * 1024 * 64) + matrix) / 4.8e12
        self.assertAlmostEqual(int(match[3]) / 100, work / max(times), delta=0.01)

    def test_data_and_tensor_parallel(self):
        model = self.make("mlp", "--layers=6", "--inputs=256", "--hidden=256", "--classes=256", "--batch=4")
        pattern = (r"a step on these 3 devices: this pipeline (\S+ m?s), (\S+ \S+) sent, (\S+ \S+) a device; data parallel (\S+ m?s), "
                   r"(\S+ \S+) sent, (\S+ \S+) a device; tensor parallel (\S+ m?s), (\S+ \S+) sent, (\S+ \S+) a device \(estimated")
        match, report = self.advice(model, pattern, "--stages=3", "--microbatches=8")
        data, tensor = report["alternatives"]
        for k, plan in enumerate((report, data, tensor)):
            seconds, unit = match[1 + 3 * k].split()
            self.assertAlmostEqual(float(seconds) * {"ms": 1e-3, "s": 1}[unit] / plan["step_time_s"], 1, delta=5e-3)
            for text, size in ((match[2 + 3 * k], plan["sent_bytes"]), (match[3 + 3 * k], plan["peak_bytes"])):
                number, unit = text.split()
                self.assertAlmostEqual(float(number) * {"B": 1, "kB": 1e3, "MB": 1e6}[unit] / size, 1, delta=5e-3)
        # A ring sends every gradient twice from each device but a share; a pipeline what crosses its cuts, 8 times, and norms.
        parameters = sum(row["parameters"] for row in report["stages"])
        self.assertEqual(data["sent_bytes"], 2 * 2 * 4 * parameters)
        crossing = 8 * sum(row["sent_bytes"] for row in report["stages"])
        self.assertGreaterEqual(report["sent_bytes"], crossing)
        self.assertLess(report["sent_bytes"], crossing + 1000)

    def test_one_device_would_do(self):
        model = self.make("mlp", "--layers=2", "--inputs=8", "--hidden=8", "--classes=8", "--batch=1")
        match, report = self.advice(model, r"the model fits one device \((\S+ \S+) of 141 GB\): a pipeline gains only bubbles, data parallel over "
                                    r"the same devices would take (\S+) ms a step instead of (\S+) ms", "--stages=2", "--microbatches=2")
        self.assertLess(float(match[2]), float(match[3]))
        advised = re.search(r"\((--stages=1 --replicas=2 --microbatches=1 --batch=2)\)", " ".join(report["advice"]))
        self.assertLess(json.loads(self.run_tool("pipec", model, "--dry-run", "--json", "--device=h200", *advised[1].split()).stdout)
                        ["step_time_s"], report["step_time_s"])
        self.assertAlmostEqual(float(match[3]) / (report["step_time_s"] * 1e3), 1, delta=5e-3)


if __name__ == "__main__":
    main()
