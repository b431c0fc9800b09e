"""pipec --cluster: the sample clusters, unequal devices and links, and what is wrong with a file."""

import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from pipec_testing import ROOT, Case, Weights, main, with_a_message, write_npz

SAMPLES = ROOT / "samples/clusters"
LINK = {"latency_seconds": 1e-6, "bytes_per_second": 1e12}


def device(name, speed, memory=1e12, **more):
    return {"name": name, "flops_per_second": 1e10 * speed, "bytes_per_second": 1e9 * speed, "launch_seconds": 1e-6 / speed,
            "memory_bytes": memory, **more}


def seconds(row):
    return row["forward_s"] + row["backward_s"]


class Cluster(Case):
    def setUp(self):
        super().setUp()
        self.model = self.layers(48)

    def layers(self, number):
        model = self.folder / f"mlp-{number}.onnx"
        self.run_tool("make-model", "mlp", f"--layers={number}", "--inputs=64", "--hidden=64", "--classes=64", "--batch=symbolic",
                      "-o", model)
        return model

    def cluster(self, *hosts, **more):
        self.count += 1
        return self.write(f"cluster{self.count}.json", json.dumps({"hosts": list(hosts), **more}))

    def report(self, *flags, model=None):
        return json.loads(self.run_tool("pipec", model or self.model, *flags, "--dry-run", "--json").stdout)

    def test_samples(self):
        gpt = self.folder / "gpt.onnx"
        self.run_tool("make-model", "gpt", "--preset=gpt-tiny", "--layers=32", "--no-weights", "-o", gpt)
        devices = {"h200-8": ["h200"] * 8, "h200-4x8": ["h200"] * 32, "cpu-4-ethernet": ["cpu"] * 4,
                   "mixed-8": ["h200", "h100"] + ["a100-pcie"] * 4 + ["v100-pcie"] * 2}
        self.assertEqual(set(devices), {path.stem for path in SAMPLES.glob("*.json")})
        reports = {}
        for name, names in devices.items():
            with self.subTest(name):
                flags = [f"--cluster={SAMPLES / name}.json", f"--stages={len(names)}", "--microbatches=8"]
                report = reports[name] = self.report(*flags, model=gpt)
                self.assertEqual([row["device"] for row in report["stages"]], names)
                self.assertGreaterEqual(report["bound_ratio"], 1 - 1e-9)
        self.assertEqual(reports["mixed-8"]["device"], "1 x h200, 1 x h100, 4 x a100-pcie, 2 x v100-pcie")
        # The same as by --device.
        ours = reports["h200-8"]
        by_device = self.report("--device=h200", "--stages=8", "--microbatches=8", model=gpt)
        for figure in ("step_time_s", "stages", "memory_limit", "device", "bound_ratio"):
            self.assertEqual(ours[figure], by_device[figure], figure)

    def test_devices_share_by_speed(self):
        path = self.cluster({"name": "a", "devices": [device("slow", 1), device("fast", 3, count=2)], "link": LINK})
        report = self.report(f"--cluster={path}", "--stages=3", "--microbatches=256")
        self.assertEqual([row["device"] for row in report["stages"]], ["slow", "fast", "fast"])
        nodes = [row["flop"] for row in report["stages"]]
        for fast in nodes[1:]:
            self.assertAlmostEqual(fast / nodes[0], 3, delta=0.6)
        times = [seconds(row) for row in report["stages"]]
        self.assertLess(max(times) / min(times), 1.35)
        text = self.run_tool("pipec", self.model, f"--cluster={path}", "--stages=3", "--dry-run").stdout
        self.assertIn("times for 1 x slow, 2 x fast: modelled", text)
        self.assertRegex(text, r"(?m)^ +0 +0 .* slow$")
        self.assertRegex(text, r"(?m)^ +2 +2 .* fast$")
        equal = self.run_tool("pipec", self.model, "--device=h200", "--dry-run").stdout
        self.assertNotRegex(equal, r"(?m)^ +0 +0 .* h200$")

    def test_every_schedule_takes_it(self):
        path = self.cluster({"name": "a", "devices": [device("slow", 1), device("fast", 3)], "link": LINK})
        for schedule in ("gpipe", "zb-v", "interleaved", "zb-h1", "pipedream-2bw", "auto"):
            with self.subTest(schedule):
                report = self.report(f"--cluster={path}", f"--schedule={schedule}", "--stages=2", "--microbatches=4")
                work = {"slow": 0, "fast": 0}
                for row in report["stages"]:
                    self.assertEqual(row["device"], ["slow", "fast"][row["rank"]])
                    work[row["device"]] += row["flop"]
                self.assertGreater(work["fast"] / work["slow"], 2)

    def test_a_slow_link_shows(self):
        devices = [device("one", 1, count=2)]
        near = self.cluster({"name": "a", "devices": [device("one", 1, count=4)], "link": LINK})
        far = self.cluster({"name": "a", "devices": devices, "link": LINK}, {"name": "b", "devices": devices, "link": LINK},
                           link={"latency_seconds": 5e-3, "bytes_per_second": 1e9})
        flags = ["--stages=4", "--microbatches=4"]
        near, far = (self.report(f"--cluster={path}", *flags) for path in (near, far))
        # Once there and once back, at least.
        self.assertGreater(far["step_time_s"], near["step_time_s"] + 2 * 5e-3 * 0.9)
        self.assertEqual([row["messages_s"] > 5e-3 for row in far["stages"]], [False, True, True, False])
        self.assertLess(max(row["messages_s"] for row in near["stages"]), 1e-3)

    def test_each_device_keeps_its_memory(self):
        self.model = self.layers(12)
        devices = lambda small: [device("small", 1, memory=small), device("large", 1)]
        roomy = self.cluster({"name": "a", "devices": devices(1e12), "link": LINK})
        needed = [row["peak_bytes"] for row in self.report(f"--cluster={roomy}", "--stages=2")["stages"]]
        small = needed[0] // 2
        tight = self.cluster({"name": "a", "devices": devices(small), "link": LINK})
        for flags in ([], ["--schedule=zb-h1"], ["--schedule=zb-v"], ["--schedule=interleaved", "--virtual-stages=2"]):
            with self.subTest(flags):
                report = self.report(f"--cluster={tight}", "--stages=2", *flags)
                rows = {row["rank"]: row for row in report["stages"]}  # peak and limit are the rank's
                self.assertLessEqual(rows[0]["peak_bytes"], small)
                self.assertGreater(rows[1]["peak_bytes"], small)
                self.assertEqual([rows[rank]["memory_limit"] for rank in (0, 1)], [small, 10**12])
                self.assertEqual(report["memory_limit"], small)
        # --memory caps all of them, and never gives more.
        report = self.report(f"--cluster={tight}", "--stages=2", "--memory=1GB")
        self.assertEqual([row["memory_limit"] for row in report["stages"]], [small, 10**9])
        tiny = self.cluster({"name": "a", "devices": devices(1000), "link": LINK})
        self.assertIn("of its device is 1000 (--memory);", self.compile(self.model, f"--cluster={tiny}", "--stages=2", expect=1))

    def test_memory_of_unequal_devices(self):
        """More of it is never slower, no cut by hand is much faster, and none is below the bound."""
        gpt = self.folder / "gpt.onnx"
        self.run_tool("make-model", "gpt", "--preset=gpt-tiny", "--no-weights", "-o", gpt)
        big = device("big", 10, launch_seconds=1e-6, flops_per_second=1e11, bytes_per_second=2e10)
        slow = device("slow", 1, launch_seconds=1e-4, flops_per_second=1e9, bytes_per_second=2e8)
        link = {"latency_seconds": 1e-6, "bytes_per_second": 1e10}
        by_hand = {(3, "1f1b", 0.6e6): "transformer.h.0.attn.c_attn.matmul,logits",
                   (3, "gpipe", 0.6e6): "transformer.h.0.add_1,logits"}
        for stages, schedule in ((3, "1f1b"), (3, "gpipe"), (4, "1f1b")):
            before = float("inf")
            for memory in (0.6e6, 1.2e6, 1.5e6, 2.5e6):
                small = {**big, "name": "small", "memory_bytes": memory}
                path = self.cluster({"name": "a", "devices": [small, big, slow, big], "link": link})
                flags = [f"--cluster={path}", f"--stages={stages}", f"--schedule={schedule}"]
                with self.subTest(stages=stages, schedule=schedule, memory=memory):
                    report = self.report(*flags, model=gpt)
                    self.assertLessEqual(report["step_time_s"], before * (1 + 1e-9))
                    self.assertGreaterEqual(report["bound_ratio"], 1 - 1e-9)
                    before = report["step_time_s"]
                    if cut := by_hand.get((stages, schedule, memory)):
                        hand = self.report(*flags, f"--cut={cut}", model=gpt)
                        self.assertLessEqual(before, 1.01 * hand["step_time_s"])

    def test_profiles_are_of_devices_by_name(self):
        plan = self.compile(self.model, "--stages=2", "--microbatches=2", "--batch=4")
        values = Weights(7).random
        data = self.folder / "data.npz"
        write_npz(data, {"x": ("float32", (16, 64), [values.gauss(0, 1) for _ in range(16 * 64)]),
                         "labels": ("int64", (16,), [values.randrange(64) for _ in range(16)])})
        profile = self.folder / "profile.json"
        self.run_tool("piperun", plan, f"--data={data}", f"--profile={profile}", "--threads=1")
        with_a_message(profile)
        flags = [f"--profile={profile}", "--microbatches=2", "--batch=4"]
        cpu = device("cpu", 1)
        path = self.cluster({"name": "a", "devices": [cpu, cpu, device("other", 1)], "link": LINK})
        report = self.report(f"--cluster={path}", "--stages=3", *flags)
        self.assertEqual([row["times"] for row in report["stages"]], ["measured", "measured", "modelled"])
        self.assertEqual(report["message_times"], "modelled", "that of two who were not measured is none")
        report = self.report(f"--cluster={path}", "--stages=2", *flags)
        self.assertEqual(report["message_times"], "fitted")
        none = self.cluster({"name": "a", "devices": [device("one", 1), device("other", 1)], "link": LINK})
        self.assertIn("the profile was measured on cpu, the plan is for 1 x one, 1 x other",
                      self.compile(self.model, f"--cluster={none}", "--stages=2", *flags, expect=1))

    def test_a_plan_trains(self):
        values = Weights(3).random
        data = self.folder / "data.npz"
        write_npz(data, {"x": ("float32", (16, 64), [values.gauss(0, 1) for _ in range(16 * 64)]),
                         "labels": ("int64", (16,), [values.randrange(64) for _ in range(16)])})
        flags = ["--microbatches=4", "--batch=8", "--optimizer=sgd"]
        path = self.cluster({"name": "a", "devices": [device("slow", 1), device("fast", 5)], "link": LINK})
        reference = self.train(self.compile(self.model, "--stages=1", *flags), data)
        self.assert_same_run(self.train(self.compile(self.model, f"--cluster={path}", "--stages=2", *flags), data), reference,
                             "two devices")

    def test_refusals(self):
        good = {"name": "a", "devices": [device("one", 1, count=2)], "link": LINK}
        path = self.cluster(good)
        self.assertIn("has 2 devices, 3 ranks need as many; --stages=2 fits",
                      self.compile(self.model, f"--cluster={path}", "--stages=3", expect=1))
        self.assertIn("--device and --cluster both",
                      self.compile(self.model, f"--cluster={path}", "--device=cpu", expect=2))
        self.assertIn("cannot read", self.compile(self.model, f"--cluster={self.folder}/none.json", expect=1))
        for flag in "--cluster=", "--profile=":
            self.assertIn(f"{flag[:-1]}: the value is empty", self.compile(self.model, flag, expect=2))
        forged = self.cluster({"name": "a", "devices": [device("one\n\x1b[2Kadvice", 1, count=2)], "link": LINK})
        refusal = self.compile(self.model, f"--cluster={forged}", expect=1)
        self.assertIn("control characters", refusal)
        self.assertNotIn("\x1b", refusal)
        self.assertIn("cannot read", self.compile(self.model, f"--cluster={self.folder}", expect=1))
        for text, fault in [("nonsense", "is no JSON"), ("{}", "$.hosts is missing"),
                            (json.dumps({"hosts": [{**good, "devises": []}]}), '$.hosts[0] has the unknown field "devises"; the nearest is devices')]:
            broken = self.write("broken.json", text)
            refusal = self.compile(self.model, f"--cluster={broken}", expect=1)
            self.assertIn(fault, refusal)
            self.assertIn(f"--cluster={broken}", refusal)

    def test_spare_devices_are_said(self):
        report = self.report(f"--cluster={SAMPLES / 'h200-8.json'}", "--stages=2")
        self.assertTrue(any("the first 2 of the 8 devices" in note for note in report["notes"]), report["notes"])


if __name__ == "__main__":
    main()
