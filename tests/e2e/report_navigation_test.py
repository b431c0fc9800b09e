"""report.html under mouse and keys in Chromium: what is selected, told, zoomed and panned."""

import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from pipec_testing import main
from report_page import PageCase, seconds, slices

TIMELINE = "svg.timeline"
STATE = "[document.querySelector('.zoom').textContent, document.querySelector('svg.timeline .ground').innerHTML]"


class Navigation(PageCase):
    def setUp(self):
        super().setUp()
        model = self.folder / "model.onnx"
        self.run_tool("make-model", "mlp", "--layers=8", "--inputs=32", "--hidden=32", "--classes=4", "-o", model)
        self.path, self.said, trace = self.report(model, "--stages=4", "--microbatches=8")
        self.planned = {name: rest for name, *rest in slices(trace)}
        self.messages = {name: (begin, end) for name, kind, _, _, _, begin, end in slices(trace, compute_only=False) if "SEND" in kind}
        self.show(self.path)

    def tearDown(self):
        self.assert_quiet(self.path)

    def zoom(self):
        return float(self.text(".zoom").rstrip("×"))

    def window(self):
        """Times at the left and the right end of the first timeline's axis."""
        _, times = self.scale()
        left, right = re.fullmatch(r"M([\d.]+) [\d.]+H([\d.]+)",
                                   self.browser.js("document.querySelector('.timeline .axis').getAttribute('d')")).groups()
        return times(float(left)), times(float(right))

    def press_often(self, key, times, shift=False):
        self.browser.js(f"for (let k = 0; k < {times}; ++k) document.querySelector('{TIMELINE}').dispatchEvent("
                        f"new KeyboardEvent('keydown', {{key: '{key}', shiftKey: {str(shift).lower()}}}))")
        self.browser.frame()

    def place(self, name):
        """The middle of an action on the screen."""
        _, rank, _, _, begin, end = self.planned[name]
        pixels, _ = self.scale()
        box, row = self.box(TIMELINE), self.box(".timeline .idle", rank)
        return box["x"] + pixels((begin + end) / 2), row["y"] + row["height"] / 2

    def hover(self, name):
        self.browser.js(f"document.querySelector('{TIMELINE}').scrollIntoView({{block: 'center'}})")
        self.browser.mouse("mouseMoved", *self.place(name))

    def selected(self):
        """Name of the action that the card tells of and the ring surrounds."""
        name = self.text("#card .name b")
        _, rank, _, _, begin, end = self.planned[name]
        pixels, _ = self.scale()
        ring, row, box = self.box(".timeline .selected"), self.box(".timeline .idle", rank), self.box(TIMELINE)
        self.assertAlmostEqual(ring["y"] + ring["height"] / 2, row["y"] + row["height"] / 2, delta=1.5)
        self.assertLess(abs(ring["x"] + ring["width"] / 2 - box["x"] - pixels((begin + end) / 2)), 2.5)
        return name

    def assert_time(self, text, expected):
        """The page writes four digits of whole nanoseconds."""
        self.assertAlmostEqual(seconds(text), expected, delta=1e-3 * expected + 1e-9)

    def card_hidden(self):
        return self.browser.js("document.getElementById('card').hidden")

    def test_hover_tells_of_action_and_messages(self):
        self.hover("1F3")
        self.assertEqual(self.selected(), "1F3")
        _, _, _, _, begin, end = self.planned["1F3"]
        card = self.text("#card")
        self.assertIn("stage 1, forward, microbatch 3", card)
        self.assert_time(re.search(r"steady, at (.*), takes", card)[1], begin)
        self.assertIn("(modelled)", card)
        for sender, receiver, send in ((0, 1, "0SEND_F3"), (1, 2, "1SEND_F3")):
            sent, arrived = self.messages[send]
            # 32 hidden floats of one sample.
            times = re.search(rf"message from stage {sender} \(rank {sender}\) to stage {receiver} \(rank {receiver}\), microbatch 3: "
                              r"128 B, sent at ([-\d.]+\s[nµm]?s), arrived at ([-\d.]+\s[nµm]?s)", card)
            self.assert_time(times[1], sent)
            self.assert_time(times[2], arrived)
            line = self.browser.js(f"document.querySelector('.message[data-from=\"{sender}\"][data-to=\"{receiver}\"]').getAttribute('d')")
            start, finish = re.match(r"M([\d.]+) ", line)[1], re.search(r" ([\d.]+) [\d.]+$", line)[1]
            pixels, _ = self.scale()
            self.assertAlmostEqual(float(start), pixels(self.planned[f"{sender}F3"][5]), delta=1.5)
            self.assertAlmostEqual(float(finish), pixels(self.planned[f"{receiver}F3"][4]), delta=1.5)
        self.assertEqual(self.elements(".timeline .message"), 2)
        told_at, drawn_at = self.box("#card"), self.box(TIMELINE)
        self.assertGreaterEqual(told_at["y"], drawn_at["y"] + drawn_at["height"], "the card hides the messages that it tells of")
        self.assertEqual(self.elements(".timeline .same"), 7, "the rest of the microbatch is marked: 4 forward, 4 backward")
        self.hover("2B5")
        self.assertIn("message from stage 3 (rank 3) to stage 2 (rank 2), microbatch 5: 128 B", self.text("#card"))
        self.browser.mouse("mouseMoved", 5, 5)
        self.assertTrue(self.card_hidden())
        self.assertEqual(self.elements(".timeline .selected, .timeline .message"), 0)

    def test_the_card_stays_on_the_screen(self):
        self.browser.size(500, 600)
        for name in ("0F0", "3B7", "0B7"):
            self.hover(name)
            card = self.box("#card")
            self.assertGreaterEqual(card["x"], 0)
            self.assertLessEqual(card["x"] + card["width"], 500)
            self.assertLessEqual(card["y"] + card["height"], 600)

    def test_keys_walk_from_action_to_action(self):
        for _ in range(20):
            self.browser.key("Tab")
            if self.browser.js(f"document.activeElement === document.querySelector('{TIMELINE}')"):
                break
        else:
            self.fail("Tab does not come to the timeline")
        order = {rank: [name for name, rest in self.planned.items() if rest[1] == rank] for rank in range(4)}
        self.browser.key("ArrowRight")
        self.assertEqual(self.selected(), "0F0")
        self.browser.key("ArrowRight")
        self.assertEqual(self.selected(), order[0][1])
        self.browser.key("ArrowLeft")
        self.assertEqual(self.selected(), "0F0")
        self.browser.key("ArrowLeft")
        self.assertEqual(self.selected(), "0F0", "there is nothing before")
        self.browser.key("ArrowDown")
        self.assertEqual(self.selected(), "1F0", "the nearest in time")
        self.browser.key("ArrowUp")
        self.browser.key("End")
        self.assertIn("UPDATE", self.text("#card .name b"))
        self.browser.key("ArrowLeft")
        self.browser.key("ArrowLeft")
        self.assertEqual(self.selected(), order[0][-1])
        self.browser.key("Home")
        self.assertEqual(self.selected(), "0F0")
        self.assertEqual(self.browser.js("document.getElementById('card').getAttribute('role')"), "status", "it is read out")
        self.browser.key("Escape")
        self.assertTrue(self.card_hidden())

    def test_what_is_selected_comes_into_view(self):
        self.browser.js(f"document.querySelector('{TIMELINE}').focus()")
        self.browser.key("Home")
        for _ in range(6):
            self.browser.key("+")
        before = self.window()
        self.assertLess(before[1], self.said["step_time_s"] / 5)
        self.browser.key("End")
        self.browser.key("ArrowLeft")
        self.browser.key("ArrowLeft")
        self.selected()
        self.assertGreater(self.window()[0], before[1])

    def test_zoom(self):
        self.browser.js(f"document.querySelector('{TIMELINE}').focus()")
        whole, bars, fitted = self.window(), len(self.bars()), self.browser.js(STATE)
        self.assertAlmostEqual(whole[1], self.said["step_time_s"], delta=whole[1] * 1e-3)
        self.browser.key("-")
        self.assertEqual(self.zoom(), 1, "the whole step is the most there is")
        self.browser.key("+")
        self.browser.key("+")
        self.assertAlmostEqual(self.zoom(), 2.25, delta=0.05)
        left, right = self.window()
        self.assertAlmostEqual((right - left) * 2.25, whole[1], delta=whole[1] * 0.01)
        self.assertAlmostEqual((left + right) / 2, whole[1] / 2, delta=whole[1] * 0.01)
        inside = [name for name, (_, _, _, _, begin, end) in self.planned.items() if end >= left and begin <= right]
        drawn = [bar for bar in self.bars() if bar[1] != "once"]
        self.assertLess(len(drawn), bars)
        self.assertAlmostEqual(len(drawn), len(inside), delta=2)
        memory = self.browser.js("document.querySelector('.memory').textContent")
        self.assertIn(self.browser.js("document.querySelector('.timeline .tick + text').textContent"), memory, "memory is on the same scale")
        self.browser.key("-")
        self.assertAlmostEqual(self.zoom(), 1.5, delta=0.05)
        self.browser.key("0")
        self.assertEqual(self.browser.js(STATE), fitted)
        self.press_often("+", 60)
        self.assertLessEqual(self.zoom(), 5000)

    def test_buttons(self):
        click = lambda label: (self.browser.js(f"document.querySelector('button[aria-label^=\"{label}\"]').click()"), self.browser.frame())
        click("zoom in")
        self.assertEqual(self.zoom(), 1.5)
        click("zoom out")
        self.assertEqual(self.zoom(), 1)
        click("zoom in")
        click("show the whole step")
        self.assertEqual(self.zoom(), 1)
        click("draw all messages")
        self.assertEqual(self.browser.js("document.querySelector('.message.all').dataset.count"), str(len(self.messages)))
        self.assertEqual(self.browser.js("document.querySelector('button[aria-pressed]').getAttribute('aria-pressed')"), "true")
        self.browser.js(f"document.querySelector('{TIMELINE}').focus()")
        self.browser.key("m")
        self.assertEqual(self.elements(".message.all"), 0)

    def test_pan(self):
        self.browser.js(f"document.querySelector('{TIMELINE}').focus()")
        for _ in range(3):
            self.browser.key("+")
        left, right = self.window()
        self.browser.key("ArrowRight", shift=True)
        after = self.window()
        self.assertAlmostEqual(after[0] - left, 0.2 * (right - left), delta=0.01 * (right - left))
        self.browser.key("ArrowLeft", shift=True)
        self.assertAlmostEqual(self.window()[0], left, delta=0.01 * (right - left))
        # Dragging: what is under the pointer stays there.
        x, y = self.place("1B2")
        _, times = self.scale()
        under = times(x - self.box(TIMELINE)["x"])
        self.browser.mouse("mousePressed", x, y, button="left", buttons=1, clickCount=1)
        self.browser.mouse("mouseMoved", x - 80, y, button="left", buttons=1)
        self.browser.mouse("mouseReleased", x - 80, y, button="left")
        _, times = self.scale()
        self.assertAlmostEqual(times(x - 80 - self.box(TIMELINE)["x"]), under, delta=0.01 * (right - left))
        self.press_often("ArrowRight", 30, shift=True)
        self.assertAlmostEqual(self.window()[1], self.said["step_time_s"], delta=self.said["step_time_s"] * 1e-3)

    def test_wheel(self):
        x, y = self.place("2F3")
        self.browser.mouse("mouseWheel", x, y, deltaX=0, deltaY=120)
        self.assertEqual(self.zoom(), 1, "the wheel alone scrolls the page")
        self.browser.js("scrollTo(0, 0)")
        x, y = self.place("2F3")
        _, times = self.scale()
        under = times(x - self.box(TIMELINE)["x"])
        self.browser.mouse("mouseWheel", x, y, deltaX=0, deltaY=-300, modifiers=2)
        self.assertAlmostEqual(self.zoom(), 2.718, delta=0.1)
        _, times = self.scale()
        self.assertAlmostEqual(times(x - self.box(TIMELINE)["x"]), under, delta=self.said["step_time_s"] * 0.01)
        left, _ = self.window()
        self.browser.mouse("mouseWheel", x, y, deltaX=200, deltaY=0)
        self.assertGreater(self.window()[0], left)

    def test_gliding_ends_where_a_jump_does(self):
        self.browser.js(f"document.querySelector('{TIMELINE}').focus()")
        self.browser.key("+")
        jumped = self.browser.js(STATE)
        self.browser.key("0")
        self.media(motion="no-preference")
        self.browser.key("+")
        self.browser.js(f"""new Promise(done => {{
          let last = null, same = 0;  // it glides by a little every frame
          const look = () => {{
            const now = JSON.stringify({STATE});
            same = now === last ? same + 1 : 0;
            last = now;
            same < 5 ? requestAnimationFrame(look) : done();
          }};
          look();
        }})""")
        self.assertEqual(self.browser.js(STATE), jumped)


if __name__ == "__main__":
    main()
