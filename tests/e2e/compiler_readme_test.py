"""The blocks of compiler/README.md are what pipec prints. PIPEC_BLESS=1 rewrites them."""

import os
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from pipec_testing import BIN, ROOT, TIMEOUT, Case, main

README = ROOT / "compiler/README.md"
BLOCK = re.compile(r"```\n\$ ([^\n]+)\n(.*?)```", re.S)


class CompilerReadme(Case):
    def test_blocks(self):
        text = README.read_text()
        self.write("tiny.onnxtxt", re.search(r"```onnxtxt\n(.*?)```", text, re.S).group(1))
        environment = dict(os.environ, PATH=f"{BIN}{os.pathsep}{os.environ['PATH']}")

        def run(match):
            done = subprocess.run(["bash", "-o", "pipefail", "-c", match.group(1)], cwd=self.folder, env=environment,
                                  capture_output=True, text=True, timeout=TIMEOUT)
            self.assertEqual(done.returncode, 0, done.stderr)
            return f"```\n$ {match.group(1)}\n{done.stdout}```"

        self.assertEqual(len(BLOCK.findall(text)), 5)
        now = BLOCK.sub(run, text)
        if os.environ.get("PIPEC_BLESS"):
            README.write_text(now)
        self.assertEqual(now, README.read_text(), "PIPEC_BLESS=1 rewrites compiler/README.md")


if __name__ == "__main__":
    main()
