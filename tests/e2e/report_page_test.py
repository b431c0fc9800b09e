"""report.html in Chromium: every action of the plan is drawn, at its time and in its colour; the figures are --json's."""

import collections
import itertools
import json
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from colours import DICHROMATS, contrast, difference
from pipec_testing import main
from report_page import PageCase, slices

HALF_PIXEL = 0.5


class Drawing(PageCase):
    def model(self, layers=8, name="model"):
        path = self.folder / f"{name}.onnx"
        self.run_tool("make-model", "mlp", f"--layers={layers}", "--inputs=32", "--hidden=32", "--classes=4", "-o", path)
        return path

    def test_every_action_is_a_bar_at_its_time(self):
        model = self.model()
        for flags in (["--schedule=1f1b", "--stages=4"], ["--schedule=gpipe", "--stages=1"], ["--schedule=interleaved", "--stages=4", "--virtual-stages=2"],
                      ["--schedule=zb-h1", "--stages=2"], ["--schedule=dualpipe-v", "--stages=4"], ["--mode=infer", "--stages=4"]):
            with self.subTest(flags):
                report, _, trace = self.report(model, "--microbatches=8", *flags)
                self.show(report)
                planned = slices(trace)
                pixels, _ = self.scale()
                drawn = [bar for bar in self.bars() if bar[1] != "once"]
                self.assertEqual(collections.Counter((rank, style[0]) for rank, style, *_ in drawn),
                                 collections.Counter((rank, kind) for _, kind, rank, *_ in planned))
                bars = collections.defaultdict(list)
                for rank, style, x, width in drawn:
                    bars[rank, style[0]].append((x, width))
                for name, kind, rank, _, _, begin, end in planned:
                    near = min(abs(x - pixels(begin)) + abs(x + width - pixels(end)) for x, width in bars[rank, kind])
                    self.assertLess(near, 1 + 3 * HALF_PIXEL, f"{name} is not drawn where it happens")
                # Norm and update of every rank, which have no modelled time.
                once = [bar for bar in self.bars() if bar[1] == "once"]
                if "--mode=infer" in flags:
                    self.assertEqual(once, [])
                else:
                    self.assertEqual({rank for rank, *_ in once}, {rank for _, _, rank, *_ in planned})

    def test_what_is_painted(self):
        report, _, trace = self.report(self.model(), "--stages=2", "--microbatches=2", "--schedule=gpipe")
        for scheme in ("light", "dark"):
            self.media(scheme=scheme)
            self.show(report)
            pixels, _ = self.scale()
            box = self.box("svg.timeline")
            planned = slices(trace)
            for _, kind, rank, _, _, begin, end in planned:
                row = self.box(".timeline .idle", rank)
                painted = self.browser.pixel(box["x"] + pixels(begin) + 2, row["y"] + row["height"] / 2)
                self.assertEqual(painted, self.colour(f".bars .{kind}-0"), f"{kind}, {scheme}")
            # Rank 1 waits for the first forward of rank 0; rank 0 for the backwards of rank 1.
            first = min(begin for _, _, rank, _, _, begin, _ in planned if rank == 1)
            row = self.box(".timeline .idle", 1)
            self.assertEqual(self.browser.pixel(box["x"] + pixels(first / 2), row["y"] + row["height"] / 2), self.colour(".timeline .idle"))
            self.assertEqual(self.browser.pixel(3, 3), self.colour("body", "backgroundColor"))

    def test_numbers_are_microbatches(self):
        report, _, trace = self.report(self.model(), "--stages=2")  # as many microbatches as there are by default: 32
        self.show(report)
        planned = slices(trace)
        for zoomed in (False, True):
            pixels, _ = self.scale()
            shown = {(rank, mb, kind): (pixels(begin), pixels(end)) for _, kind, rank, _, mb, begin, end in planned}
            bars, numbers = self.bars(), self.numbers()
            self.assertTrue(numbers, "no number fits")
            # What is cut off at an edge may be written smaller, and lies a little higher.
            tops = sorted(y for y, _ in collections.Counter(y for _, y, *_ in numbers).most_common(2))
            for x, y, style, number in numbers:
                left, right = shown[min((0, 1), key=lambda rank: abs(tops[rank] - y)), number, style[0]]
                self.assertTrue(left - 1 < x < right + 1, f"number {number} lies at {x}, its bar from {left} to {right}")
            if zoomed:
                wide, narrow = ([bar for bar in bars if bar[1] != "once" and bar[3] > least] for least in (16, 5))
                self.assertLessEqual(len(wide), len(numbers), "where they fit all bars have numbers")
                self.assertLessEqual(len(numbers), len(narrow), "no number where none fits")
            else:
                self.assertLess(len(numbers), 1 + len(bars))
            for _ in range(4):
                self.browser.js("document.querySelector('button[aria-label^=\"zoom in\"]').click()")
                self.browser.frame()

    def test_large_plans_are_drawn_whole(self):
        report, _, trace = self.report(self.model(64), "--stages=64", "--microbatches=256", "--recompute=none")
        self.show(report)
        drawn = collections.Counter(style[0] for _, style, *_ in self.bars() if style != "once")
        self.assertEqual(drawn, {"F": 64 * 256, "B": 64 * 256})
        # Elements of the page stay few: a path a colour and rank.
        self.assertLess(self.elements("svg.timeline *"), 3000)

    def test_phases_and_bubbles(self):
        report, said, trace = self.report(self.model(), "--stages=4", "--microbatches=8")
        self.show(report)
        pixels, _ = self.scale()
        for rank in range(4):
            mine = [(kind, begin, end) for _, kind, r, _, _, begin, end in slices(trace) if r == rank]
            first_backward = min(begin for kind, begin, _ in mine if kind == "B")
            last_forward = max(end for kind, _, end in mine if kind == "F")
            after = min(begin for kind, begin, _ in mine if begin >= last_forward - 1e-9)  # times are rounded
            limits = {"warm-up": (mine[0][1], max(end for kind, _, end in mine if kind == "F" and end <= first_backward)),
                      "steady": (first_backward, last_forward), "cool-down": (after, mine[-1][2])}
            for phase, (begin, end) in limits.items():
                self.assertEqual(self.elements(f".timeline rect.{phase}"), 4)
                x, width = self.browser.js(f"(r => [r.getAttribute('x'), r.getAttribute('width')].map(Number))"
                                           f"(document.querySelectorAll('.timeline rect.{phase}')[{rank}])")
                self.assertAlmostEqual(x, pixels(begin), delta=1, msg=f"{phase} of rank {rank}")
                self.assertAlmostEqual(x + width, pixels(end), delta=2.5, msg=f"{phase} of rank {rank}")
        self.assertEqual(self.elements(".timeline rect.idle"), 4)
        # The update comes after the part whose bubbles count.
        bars = [bar for bar in self.bars() if bar[1] != "once"]
        length = max(x + width for *_, x, width in bars) - min(x for *_, x, _ in bars)
        busy = collections.Counter()
        for rank, _, _, width in bars:
            busy[rank] += width + min(1, width * 0.15 / 0.85)
        ratio = sum(1 - busy[rank] / length for rank in range(4)) / 4
        self.assertAlmostEqual(ratio, said["bubble_ratio"], delta=0.01)

    def test_memory(self):
        for schedule, kept in (("gpipe", [16] * 4), ("1f1b", [4, 3, 2, 1])):
            report, said, _ = self.report(self.model(16), "--stages=4", "--microbatches=16", f"--schedule={schedule}", "--recompute=none")
            self.show(report)
            data = json.loads(self.browser.js("document.getElementById('data').textContent"))
            curves = data["step"]["memory"]
            self.assertEqual(self.elements(".memory .kept"), 4)
            for rank, curve in enumerate(curves):
                peak = max(curve["points"][1::2])
                self.assertEqual(self.browser.js(f"Number(document.querySelector('.memory .peak[data-rank=\"{rank}\"]').dataset.bytes)"), peak)
                self.assertLessEqual(peak, curve["reserved_bytes"])
                self.assertEqual(curve["points"][-1], curve["always_bytes"], "after the step nothing is kept")
                self.assertEqual(curve["reserved_bytes"], said["stages"][rank]["peak_bytes"])
            if schedule == "gpipe":
                one = [(max(curve["points"][1::2]) - curve["always_bytes"]) / 16 for curve in curves]
            else:
                for rank in (1, 2):  # whole layers between messages: a microbatch's bytes are what gpipe keeps of each
                    held = (max(curves[rank]["points"][1::2]) - curves[rank]["always_bytes"]) / one[rank]
                    self.assertAlmostEqual(held, kept[rank], delta=0.8)

    def test_memory_limit(self):
        report, said, _ = self.report(self.model(), "--stages=2")
        self.show(report)
        self.assertEqual(self.elements(".memory .limit"), 0)
        self.assertIn("lies above the picture", self.text("#memory .note"))
        report, _, _ = self.report(self.model(), "--stages=2", f"--memory={said['peak_bytes'] * 5 // 4}")
        self.show(report)
        self.assertEqual(self.elements(".memory .limit"), 2)

    def test_devices_that_differ(self):
        report, said, _ = self.report(self.model(), "--stages=2")
        self.show(report)
        self.assertNotIn("device", self.text("#stages thead"))
        device = {"flops_per_second": 1e10, "bytes_per_second": 1e9, "launch_seconds": 1e-6}
        most = max(row["peak_bytes"] for row in said["stages"])
        cluster = self.write("cluster.json", json.dumps({"hosts": [{
            "name": "a", "link": {"latency_seconds": 1e-6, "bytes_per_second": 1e9},
            "devices": [{"name": "one", "memory_bytes": most * 5 // 4, **device}, {"name": "other", "memory_bytes": most * 3 // 2, **device}]}]}))
        report, _, _ = self.report(self.model(), "--stages=2", f"--cluster={cluster}")
        self.show(report)
        self.assertIn("device", self.text("#stages thead"))
        rows = self.browser.js("[...document.querySelectorAll('#stages tbody tr')].map(row => row.lastElementChild.innerText)")
        self.assertEqual(rows, ["one", "other"])
        self.assertEqual(self.elements(".memory .limit"), 2)
        self.assertIn("limit of its device", self.text("#memory .key"))
        heights = self.browser.js("[...document.querySelectorAll('.memory .limit')].map(e => e.getBBox().y)")
        ranks = self.browser.js("[...document.querySelectorAll('.memory .idle')].map(e => { const b = e.getBBox(); return [b.y + b.height, b.height]; })")
        shares = [(base - y) / height for y, (base, height) in zip(heights, ranks)]
        self.assertAlmostEqual(shares[1] / shares[0], 6 / 5, delta=0.02)

    def test_simulated_figures_are_never_called_measured(self):
        model = self.model()
        plan, profile = self.folder / "profiled.plan", self.folder / "profile.json"
        self.run_tool("pipec", model, "--stages=2", "--microbatches=8", "-o", plan)
        self.run_tool("piperun", plan, "--data=synthetic", "--steps=2", "--threads=1", f"--profile={profile}")
        for batch, label in ((8, r"from (measured costs|costs 9\d.*)"), (64, r"from costs [\d.]+ % measured, [\d.]+ % fitted")):
            report, said, _ = self.report(model, "--stages=2", "--microbatches=8", f"--batch={batch}", f"--profile={profile}")
            self.assertRegex(said["simulated"], f"^{label}$")
            self.show(report)
            for name in ("step time", "bubble ratio", "slowest stage"):
                tag = self.browser.js("[...document.querySelectorAll('header .figure')].find(e => e.innerText.startsWith('%s'))"
                                      ".querySelector('.tag').innerText" % name)
                self.assertEqual(tag, said["simulated"])
            self.assertEqual(self.elements("header .tag.measured"), 0)
            wide = self.browser.js("[...document.querySelectorAll('header .figure')].filter(e => e.scrollWidth > e.clientWidth).length")
            self.assertEqual(wide, 0, "a tag leaves its box")

    def test_figures_are_those_of_json(self):
        flags = ["--stages=2", "--virtual-stages=2", "--schedule=interleaved", "--microbatches=6", "--batch=12", "--optimizer=adagrad", "--precision=bf16"]
        report, said, _ = self.report(self.model(), *flags)
        self.show(report)
        self.assertEqual(json.loads(self.browser.js("document.getElementById('data').textContent"))["report"], said)
        facts = {"schedule": "interleaved", "ranks (P)": "2", "stages a rank (V)": "2", "microbatches (M)": "6", "batch": "12",
                 "optimizer": "adagrad", "precision": "bfloat16"}
        for fact, value in facts.items():
            self.assertEqual(self.text(f"[data-fact='{fact}'] dd"), value)
        self.assertEqual(self.text("h1"), "model")
        figures = [self.browser.js(f"document.querySelectorAll('header .figure')[{k}].innerText").replace("\xa0", " ") for k in range(4)]
        for figure, value in zip(figures, [f"{said['step_time_s'] * 1e3:.4g} ms" if said["step_time_s"] >= 1e-3 else f"{said['step_time_s'] * 1e6:.4g} µs",
                                           f"{said['bubble_ratio'] * 100:.1f} %", f"{said['bound_ratio']:.3f}",
                                           format(said["peak_bytes"] / 1e3, "#.3g").rstrip(".") + " kB"]):  # 63.0 and 128
            self.assertIn(value, figure)
            self.assertIn("planned" if "peak memory" in figure else "modelled", figure)
        rows = self.browser.js("[...document.querySelectorAll('#stages tbody tr')].map(row => [...row.children].map(cell => cell.innerText))")
        self.assertEqual([[int(cell) for cell in row[:3]] for row in rows], [[row["stage"], row["rank"], row["nodes"]] for row in said["stages"]])
        # Loads: heights over the height of the bound's line are what the bound ratio says.
        tallest = self.browser.js("""(() => {
          const box = e => e.getBBox(), svg = document.querySelector('svg.loads');
          const heights = {};
          for (const bar of svg.querySelectorAll('rect')) heights[bar.dataset.rank] = (heights[bar.dataset.rank] || 0) + box(bar).height;
          const base = Number(svg.querySelector('.axis').getAttribute('d').match(/ ([.\\d]+)H/)[1]);
          return Math.max(...Object.values(heights)) / (base - box(svg.querySelector('.bound')).y);
        })()""")
        self.assertAlmostEqual(tallest, said["bound_ratio"], delta=0.02)
        for note in said["notes"]:
            self.assertIn(note, self.text("#notes"))

    def test_names_are_text(self):
        report, said, _ = self.report(self.model(name="<script>hacked=1<script> <img src=x onerror=hacked=1>&amp;"), "--stages=2")
        self.show(report)
        self.assertEqual(said["model"], "<script>hacked=1<script> <img src=x onerror=hacked=1>&amp;")
        self.assertEqual(self.text("h1"), said["model"])
        self.assertEqual(self.browser.js("document.title"), "pipec: " + said["model"])
        self.assertEqual(self.browser.js("typeof hacked"), "undefined")
        self.assertEqual((self.elements("img"), self.elements("script")), (0, 2))

    def test_nothing_is_fetched(self):
        report, _, _ = self.report(self.model(), "--stages=2")
        text = report.read_text()
        for way in (r"\bsrc\s*=", r"\bhref\s*=", r"url\(", r"@import", r"\bfetch\(", r"XMLHttpRequest", r"WebSocket", r"sendBeacon", r"\bimport\("):
            self.assertIsNone(re.search(way, text), way)
        self.assertIn("default-src 'none'", text)
        self.show(report)

    def test_narrow_screens_and_paper(self):
        report, _, trace = self.report(self.model(), "--stages=4", "--microbatches=8")
        self.browser.size(360, 740)
        self.show(report)
        self.assertLessEqual(self.browser.js("document.documentElement.scrollWidth"), 360, "the page scrolls sideways")
        self.assertEqual(len([bar for bar in self.bars() if bar[1] != "once"]), len(slices(trace)))
        self.media("print", scheme="dark")
        self.assertEqual(self.browser.js("getComputedStyle(document.querySelector('.tools')).display"), "none")
        self.assertEqual(self.colour(".bars .F-0"), (0x1d, 0x4b, 0x9c), "paper is light")
        self.assert_quiet(report)

    def test_colours(self):
        model = self.model(16)
        for scheme, ink in (("light", "dark"), ("dark", "light")):
            self.media(scheme=scheme)
            seen = {}
            for flags in (["--schedule=dualpipe-v"], ["--schedule=interleaved", "--virtual-stages=4"]):
                report, _, _ = self.report(model, "--stages=4", "--microbatches=8", *flags)
                self.show(report)
                page, idle = self.colour("body", "backgroundColor"), self.colour(".timeline .idle")
                self.assertGreater(contrast(self.colour("body", "color"), page), 7)
                self.assertGreater(contrast(self.colour(".note", "color"), page), 4.5)
                self.assertGreater(contrast(self.colour(".label"), page), 4.5)
                self.assertGreater(contrast(self.colour("header .tag", "color"), self.colour(".figure", "backgroundColor")), 4.5)
                for style in sorted({bar[1] for bar in self.bars()}):
                    fill = self.colour(f".bars .{style}")
                    self.assertGreater(contrast(fill, idle), 3 if style in ("once", "F-0", "B-0", "I-0", "W-0") else 1.9, f"{style}, {scheme}")
                    if style != "once":
                        seen[style] = fill
                for number in {style for *_, style, _ in self.numbers()}:
                    self.assertGreater(contrast(self.colour(f".numbers .{number}"), seen[number]), 4.5, f"number on {number}, {scheme}")
                if "interleaved" in flags[0]:
                    shades = [seen[f"F-{share}"] for share in (0, 33, 67, 100)]
                    for lower, higher in zip(shades, shades[1:]):
                        self.assertGreater(contrast(higher, (0, 0, 0)), contrast(lower, (0, 0, 0)), "later stages are lighter")
                    self.assertEqual(self.elements("#timeline .key [data-kind=F] i"), 4, "the key shows each shade")
            for (one, a), (other, b) in itertools.combinations(sorted(seen.items()), 2):
                if one[0] != other[0]:
                    for eyes in (None, *DICHROMATS):
                        self.assertGreater(difference(a, b, eyes), 4, f"{one} and {other} to {eyes or 'all'} eyes, {scheme}")


if __name__ == "__main__":
    main()
