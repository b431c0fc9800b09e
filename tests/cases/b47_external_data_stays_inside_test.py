"""B47: external data may not leave the model's folder, whatever the way; nor may what pipec writes leave the plan's folder.

onnx/onnx#3991, onnx/onnx#7717: a model names ../../etc/passwd, an absolute path or a link as the file of its weights, and the
bytes end up in what is made of it.
"""

import os
import pathlib
import struct
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import pipec_testing
from onnx_wire import attribute, graph, model, node, tensor, value

SECRET = b"root:secret:0:0:" + bytes(range(48))  # as long as a weight of 4 x 4
WEIGHT = struct.pack("<16f", *(k / 16 for k in range(16)))


def matmul(weight="w", external=(("location", "w.bin"),)):
    """y = x w, with w in a file."""
    return model(graph([node("MatMul", ["x", weight], ["y"])], [value("x", [2, 4])], [value("y", [2, 4])],
                       [tensor(weight, [4, 4], external=external)]))


class ExternalDataStaysInside(pipec_testing.Case):
    FLAGS = ("--mode=infer", "--stages=1", "--microbatches=2")

    def setUp(self):
        super().setUp()
        self.home = self.folder / "models" / "m"
        self.home.mkdir(parents=True)
        (self.folder / "secret.bin").write_bytes(SECRET)

    def put(self, location, weight="w"):
        path = self.home / "model.onnx"
        path.write_bytes(matmul(weight, [("location", location)]))
        return path

    def refuse(self, location, words, *flags):
        error = self.compile(self.put(location), *self.FLAGS, *flags, expect=1)
        self.assertIn("initializer 'w'", error, location)
        self.assertIn(words, error, location)
        for path in self.folder.rglob("*"):
            if path.is_file() and path.name != "secret.bin" and not path.is_symlink() and path.stat().st_nlink == 1:
                self.assertNotIn(SECRET, path.read_bytes(), f"{path} has the secret")
        return error

    def accept(self, location, *flags, weight="w"):
        plan = self.compile(self.put(location, weight), *self.FLAGS, *flags)
        data = self.folder / "data.npz"
        pipec_testing.write_npz(data, {"x": ("float32", [4, 4], [1.0] * 16)})
        out = self.folder / f"out{self.count}.npz"
        self.run_tool("piperun", plan, f"--data={data}", f"--outputs={out}")
        return plan, struct.unpack("<16f", pipec_testing.read_npz(out)["y"][2])

    EXPECTED = tuple(sum((4 * r + c) / 16 for r in range(4)) for c in range(4)) * 4

    def test_paths_that_leave(self):
        (self.home / "sub").mkdir()
        for location in ("../../secret.bin", "sub/../../../secret.bin", "./../../secret.bin", "..", "sub/..", "../m/w.bin",
                         "sub/../w.bin"):
            (self.home / "w.bin").write_bytes(WEIGHT)
            self.refuse(location, "leaves the model's folder by '..'")
            self.refuse(location, "leaves the model's folder by '..'", "--allow-links")
        for location in (str(self.folder / "secret.bin"), "/etc/passwd", "//etc/passwd", "/proc/self/environ", "/dev/zero"):
            self.refuse(location, "is an absolute path")
            self.refuse(location, "is an absolute path", "--allow-links")

    def test_names_that_are_no_file(self):
        (self.home / "sub").mkdir()
        self.refuse("", "names no file")
        self.refuse("w.bin\0.txt", "zero byte")
        for location in ("sub", "sub/", ".", "./"):
            self.refuse(location, "is not a regular file")
        self.refuse("absent", "is not in the model's folder")
        self.refuse("absent/w.bin", "is not in the model's folder")
        self.refuse("a" * 5000, "is not in the model's folder")
        self.refuse("model.onnx/w.bin", "is not in the model's folder")

    def test_pipes_do_not_hang(self):
        os.mkfifo(self.home / "w.bin")
        self.refuse("w.bin", "is not a regular file")
        self.refuse("w.bin", "is not a regular file", "--allow-links")
        os.mkfifo(self.home / "model.onnx.fifo.onnx")
        error = self.compile(self.home / "model.onnx.fifo.onnx", expect=1)
        self.assertIn("is not a regular file", error)

    def test_links_are_refused_and_the_flag_is_named(self):
        (self.home / "file").symlink_to(self.folder / "secret.bin")
        (self.home / "chain").symlink_to("file")
        (self.home / "folder").symlink_to(self.folder)
        (self.home / "inside").symlink_to("w.bin")
        (self.home / "w.bin").write_bytes(WEIGHT)
        os.link(self.folder / "secret.bin", self.home / "hard")
        for location in ("file", "chain", "folder/secret.bin", "inside"):
            self.assertIn("--allow-links", self.refuse(location, "symbolic link"))
        self.assertIn("--allow-links", self.refuse("hard", "hard links"))

    def test_links_into_a_cache(self):
        """A snapshot's files are links to blobs, as model hubs lay out their caches."""
        blobs = self.folder / "blobs"
        blobs.mkdir()
        (blobs / "0123abcd").write_bytes(WEIGHT)
        (self.home / "w.bin").symlink_to("../../blobs/0123abcd")
        (self.home / "chain").symlink_to("w.bin")
        (self.home / "folder").symlink_to(blobs)
        os.link(blobs / "0123abcd", self.home / "hard")
        for location in ("w.bin", "chain", "folder/0123abcd", "hard"):
            self.assertIn("--allow-links", self.refuse(location, "link"))
            plan, y = self.accept(location, "--allow-links")
            self.assertEqual(y, self.EXPECTED, location)
            for path in plan.rglob("*"):
                self.assertFalse(path.is_symlink(), f"{path}: a plan has copies, not links")
        # Linked: the plan names the blob, so that another link later changes nothing.
        plan, y = self.accept("w.bin", "--allow-links", "--parameters=link")
        self.assertEqual(y, self.EXPECTED)
        (self.home / "w.bin").unlink()
        (self.home / "w.bin").symlink_to(self.folder / "secret.bin")
        self.assertIn(str(blobs / "0123abcd"), (plan / "manifest.json").read_text())
        data = self.folder / "data.npz"
        out = self.folder / "again.npz"
        self.run_tool("piperun", plan, f"--data={data}", f"--outputs={out}")
        self.assertEqual(struct.unpack("<16f", pipec_testing.read_npz(out)["y"][2]), self.EXPECTED)

    def test_the_model_itself_may_be_a_link(self):
        (self.home / "w.bin").write_bytes(WEIGHT)
        (self.folder / "real.onnx").write_bytes(matmul())
        (self.home / "linked.onnx").symlink_to(self.folder / "real.onnx")
        self.compile(self.home / "linked.onnx", *self.FLAGS)

    def test_links_that_lead_nowhere(self):
        (self.home / "nothing").symlink_to(self.folder / "absent")
        (self.home / "circle").symlink_to("circle")
        (self.home / "device").symlink_to("/dev/zero")
        (self.home / "above").symlink_to(self.folder)
        self.refuse("nothing", "is a link to nothing", "--allow-links")
        self.refuse("circle", "is a link to nothing", "--allow-links")
        self.refuse("device", "is not a regular file", "--allow-links")
        self.refuse("above", "is not a regular file", "--allow-links")

    @unittest.skipUnless(os.geteuid() == 0, "only root can give files away")
    def test_links_to_files_of_others(self):
        other = self.folder / "of-another.bin"
        other.write_bytes(SECRET)
        os.chown(other, 65534, 65534)
        (self.home / "w.bin").symlink_to(other)
        os.link(other, self.home / "hard")
        self.refuse("w.bin", "of another user", "--allow-links")
        self.refuse("hard", "of another user", "--allow-links")

    def test_tensor_names_do_not_become_paths(self):
        """Nothing appears outside the plan and the export, whatever the tensors are called."""
        (self.home / "w.bin").write_bytes(WEIGHT)
        data = self.folder / "data.npz"
        pipec_testing.write_npz(data, {"x": ("float32", [4, 4], [1.0] * 16), "labels": ("int64", [4], [0, 1, 2, 3])})
        plain = self.compile(self.put("w.bin"), "--stages=1", "--microbatches=2")
        for name in ("../../x", "/x", "..", ".", "a/../../../x", "manifest.json", "rank-000.plan", "~/x", "$HOME", "x;y", " "):
            path = self.put("w.bin", name)
            before = set(self.folder.rglob("*"))
            plan = self.compile(path, "--stages=1", "--microbatches=2")
            self.run_tool("piperun", plan, f"--data={data}", f"--export={plan}-export", "--steps=1")
            allowed = (plan, pathlib.Path(f"{plan}-export"))
            for path in set(self.folder.rglob("*")) - before:
                self.assertTrue(any(path == a or a in path.parents for a in allowed), f"{name}: {path} lies outside the plan")
            self.assertEqual({path.name for path in plan.rglob("*")}, {path.name for path in plain.rglob("*")}, name)

    def test_only_initializers_have_files(self):
        (self.home / "w.bin").write_bytes(WEIGHT)
        external = [("location", "/etc/passwd")]
        constant = node("Constant", [], ["w"], [attribute("value", t=tensor("", [4, 4], external=external))])
        body = graph([node("MatMul", ["x", "v"], ["y"])], (), [value("y", [2, 4])], [tensor("v", [4, 4], external=external)])
        branches = [attribute("then_branch", g=body), attribute("else_branch", g=body)]
        yes = tensor("c", [], 9, b"\1")
        for nodes, initializers, words in (
                ([constant, node("MatMul", ["x", "w"], ["y"])], [], "in another file"),
                ([node("If", ["c"], ["y"], branches)], [yes], "is an absolute path")):
            path = self.home / "model.onnx"
            path.write_bytes(model(graph(nodes, [value("x", [2, 4])], [value("y", [2, 4])], initializers)))
            self.assertIn(words, self.compile(path, *self.FLAGS, expect=1))


if __name__ == "__main__":
    pipec_testing.main()
