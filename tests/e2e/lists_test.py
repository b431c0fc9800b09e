"""What pipec lists: a table for readers, and with --json the same rows for machines."""

import json
import pathlib
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


if __name__ == "__main__":
    main()
