"""B48: offset and length of external data are believed only if they are numbers and the slice lies in the file.

openvinotoolkit/openvino#34070, onnx/onnx#7751: offset + length wraps around 64 bits, signs and exponents are accepted, unknown
keys are passed over.
"""

import pathlib
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import pipec_testing
from onnx_wire import FLOAT, graph, model, node, tensor, value

BYTES = 64  # of a weight of 4 x 4
TOP = 2**64


class OffsetsAndLengths(pipec_testing.Case):
    def setUp(self):
        super().setUp()
        (self.folder / "w.bin").write_bytes(struct.pack("<32f", *range(32)))

    def put(self, entries, dims=(4, 4)):
        path = self.folder / "model.onnx"
        path.write_bytes(model(graph([node("MatMul", ["x", "w"], ["y"])], [value("x", [2, 4])], [value("y", [2, 4])],
                                     [tensor("w", dims, FLOAT, external=[("location", "w.bin"), *entries])])))
        return path

    def refuse(self, entries, words, **more):
        error = self.compile(self.put(entries, **more), "--mode=infer", "--stages=1", "--microbatches=2", expect=1)
        self.assertIn("initializer 'w'", error, entries)
        self.assertIn(words, error, entries)

    def accept(self, entries, first):
        plan = self.compile(self.put(entries), "--mode=infer", "--stages=1", "--microbatches=2")
        data, out = self.folder / "data.npz", self.folder / "out.npz"
        pipec_testing.write_npz(data, {"x": ("float32", [4, 4], [1.0, 0, 0, 0] * 4)})
        self.run_tool("piperun", plan, f"--data={data}", f"--outputs={out}")
        y = struct.unpack("<16f", pipec_testing.read_npz(out)["y"][2])
        self.assertEqual(y, tuple(first + c for c in range(4)) * 4, entries)

    def test_what_is_legal(self):
        self.accept([], 0)
        self.accept([("offset", "0"), ("length", "64")], 0)
        self.accept([("offset", "64")], 16)
        self.accept([("offset", "64"), ("length", "64")], 16)
        self.accept([("offset", "4")], 1)
        self.accept([("length", "64"), ("checksum", "da39a3ee5e6b4b0d3255bfef95601890afd80709")], 0)
        self.accept([("offset", "0000064")], 16)

    def test_what_is_no_number(self):
        for text in ("-1", "-0", "1e30", "1e1", "abc", "", " 5", "5 ", "+5", "0x10", "64.0", "6_4", "nan", "inf", str(TOP), "9" * 1000, "64\n",
                     "\u0661"):
            for key in ("offset", "length"):
                self.refuse([(key, text)], "which is not a number of bytes")

    def test_slices_that_wrap_or_pass_the_end(self):
        for offset in (65, 128, 129, 2**31, 2**32, 2**63 - 1, 2**63, TOP - 64, TOP - 32, TOP - 16, TOP - 8, TOP - 1):
            self.refuse([("offset", str(offset))], "pass its end")
            self.refuse([("offset", str(offset)), ("length", "64")], "pass its end")

    def test_lengths_that_are_not_the_tensor_s(self):
        for length in (0, 1, 63, 65, 128, 2**32 + 64, 2**63, TOP - 64, TOP - 16, TOP - 8, TOP - 1):
            self.refuse([("length", str(length))], "needs 64")
        # Both wrap to a slice that would fit.
        self.refuse([("offset", "128"), ("length", str(TOP - 64))], "needs 64")

    def test_dimensions_that_the_file_has_not(self):
        self.refuse([], "pass its end", dims=(4, 2**30))
        self.refuse([("length", str(2**34))], "pass its end", dims=(4, 2**30))
        self.refuse([], "more than 16 TiB", dims=(2**32, 2**32))
        self.refuse([], "more than 16 TiB", dims=(2**31, 2**31, 4))
        self.refuse([], "negative dimension", dims=(-4, -4))

    def test_keys(self):
        for key in ("Offset", "size", "basepath", "", "offset ", "location2", "\x1b[2J"):
            self.refuse([(key, "0")], "unknown key")
        self.refuse([("offset", "0"), ("offset", "64")], "twice")
        self.refuse([("length", "64"), ("length", "64")], "twice")
        self.refuse([("location", "w.bin")], "twice")
        self.refuse([("checksum", "a"), ("checksum", "b")], "twice")


if __name__ == "__main__":
    pipec_testing.main()
