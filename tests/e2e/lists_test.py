"""What pipec lists: a table for readers, and with --json the same rows for machines."""

import json
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from pipec_testing import Case, main


class Lists(Case):
    def listed(self, what):
        """(rows of the table, JSON)."""
        table = self.run_tool("pipec", f"--list-{what}").stdout.splitlines()
        return table, json.loads(self.run_tool("pipec", f"--list-{what}", "--json").stdout)

    def test_rows_are_the_same(self):
        for what, column, key, keys in (
                ("ops", 1, "op", {"op", "domain", "opsets", "cpu", "cuda", "gradient"}),
                ("passes", 0, "name", {"name", "before", "after", "why_here"}),
                ("schedules", 0, "name",
                 {"name", "update_rule", "bubble", "activations", "versions", "messages", "needed_microbatches",
                  "needed_virtual_stages", "default_virtual_stages", "placement"})):
            with self.subTest(list=what):
                table, rows = self.listed(what)
                self.assertGreater(len(rows), 10)
                self.assertEqual([line.split()[column] for line in table[1:len(rows) + 1]], [row[key] for row in rows])
                for row in rows:
                    self.assertEqual(set(row), keys, row)

    def test_devices(self):
        text, devices = self.listed("devices")
        for names in devices.values():
            for device in names:
                self.assertTrue(any(line.split()[0] == device["name"] for line in text if line.startswith("  ")), device)
        self.assertIn("cpu", [device["name"] for device in devices["pipec"]])
        self.assertEqual([device["name"] for device in devices["piperun"]], ["cpu", "null", "replay"])

    def test_what_a_build_lacks(self):
        sentence = self.run_tool("pipec", "--list-devices").stdout.splitlines()[-1]
        self.assertRegex(sentence, r"^not in this build: device cuda, transport nccl \(preset cuda has them; CUDA toolkit \w+, NCCL \w+\); "
                         "in no version yet: transport mpi$")
        for flag in ("--device=cuda", "--transport=nccl", "--transport=mpi"):
            name, value = flag.split("=")
            self.assertRegex(self.run_tool("piperun", "plan", "--data=synthetic", flag, expect=2).stderr,
                             f"(?m)^piperun: {name}: '{value}' is not known; valid are [^;]*; {re.escape(sentence)}$")
        self.assertRegex(self.run_tool("pipec", "model.onnx", "--device=cuda", expect=2).stderr,
                         "--device: 'cuda' is not known; valid are .*; what a plan runs on is piperun's --device")


if __name__ == "__main__":
    main()
