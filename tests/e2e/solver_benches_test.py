"""The solvers' benches: figures as `name value unit` on their last lines, and solutions that are worth what they say."""

import itertools
import json
import pathlib
import random
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from pipec_testing import Case, main


class SolverBenches(Case):
    def figures(self, *command):
        """By name: value and unit."""
        lines = self.run_tool(*command).stdout.splitlines()
        found = [re.fullmatch(r"(\w+) (\S+) (\w+)", line) for line in lines]
        self.assertTrue(found and all(found), lines)
        return {match[1]: (float(match[2]), match[3]) for match in found}

    def slowest(self, nodes, edges, stage_of):
        """By the definition of the files: work, and each output once where it leaves or enters."""
        loads = {}
        for node, stage in stage_of.items():
            loads[stage] = loads.get(stage, 0) + nodes[node]
        moved = {(a, cost, stage_of[end]) for a, b, cost in edges if stage_of[a] != stage_of[b] for end in (a, b)}
        for _, cost, stage in moved:
            loads[stage] += cost
        return max(loads.values())

    def graph(self, seed, count=8):
        numbers = random.Random(seed)
        nodes = [numbers.randint(1, 20) for _ in range(count)]
        sent = [numbers.randint(0, 6) for _ in range(count)]
        edges = [(a, b, sent[a]) for a in range(count) for b in range(a + 1, count) if b == a + 1 or numbers.random() < 0.2]
        return nodes, edges

    def best(self, nodes, edges, stages):
        return min(self.slowest(nodes, edges, dict(enumerate(stage_of)))
                   for stage_of in itertools.product(range(stages), repeat=len(nodes))
                   if all(stage_of[a] <= stage_of[b] for a, b, _ in edges))

    def test_partition(self):
        for seed in range(3):
            nodes, edges = self.graph(seed)
            file = self.write("graph.json", json.dumps(
                {"maxFPGAs": 3, "maxSizePerFPGA": 1e9,
                 "nodes": [{"id": k, "fpgaLatency": time, "isBackwardNode": False, "size": 1} for k, time in enumerate(nodes)],
                 "edges": [{"sourceId": a, "destId": b, "cost": cost} for a, b, cost in edges]}))
            solution = self.folder / "solution.json"
            figures = self.figures("bench-partition", file, "--format=dnn-partitioning", "--orders=5", f"--solution={solution}")
            stage_of = {int(node): stage for node, stage in json.loads(solution.read_text())["stage_of"].items()}
            best = self.best(nodes, edges, 3)
            self.assertEqual(figures["slowest_stage"], (best, "ms"))
            self.assertEqual(self.slowest(nodes, edges, stage_of), best)
            self.assertLessEqual(figures["bound"][0], best)
            self.assertGreaterEqual(figures["best_of_orders"][0], best)
            self.assertEqual(figures["seconds"][1], "s")

    def test_partition_of_a_profile(self):
        nodes, edges = self.graph(9)
        text = [f"node{k} -- Linear() -- forward_compute_time={time}, backward_compute_time=0, activation_size=0.0, parameter_size=8"
                for k, time in enumerate(nodes)] + [f"\tnode{a} -- node{b}" for a, b, _ in edges]
        file = self.write("graph.txt", "\n".join(text))
        figures = self.figures("bench-partition", file, "--format=pipedream", "--stages=2")
        self.assertEqual(figures["slowest_stage"], (self.best(nodes, [(a, b, 0) for a, b, _ in edges], 2), "ms"))

    def test_partition_of_drawn_graphs(self):
        rows = self.run_tool("bench-partition", "--drawn", "--orders=1", "--only=narrow_4", timeout=300).stdout.splitlines()
        table, last = [line.split() for line in rows[:-6]], [line.split() for line in rows[-6:]]
        self.assertEqual(table[0][:5], ["graph_stages", "nodes", "ideals", "slowest", "bound"])
        self.assertEqual(len(table), 6)
        for name, _, ideals, slowest, bound, over_bound, of_orders, over_orders, _ in table[1:]:
            self.assertGreaterEqual(float(slowest), float(bound) * (1 - 1e-5), name)
            self.assertAlmostEqual(float(over_bound), float(slowest) / float(bound), delta=1e-4)
            self.assertAlmostEqual(float(over_orders), float(slowest) / float(of_orders), delta=1e-4)
            if ideals != ">50000":
                self.assertLessEqual(float(over_orders), 1 + 1e-4, name)
        self.assertEqual([line[0] for line in last], ["narrow_not_at_best", "narrow_worst_over_best", "narrow_worst_seconds",
                                                      "wide_beyond_1_percent", "wide_worst_over_best", "wide_worst_seconds"])
        self.assertEqual(float(last[0][1]), 0)

    def test_memory(self):
        # Two that never meet, beside one that meets both.
        file = self.write("problem.6.csv", "id,lower,upper,size\na,0,2,4\nb,2,4,4\nc,0,4,2\n")
        solution = self.folder / "solution.csv"
        figures = self.figures("bench-memory", file, f"--solution={solution}")
        self.assertEqual((figures["memory_peak"], figures["memory_bound"]), ((6, "units"), (6, "units")))
        self.assertEqual(figures["memory_peak_over_capacity"], (1, "ratio"))
        offsets = dict(line.split(",") for line in solution.read_text().splitlines()[1:])
        self.assertEqual(offsets["a"], offsets["b"])
        self.assertIn((offsets["a"], offsets["c"]), (("0", "4"), ("2", "0")))

    def test_schedule(self):
        def two(value):
            return [value, value]
        instance = {"stages": 2, "microbatches": 3, "F": two(1), "B": two(1), "W": two(1), "comm": 0, "mem_F": two(2),
                    "mem_B": two(-1), "mem_W": two(-1), "max_mem": two(100), "reference": {}}
        file, solution = self.write("one.json", json.dumps({"one": instance})), self.folder / "one.csv"
        figures = self.figures("bench-schedule", file, f"--solution={solution}")
        # Rank 1 waits for one F and has nine units to do.
        self.assertEqual((figures["one_makespan"], figures["one_bound"]), ((10, "ticks"), (10, "ticks")))
        rows = [[cell for cell in line.split(",") if cell] for line in solution.read_text().splitlines()]
        for rank, row in enumerate(rows):
            self.assertEqual(sorted(row), sorted(f"{rank}{kind}{m}" for kind in "FIW" for m in range(3)))


if __name__ == "__main__":
    main()
