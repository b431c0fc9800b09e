#!/usr/bin/env python3
"""What nvcc made of every kernel, for each GPU it is compiled for: no register is spilled to memory, and 128 bits are loaded at once.

    machine_code_test.py CUOBJDUMP OBJECT...

Beside each NAME.o lies NAME.ptxas, which `-Xptxas -v` printed. A kernel without a 128-bit load is in scalar_loads.txt, by its file, its
name or its full name, with the reason; what is there without need must leave the list.
"""

import pathlib
import re
import shutil
import subprocess
import sys
import unittest

HERE = pathlib.Path(__file__).parent
GPUS = {"sm_80", "sm_90"}
SEEN = "sm_90"  # whose instructions are read: which loads are wide is the source's choice
COMPILING = re.compile(r"Compiling entry function '(\w+)' for '(\w+)'")
PROPERTIES = re.compile(r"Function properties for (\w+)")
SPILLS = re.compile(r"(\d+) bytes spill stores, (\d+) bytes spill loads")


def kernels(report):
    """{(gpu, kernel)} of what ptxas printed."""
    return {(match[2], match[1]) for match in COMPILING.finditer(report)}


def spills(report):
    """{(gpu, kernel or function that one calls): bytes spilled} of what ptxas printed."""
    found, gpu, function = {}, None, None
    for line in report.splitlines():
        if match := COMPILING.search(line):
            gpu = match[2]
        elif match := PROPERTIES.search(line):
            function = match[1]
        elif match := SPILLS.search(line):
            found[gpu, function] = int(match[1]) + int(match[2])
    return found


def wide_loads(disassembly):
    """{(gpu, function): how many instructions load 128 bits from global memory} of what cuobjdump -sass printed."""
    found, gpu, function = {}, None, None
    for line in disassembly.splitlines():
        if match := re.search(r"^\s*arch = (\w+)", line):
            gpu = match[1]
        elif match := re.search(r"^\s*Function : (\S+)", line):
            function = match[1]
            found[gpu, function] = 0
        elif re.search(r"\bLDG\.\S*\b128\b", line):
            found[gpu, function] += 1
    return found


def demangled(names):
    """{name: a reader's name, without namespaces and parameters}."""
    names = sorted(names)
    lines = subprocess.run(["c++filt"], input="\n".join(names), capture_output=True, text=True, check=True).stdout.splitlines()
    short = [re.sub(r"pipec::|cuda::|\(anonymous namespace\)::", "", line) for line in lines]
    return {name: re.sub(r"^void ", "", line).split("(")[0] for name, line in zip(names, short)}


def spill_faults(by_function):
    names = demangled(function for _, function in by_function)
    return sorted(f"{names[function]} spills {count} bytes on {gpu}" for (gpu, function), count in by_function.items() if count)


def load_faults(by_file, excused):
    """`by_file`: {file: what wide_loads gave}; `excused`: {"x.cu", "x.cu Kernel" or "x.cu Kernel<float>": reason}."""
    faults, needed = [], set()
    for file, by_kernel in by_file.items():
        names = demangled(function for _, function in by_kernel)
        for (gpu, function), count in by_kernel.items():
            if count:
                continue
            name = names[function]
            excuses = {file, f"{file} {name}", f"{file} {name.split('<')[0]}"} & set(excused)
            needed |= excuses
            if not excuses:
                faults.append(f"{file} {name} has no 128-bit load on {gpu}")
    return sorted(faults) + [f"scalar_loads.txt need not list {name}" for name in excused if name not in needed]


def read_excused(text):
    lines = [line.split(":", 1) for line in text.splitlines() if line and not line.startswith("#")]
    return {name.strip(): reason.strip() for name, reason in lines}


class Kernels(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.reports, cls.code = {}, {}
        for path in OBJECTS:
            if not path.exists():
                raise AssertionError(f"{path} is missing: build target cuda_machine_code")
            cls.reports[path.stem + ".cu"] = path.with_suffix(".ptxas").read_text()
            disassembly = subprocess.run([CUOBJDUMP, "-sass", "-arch", SEEN, str(path)], capture_output=True, text=True, check=True).stdout
            cls.code[path.stem + ".cu"] = wide_loads(disassembly)

    # The two programs must have seen the same kernels, or one of the checks below looks at nothing.
    def test_every_kernel_is_seen_for_every_gpu(self):
        for file, report in self.reports.items():
            seen = kernels(report)
            self.assertLessEqual({kernel for kernel in seen if kernel[0] == SEEN}, set(self.code[file]), file)
            self.assertEqual(seen, {(gpu, kernel) for gpu in GPUS for _, kernel in seen}, file)
            self.assertLessEqual(seen, set(spills(report)), file)
            self.assertTrue(seen, file)

    def test_nothing_is_spilled(self):
        self.assertEqual([fault for report in self.reports.values() for fault in spill_faults(spills(report))], [])

    def test_128_bits_are_loaded_at_once(self):
        excused = read_excused((HERE / "scalar_loads.txt").read_text())
        self.assertEqual([name for name, reason in excused.items() if not reason], [], "lines without a reason")
        self.assertEqual(load_faults(self.code, excused), [])


class Checks(unittest.TestCase):
    REPORT = """ptxas info    : Compiling entry function '_Z4GoodPf' for 'sm_80'
ptxas info    : Function properties for _Z4GoodPf
    48 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Compiling entry function '_Z3BadPf' for 'sm_80'
ptxas info    : Function properties for _Z3BadPf
    8 bytes stack frame, 0 bytes spill stores, 8 bytes spill loads
"""
    CODE = """
arch = sm_90
\t\tFunction : _Z4GoodPf
        /*0170*/  @!P0 LDG.E.128.CONSTANT R4, [R2.64] ;
\t\tFunction : _Z3BadPf
        /*0170*/   LDG.E.64 R4, [R2.64+0x128] ;
        /*0180*/   LDS.128 R4, [R2] ;
        /*0190*/   STG.E.128 [R2.64], R4 ;
"""

    def test_a_spill_is_named(self):
        self.assertEqual(spill_faults(spills(self.REPORT)), ["Bad spills 8 bytes on sm_80"])

    def test_a_kernel_of_narrow_loads_is_named(self):
        self.assertEqual(load_faults({"a.cu": wide_loads(self.CODE)}, {}), ["a.cu Bad has no 128-bit load on sm_90"])

    def test_a_needless_excuse_is_named(self):
        by_file = {"a.cu": wide_loads(self.CODE)}
        self.assertEqual(load_faults(by_file, {"a.cu Bad": "why", "a.cu Good": "why"}), ["scalar_loads.txt need not list a.cu Good"])

    def test_templates_are_excused_by_name(self):
        by_file = {"a.cu": {("sm_80", "_ZN5pipec4cuda3BadIfEEvPT_"): 0}}
        self.assertEqual(load_faults(by_file, {}), ["a.cu Bad<float> has no 128-bit load on sm_80"])
        for excuse in ("a.cu", "a.cu Bad", "a.cu Bad<float>"):
            self.assertEqual(load_faults(by_file, {excuse: "why"}), [])
        self.assertEqual(len(load_faults(by_file, {"a.cu Bad<double>": "why"})), 2)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    CUOBJDUMP, OBJECTS = sys.argv[1], [pathlib.Path(name) for name in sys.argv[2:]]
    if shutil.which("c++filt") is None:
        sys.exit("c++filt is not there: it comes with g++'s binutils")
    unittest.main(argv=sys.argv[:1])
