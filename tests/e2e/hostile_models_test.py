"""Malicious models: a named error each, quickly, in little memory, without a look at other files.

The models and the words their errors must contain are made by tests/support/malicious_models.py.
"""

import os
import pathlib
import re
import resource
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import malicious_models
from pipec_testing import BIN, Case, main

SLOW = bool(os.environ.get("PIPEC_SLOW"))
SECONDS = 10 if SLOW else 1  # of processor time
MEMORY = 256 << 20
FLAGS = ("--mode=infer", "--stages=1", "--memory=64GB")
# Where a program looks anyhow.
SYSTEM = re.compile(r"^(/etc/(ld\.so\.|localtime|nsswitch)|/(usr/)?lib(64)?(/|$)|/usr/(share|lib)|/proc/(self|meminfo|cpuinfo|stat|sys)|"
                    r"/sys/(devices/system/(cpu|node)|fs/cgroup|kernel/mm)|/dev/(null|shm))")


def limit():
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS + 1))
    if not SLOW:  # sanitizers reserve far more than they use
        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


class HostileModels(Case):
    def put(self, model):
        home = self.folder / "home"
        home.mkdir(exist_ok=True)
        path = home / f"model{model.suffix}"
        path.write_bytes(model.content)
        return path

    def pipec(self, path, *flags):
        """Exit code and both outputs; the limits end it by a signal."""
        done = subprocess.run([BIN / "pipec", path, "-o", self.folder / "plan", *FLAGS, *flags], capture_output=True, cwd=self.folder,
                              stdin=subprocess.DEVNULL, preexec_fn=limit, env={**os.environ, "OMP_NUM_THREADS": "1"})
        return done.returncode, done.stdout, done.stderr

    def test_each_has_a_named_error(self):
        refused = [model for model in malicious_models.all_models() if model.words]
        self.assertGreaterEqual(len(refused), 60)
        for model in refused:
            with self.subTest(model.name):
                code, out, error = self.pipec(self.put(model), *model.flags)
                text = error.decode()  # clean: valid UTF-8
                self.assertEqual(code, 1, text[-2000:])
                self.assertIn(model.words, text)
                self.assertLess(len(error) + len(out), 6000, "what is printed is bounded")
                self.assertNotRegex(text + out.decode(), r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", "control characters are printed")
                self.assertFalse((self.folder / "plan").exists(), "a refused model left a plan")
                self.assertEqual([path.name for path in self.folder.iterdir()], ["home"])

    def test_claims_cost_nothing(self):
        """What is legal, however large it says it is, compiles within the same limits."""
        for model in malicious_models.all_models():
            if model.words:
                continue
            with self.subTest(model.name):
                code, out, error = self.pipec(self.put(model), *model.flags)
                self.assertEqual(code, 0, error.decode()[-2000:])
                self.run_tool("piperun", self.folder / "plan", "--verify")

    def test_no_other_file_is_opened(self):
        trace = self.folder / "trace"
        tried = subprocess.run(["strace", "-f", "-o", trace, "true"], capture_output=True)
        if tried.returncode:
            self.skipTest(f"strace is not permitted: {tried.stderr.decode().strip()}")
        kinds = ("tensor-", "constant-", "subgraph-", "name-", "function-", "grow-", "symbol-", "text-")
        models = [m for m in malicious_models.all_models() if m.name.startswith(kinds)]
        self.assertGreaterEqual(len(models), 60)
        for model in models:
            path = self.put(model)
            subprocess.run(["strace", "-f", "-e", "trace=%file", "-o", trace, BIN / "pipec", path, "-o", self.folder / "plan", *FLAGS,
                            *model.flags], capture_output=True, cwd=self.folder, stdin=subprocess.DEVNULL)
            for line in trace.read_text(errors="replace").splitlines():
                call = re.match(r"\d+ +(\w+)\((?:AT_FDCWD, )?\"([^\"]*)\"", line)
                if not call or call.group(1) == "execve" or "ENOENT" in line and "O_RDONLY" in line:
                    continue
                name = os.path.normpath(os.path.join(self.folder, call.group(2)))
                inside = name == str(self.folder) or name.startswith(str(self.folder) + "/") or str(self.folder).startswith(name)
                self.assertTrue(inside or SYSTEM.match(name) or str(BIN) in name, f"{model.name}: {line}")


if __name__ == "__main__":
    main()
