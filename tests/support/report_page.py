"""A report.html as it is drawn in Chromium, read back: which bars, numbers and lines, at which times."""

import json
import re

from browser import Browser
from pipec_testing import Case


# Every bar of timeline k: rank, style class, left edge and width in pixels; the window of time and the margins.
READ_BARS = """(k => {
  const svg = document.querySelectorAll('svg.timeline')[k], bars = [];
  for (const path of svg.querySelectorAll('.bars path'))
    for (const [, x, width] of path.getAttribute('d').matchAll(/M([-.\\d]+) [-.\\d]+h([.\\d]+)/g))
      bars.push([Number(path.dataset.rank), path.getAttribute('class'), Number(x), Number(width)]);
  return bars;
})(%d)"""
READ_NUMBERS = """(k => [...document.querySelectorAll('svg.timeline')[k].querySelectorAll('.numbers text')].map(text =>
  [Number(text.getAttribute('x')), Number(text.getAttribute('y')), text.getAttribute('class'), Number(text.textContent)]))(%d)"""
# Pixels from the left edge of timeline k to time 0 and to a later time, on the axis.
READ_AXIS = """(k => {
  const svg = document.querySelectorAll('svg.timeline')[k];
  const ticks = [...svg.querySelectorAll('.ground .tick')].map(tick => Number(tick.getAttribute('d').match(/M([-.\\d]+)/)[1]));
  const texts = [...svg.querySelectorAll('.ground .tick + text')].map(text => text.textContent);
  return [ticks, texts];
})(%d)"""
UNITS = {"ns": 1e-9, "µs": 1e-6, "ms": 1e-3, "s": 1.0}


def seconds(text):
    """'1.25 ms' -> 0.00125"""
    number, unit = re.fullmatch(r"([-\d.]+)\s(\S+)", text.strip()).groups()
    return float(number) * UNITS[unit]


def slices(path, compute_only=True):
    """Of a Chrome trace: (name, kind, rank, stage, microbatch, begin, end), times in seconds."""
    found = []
    for event in json.loads(path.read_text())["traceEvents"]:
        if event["ph"] != "X" or (compute_only and event["cat"] not in ("F", "B", "I", "W")):
            continue
        begin = event["ts"] * 1e-6
        found.append((event["name"], event["cat"], event["pid"], event["args"]["stage"], event["args"]["microbatch"], begin,
                      begin + event["dur"] * 1e-6))
    return found


class PageCase(Case):
    """One browser for all tests of a class. Motion is reduced unless a test wants it: what a key did is then drawn at once."""

    @classmethod
    def setUpClass(cls):
        cls.browser = Browser()

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()

    def setUp(self):
        super().setUp()
        self.browser.size(1440, 1000)
        self.media()

    def media(self, kind="", scheme="light", motion="reduce"):
        self.browser.media(kind, prefers_color_scheme=scheme, prefers_reduced_motion=motion)

    def report(self, model, *flags):
        """(path of the report, what --json said, path of the modelled trace)."""
        self.count += 1
        report, trace = self.folder / f"report{self.count}.html", self.folder / f"modelled{self.count}.json"
        done = self.run_tool("pipec", model, "--dry-run", "--json", f"--report={report}", f"--trace={trace}", *flags)
        return report, json.loads(done.stdout), trace

    def show(self, report):
        self.browser.open(report)
        self.assert_quiet(report)

    def assert_quiet(self, report):
        self.assertEqual(self.browser.complaints, [], "the page complains")
        self.assertEqual(self.browser.requests, [report.resolve().as_uri()], "the page asks for more than itself")

    def bars(self, timeline=0):
        return self.browser.js(READ_BARS % timeline)

    def numbers(self, timeline=0):
        return self.browser.js(READ_NUMBERS % timeline)

    def scale(self, timeline=0):
        """(seconds -> pixels, pixels -> seconds) by the axis's ticks."""
        ticks, texts = self.browser.js(READ_AXIS % timeline)
        self.assertGreaterEqual(len(ticks), 2)
        first, last = seconds(texts[0]), seconds(texts[-1])
        per_second = (ticks[-1] - ticks[0]) / (last - first)
        return lambda t: ticks[0] + (t - first) * per_second, lambda x: first + (x - ticks[0]) / per_second

    def text(self, selector):
        return self.browser.js(f"document.querySelector({json.dumps(selector)}).innerText").replace("\xa0", " ")

    def elements(self, selector):
        return self.browser.js(f"document.querySelectorAll({json.dumps(selector)}).length")

    def box(self, selector, index=0):
        return self.browser.js(f"(b => ({{x: b.x, y: b.y, width: b.width, height: b.height}}))"
                               f"(document.querySelectorAll({json.dumps(selector)})[{index}].getBoundingClientRect())")

    def colour(self, selector, what="fill"):
        """(r, g, b) of a computed style."""
        text = self.browser.js(f"getComputedStyle(document.querySelector({json.dumps(selector)})).{what}")
        return tuple(float(part) for part in re.findall(r"[\d.]+", text)[:3])
