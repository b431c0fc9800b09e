"""report.html beside others: --compare draws other schedules, --measured what piperun's --trace saw, on one scale."""

import collections
import json
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from pipec_testing import main, with_a_message
from report_page import PageCase, slices

COMPUTE = ("F", "B", "I", "W")


class Beside(PageCase):
    def setUp(self):
        super().setUp()
        self.model = self.folder / "model.onnx"
        self.run_tool("make-model", "mlp", "--layers=8", "--inputs=32", "--hidden=32", "--classes=4", "-o", self.model)

    def table(self, selector):
        return self.browser.js(f"[...document.querySelectorAll('{selector} tbody tr')].map(row => [...row.children].map(cell => "
                               "cell.innerText.replaceAll('\\xa0', ' ')))")

    def assert_drawn(self, timeline, planned):
        """Timeline k shows these slices, where they happen, on the page's one scale."""
        drawn = collections.defaultdict(list)
        for rank, style, x, width in self.bars(timeline):
            if style != "once":
                drawn[rank, style[0]].append((x, width))
        self.assertEqual({key: len(bars) for key, bars in drawn.items()}, collections.Counter((rank, kind) for _, kind, rank, *_ in planned))
        pixels, _ = self.scale()
        for name, kind, rank, _, _, begin, end in planned:
            near = min(abs(x - pixels(begin)) + abs(x + width - pixels(end)) for x, width in drawn[rank, kind])
            self.assertLess(near, 2.5, f"{name} is not drawn where it happens")

    def test_other_schedules_are_what_they_would_be_alone(self):
        flags = ["--stages=2", "--microbatches=8", "--batch=16", "--optimizer=sgd"]
        names = ["gpipe", "interleaved", "zb-v", "dualpipe-v"]
        report, said, _ = self.report(self.model, "--schedule=1f1b", f"--compare={','.join(names)}", *flags)
        self.show(report)
        self.assertEqual(self.elements("svg.timeline"), 1 + len(names))
        rows = {row[0]: row for row in self.table("#compare")}
        self.assertEqual(list(rows), ["1f1b", *names])
        for k, name in enumerate(names, 1):
            _, alone, trace = self.report(self.model, f"--schedule={name}", *flags)
            self.assert_drawn(k, slices(trace))
            self.assertEqual(rows[name][1], str(alone["virtual_stages"]))
            self.assertIn(f"{alone['bubble_ratio'] * 100:.1f} %", rows[name])
            data = json.loads(self.browser.js("document.getElementById('data').textContent"))["compared"][k - 1]
            self.assertEqual([data[field] for field in ("step_time_s", "bubble_ratio", "peak_bytes")],
                             [alone[field] for field in ("step_time_s", "bubble_ratio", "peak_bytes")])
            ratio = alone["step_time_s"] / said["step_time_s"] - 1
            self.assertAlmostEqual(float(rows[name][3].replace("−", "-").rstrip(" %")), ratio * 100, delta=0.11)
        self.assertEqual(self.browser.complaints, [])

    def test_a_chosen_schedule_stands_among_those_it_was_chosen_from(self):
        flags = ["--stages=2", "--microbatches=4"]
        report, said, _ = self.report(self.model, "--schedule=auto", *flags)
        self.show(report)
        self.assertEqual([(row[2], row[3]) for row in self.table("#candidates")],
                         [(row["schedule"], str(row["virtual_stages"])) for row in said["candidates"]])
        self.assertEqual(self.table("#candidates")[0][6], "this plan")
        pixels, _ = self.scale()
        line = self.browser.js("document.querySelector('.timeline .bound').getAttribute('d')")
        self.assertAlmostEqual(float(re.match(r"M([\d.]+)", line)[1]), pixels(said["candidates_bound_s"]), delta=1)
        # The same choice beside another schedule.
        report, _, _ = self.report(self.model, "--schedule=gpipe", "--compare=auto", *flags)
        self.show(report)
        beside = json.loads(self.browser.js("document.getElementById('data').textContent"))["compared"][0]
        self.assertEqual(beside["step_time_s"], said["step_time_s"])
        self.assertEqual(self.table("#compare")[1][0], "auto" if said["schedule"] == "auto" else f"auto: {said['schedule']}")

    def test_a_chosen_number_of_ranks_stands_beside_the_runner_up(self):
        report, said, _ = self.report(self.model, "--stages=auto", "--microbatches=auto", "--device=h200")
        self.show(report)
        rows = self.table("#candidates")
        self.assertEqual([row[:2] for row in rows], [[str(row["ranks"]), str(row["microbatches"])] for row in said["candidates"]])
        first, second = (row["step_time_s"] / row["batch"] for row in said["candidates"][:2])
        self.assertEqual(rows[1][6], f"+{(second / first - 1) * 100:.1f} %")
        self.assertIn(f"the runner-up takes {(second / first - 1) * 100:.1f} % longer a sample", self.text("#candidates"))
        self.assertIn(f"{said['candidates_passed_over']} more pairs", self.text("#candidates"))

    def test_stages_a_rank_are_those_asked_for_where_that_works(self):
        flags = ["--stages=2", "--microbatches=4"]
        report, _, _ = self.report(self.model, "--schedule=interleaved", "--virtual-stages=4", "--compare=looped-bfs,zb-v", *flags)
        self.show(report)
        self.assertEqual([row[:2] for row in self.table("#compare")], [["interleaved", "4"], ["looped-bfs", "4"], ["zb-v", "2"]])
        report, _, _ = self.report(self.model, "--schedule=1f1b", "--compare=looped-bfs", *flags)
        self.show(report)
        self.assertEqual([row[:2] for row in self.table("#compare")], [["1f1b", "1"], ["looped-bfs", "2"]])

    def test_recomputing_schedules_say_so(self):
        flags = ["--stages=2", "--microbatches=32", "--optimizer=sgd"]
        _, keeping, _ = self.report(self.model, "--schedule=gpipe", "--recompute=none", *flags)
        _, recomputing, _ = self.report(self.model, "--schedule=gpipe", "--recompute=all", *flags)
        _, own, _ = self.report(self.model, *flags)
        limit, too_little = (most + own["workspace_bytes"] for most in
                             (max(recomputing["peak_bytes"], own["peak_bytes"]), keeping["peak_bytes"]))
        self.assertLess(limit, too_little)
        report, _, _ = self.report(self.model, "--compare=gpipe", f"--memory={limit}", *flags)
        self.show(report)
        self.assertEqual(self.table("#compare")[1][0], "gpipe, recomputing")

    def test_what_cannot_be_compared_says_why(self):
        report, _, _ = self.report(self.model, "--stages=4", "--microbatches=6", "--schedule=1f1b", "--compare=dualpipe-v,infer,gpipe")
        self.show(report)
        rows = self.table("#compare")
        self.assertEqual([row[0] for row in rows], ["1f1b", "gpipe", "dualpipe-v", "infer"])
        self.assertIn("microbatches", rows[2][1])
        self.assertIn("--mode", rows[3][1])
        self.assertEqual(self.elements("svg.timeline"), 2)
        done = self.run_tool("pipec", self.model, "--dry-run", "--compare=1f1b,gpip", expect=2)
        self.assertIn("'gpip' is not known; valid are", done.stderr)

    def test_a_measured_step_stands_under_the_modelled_one(self):
        for flags in (["--schedule=1f1b", "--stages=2"], ["--schedule=zb-h1", "--stages=2"], ["--schedule=interleaved", "--stages=2"],
                      ["--mode=infer", "--stages=4"]):
            with self.subTest(flags):
                flags = [*flags, "--microbatches=6"]
                plan = self.compile(self.model, *flags)
                trace = self.folder / "measured.json"
                self.run_tool("piperun", plan, "--data=synthetic", "--device=replay", f"--trace={trace}",
                              *([] if "--mode=infer" in flags else ["--steps=5"]))
                report, said, _ = self.report(self.model, f"--measured={trace}", *flags)
                self.show(report)
                # The step of median length, from its first event on.
                steps = collections.defaultdict(list)
                for event in json.loads(trace.read_text())["traceEvents"]:
                    if event["ph"] == "X":
                        steps[event["args"]["step"]].append(event)
                spans = sorted((max(e["ts"] + e["dur"] for e in events) - min(e["ts"] for e in events), step) for step, events in steps.items())
                length, step = spans[len(spans) // 2]
                origin = min(e["ts"] for e in steps[step])
                planned = [(e["name"], e["cat"], e["pid"], e["args"]["stage"], e["args"]["microbatch"], (e["ts"] - origin) * 1e-6,
                            (e["ts"] + e["dur"] - origin) * 1e-6) for e in steps[step] if e["cat"] in COMPUTE]
                self.assertEqual(self.elements("svg.timeline"), 2)
                self.assert_drawn(1, planned)
                data = json.loads(self.browser.js("document.getElementById('data').textContent"))
                measured = data["measured"]
                self.assertEqual((measured["times"], measured["step"]), ("measured", step))
                self.assertAlmostEqual(measured["step_time_s"], length * 1e-6, delta=1e-9)
                busy = sum(end - begin for *_, begin, end in planned)
                self.assertAlmostEqual(measured["bubble_ratio"], 1 - busy / (measured["ranks"] * max(end for *_, end in planned)), delta=1e-6)
                figures = self.text("#measured .figures")
                ratio = float(re.search(r"measured over planned measured\s+([\d.]+)", figures)[1])
                self.assertAlmostEqual(ratio, length * 1e-6 / said["step_time_s"], delta=0.002 * ratio)
                rows = self.table("#measured")
                self.assertEqual(len(rows), len(said["stages"]))
                for row, stage in zip(rows, said["stages"]):
                    mean = sum(end - begin for _, kind, _, s, _, begin, end in planned if s == stage["stage"] and kind == "F") / 6
                    self.assertAlmostEqual(float(row[4]), mean / stage["forward_s"], delta=0.01 * mean / stage["forward_s"])
                # Every message is drawn from what sends it to what waits for it.
                self.assertEqual(len(measured["messages"]), len(data["step"]["messages"]))
                for _, _, sent, arrived in measured["messages"]:
                    self.assertLessEqual(sent, arrived)
                self.assertEqual(self.browser.complaints, [])

    def test_each_figure_says_what_it_is(self):
        flags = ["--stages=2", "--microbatches=6"]
        for more in ([], ["--mode=infer"]):
            trace, profile = self.folder / "measured.json", self.folder / "profile.json"
            self.run_tool("piperun", self.compile(self.model, *flags, *more), "--data=synthetic", f"--trace={trace}", f"--profile={profile}",
                          "--threads=1")
            with_a_message(profile)
            report, said, _ = self.report(self.model, *flags, *more, f"--profile={profile}", f"--measured={trace}",
                                          *([] if more else ["--compare=gpipe"]))
            self.show(report)
            self.assertIn("measured costs" if more else "measured", said["simulated"])
            self.assertNotIn("modelled", self.text("#page"), "every node was measured, and messages are fitted")
            self.assertIn(f"planned {said['bubble_ratio'] * 100:.1f} %, {said['simulated']}", self.text("#measured"))
            self.assertIn(f"Times are {said['simulated']}", self.text("#memory"))
            self.assertIn(f"Times are {said['times']}, of messages fitted", self.text("#loads"))
            self.assertIn(said["step_span"], self.text("header"))
            # What inference does not have.
            for word in "backward", "update", "optimizer":
                self.assertEqual(word in self.text("#page"), not more, word)
        text = self.run_tool("pipec", self.model, "--dry-run", "--mode=infer", *flags).stdout
        self.assertRegex(text, r"(?m)^step time .*\(modelled; until the last rank is done\)$")
        self.assertNotRegex(text, "backward|update")
        for schedule, span in (("1f1b", "until the last rank is done"), ("zb-h1", "the longest span of a rank"),
                               ("pipedream-2bw", "the longest span of a rank")):
            self.assertRegex(self.run_tool("pipec", self.model, "--dry-run", f"--schedule={schedule}", *flags).stdout,
                             rf"(?m)^step time .*\(modelled; {span}, update included\)$")

    def test_hover_tells_both_times(self):
        plan = self.compile(self.model, "--stages=2", "--microbatches=4")
        trace = self.folder / "measured.json"
        self.run_tool("piperun", plan, "--data=synthetic", "--device=replay", "--steps=1", f"--trace={trace}")
        report, _, _ = self.report(self.model, "--stages=2", "--microbatches=4", f"--measured={trace}")
        self.show(report)
        self.browser.js("document.querySelector('svg.timeline').focus()")
        self.browser.key("ArrowRight")
        self.assertIn("(modelled)", self.text("#card"))
        self.assertIn("measured: at", self.text("#card"))
        self.assertEqual(self.elements("svg.timeline .selected"), 2, "the measured twin is marked")

    def test_a_trace_of_something_else_is_refused(self):
        plan = self.compile(self.model, "--stages=2", "--microbatches=4")
        trace = self.folder / "measured.json"
        self.run_tool("piperun", plan, "--data=synthetic", "--device=null", "--steps=1", f"--trace={trace}")
        modelled = self.folder / "modelled.json"
        self.run_tool("pipec", self.model, "--dry-run", "--stages=2", "--microbatches=4", f"--trace={modelled}")
        ranks = self.compile(self.model, "--stages=4", "--microbatches=4")
        wide = self.folder / "wide.json"
        self.run_tool("piperun", ranks, "--data=synthetic", "--device=null", "--steps=1", f"--trace={wide}")
        times = json.loads(trace.read_text())
        for event in times["traceEvents"]:
            if event["ph"] == "X" and event["name"] == "1B2":
                event["dur"] = 1e300
        for path, flags, why in ((self.write("times.json", json.dumps(times)), ["--microbatches=4"], "lacks 1B2"),
                                 (trace, ["--microbatches=5"], "lacks 0F4"), (trace, ["--microbatches=3"], "0F3 more often than the plan"),
                                 (wide, ["--microbatches=4"], "none of the plan's 2"), (modelled, ["--microbatches=4"], "no step of a run"),
                                 (self.model, [], "no Chrome trace"), (self.folder / "none", [], "none"),
                                 (self.write("list.json", "[1, 2]"), [], "no Chrome trace"),
                                 (self.write("odd.json", '{"traceEvents": [1, {"ph": 2}, {"args": {"step": "x"}}]}'), [], "no step of a run")):
            with self.subTest(why):
                done = self.run_tool("pipec", self.model, "-o", self.folder / "refused", "--stages=2", f"--measured={path}", *flags, expect=1)
                self.assertIn(why, done.stderr)
                self.assertFalse((self.folder / "refused").exists())


if __name__ == "__main__":
    main()
