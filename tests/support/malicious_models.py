"""Models made to hurt whoever reads them, each with words its refusal must contain. Standard library only.

    python3 tests/support/malicious_models.py FOLDER        writes them all, for fuzzers and for a look at them

What they try: to nest until a stack is gone, to claim sizes without having the bytes, to grow while they are compiled,
to make arithmetic leave the range of a number, to reach other files, to write into a terminal.
"""

import collections
import pathlib
import struct
import sys

from onnx_wire import (BOOL, FLOAT, INT64, STRING, attribute, blob, blobs, function, graph, int64s, model, node, number, numbers,
                       tensor, tensor_type, value, varint)
from malicious_words import WORDS

# name, suffix of the file, its bytes, words of the error (None: there is none), further flags of pipec
Model = collections.namedtuple("Model", "name suffix content words flags", defaults=[()])

BIG = 2**62
X, Y = value("x"), value("y")


def binary(name, words, graph_bytes, *flags, **more):
    return Model(name, ".onnx", model(graph_bytes, **more), words, flags)


def nodes(name, words, *made, inputs=(X,), outputs=(Y,), initializers=(), flags=(), **more):
    return binary(name, words, graph(made, inputs, outputs, initializers), *flags, **more)


def text(name, words, body, *flags, initializers="", inputs="float[2,4] x", output="float[2,4] y", opset=21, functions=""):
    content = (f'<ir_version: 10, opset_import: ["" : {opset}, "f" : 1]>\nm ({inputs}) => ({output})\n'
               f"<{initializers}>\n{{\n{body}\n}}\n{functions}")
    return Model(name, ".onnxtxt", content.encode(), words, flags)


def relu(a="x", b="y"):
    return node("Relu", [a], [b])


def nested_graph(depth):
    inner = graph([relu()], (), [Y])
    for _ in range(depth):
        inner = graph([node("If", ["x"], ["y"], [attribute("then_branch", g=inner), attribute("else_branch", g=b"")])], (), [Y])
    return inner


def nested_type(depth, field):
    inner = tensor_type([2])
    for _ in range(depth):
        inner = blob(field, blob(1, inner))
    return blob(1, "x") + blob(2, inner)


def syntax():
    whole = model(graph([relu()], [X], [Y], [tensor("w", [4], raw=bytes(16))]))
    yield Model("empty", ".onnx", b"", "is empty")
    yield Model("no-bytes-of-onnx", ".onnx", bytes(range(256)), "is not an ONNX model")
    yield Model("zeros", ".onnx", bytes(4096), "is not an ONNX model")
    for cut in (1, 3, len(whole) // 3, len(whole) // 2, len(whole) - 20, len(whole) - 1):
        yield Model(f"truncated-{cut}", ".onnx", whole[:cut], "ONNX model")
    yield Model("length-beyond-end", ".onnx", varint(7 << 3 | 2) + varint(2**40) + b"x", "is not an ONNX model")
    yield Model("length-negative", ".onnx", varint(7 << 3 | 2) + varint(-1) + b"x", "is not an ONNX model")
    yield Model("varint-endless", ".onnx", b"\x08" + b"\xff" * 4096, "is not an ONNX model")
    yield Model("group-endless", ".onnx", b"\x0b" * 100_000, "is not an ONNX model")
    yield Model("no-graph", ".onnx", number(1, 10), "no graph")
    yield Model("no-ir", ".onnx", blob(7, graph([relu()], [X], [Y])), "no IR version")
    yield Model("no-opsets", ".onnx", number(1, 10) + blob(7, graph([relu()], [X], [Y])), "no opset imports")
    for version in (2**63 - 1, -1, 0, 99):
        yield nodes(f"ir-{version}", "IR version", relu(), ir=version)
        yield nodes(f"opset-{version}", "opset", relu(), opset=version)
    yield Model("opset-twice", ".onnx", model(graph([relu()], [X], [Y]), domains=("ai.onnx",)), "imported twice")
    yield Model("graphs-deep", ".onnx", model(nested_graph(20_000)), "nests messages")
    yield Model("graphs-deep-60", ".onnx", model(nested_graph(60)), "nests messages")
    yield binary("sequences-deep", "nests messages", graph([relu()], [nested_type(50_000, 4)], [Y]))
    yield binary("optionals-deep", "nests messages", graph([relu()], [nested_type(50_000, 9)], [Y]))
    yield binary("sequences-deep-20", "is a sequence", graph([relu()], [nested_type(20, 4)], [Y]))


def text_syntax():
    deep = 100_000
    head = '<ir_version: 10, opset_import: ["" : 21]>\n'
    for name, content in {
            "brackets": "(" * deep, "braces": "{" * deep, "angles": "<" * deep, "squares": "[" * deep,
            "types": head + "m (" + "seq(" * deep, "optional-types": head + "m (" + "optional(" * deep,
            "graphs": head + "m () => () { " + "y = If (x) <a = g () => () { " * deep}.items():
        yield Model(f"text-{name}", ".onnxtxt", content.encode(), "nests brackets")
    for name, content, words in (
            ("string-without-end", head + 'm ("' + "a" * 100_000, "Incomplete string"),
            ("string-ends-in-escape", head + 'm ("a\\', "Incomplete string"),
            ("zero-byte", head + "m (float[2,4] x) => (float[2,4] y) { y = Relu (x) }\0 junk", "zero byte"),
            ("number-too-large", '<ir_version: 99999999999999999999999, opset_import: ["" : 21]>', "out of range"),
            ("number-too-long", head + "m (float[" + "9" * 100_000 + "] x) => () {}", "out of range"),
            ("float-too-large", head + "m (float[1] x) => (float[1] y) { y = Elu <alpha = 1e999999> (x) }", "out of range"),
            ("line-without-end", head + "m (float[2,4] x) => (float[2,4] y) { y = Relu (x) $" + "z" * 1_000_000, "ParseError"),
            ("escape-codes", head + "m (float[2,4] x) => (float[2,4] y) { \x1b[2J\x1b]0;owned\x07", "ParseError"),
            ("junk-after", head + "m (float[2,4] x) => (float[2,4] y) { y = Relu (x) } junk", "ParseError"),
            ("nothing", "\n\n# a comment", "ParseError"),
            ("bytes", "\xff\xfe\x80".encode("latin-1").decode("latin-1"), "ParseError"),
            ("data-of-types", head + "m (float[2,4] x) => (float[2,4] y) <int64[1] i = {1.5}> { y = Relu (x) }", "Integer value")):
        yield Model(f"text-{name}", ".onnxtxt", content.encode("latin-1"), words)


def tensors():
    def one(name, words, proto):
        return binary(f"tensor-{name}", words, graph([node("Identity", ["w"], ["y"])], [X], [value("y", [1])], [proto]))

    yield one("without-data", "has 0 bytes of data", tensor("w", [2**40]))
    yield one("huge", "more than 16 TiB", tensor("w", [2**42 + 1], raw=b""))
    yield one("product-overflows", "more than 16 TiB", tensor("w", [2**32, 2**32, 2**32]))
    yield one("product-overflows-to-zero", "more than 16 TiB", tensor("w", [2**31, 2**31, 4]))
    yield one("product-overflows-before-zero", "more than 16 TiB", tensor("w", [BIG, BIG, 0]))
    yield one("negative", "negative dimension", tensor("w", [-1]))
    yield one("negative-twice", "negative dimension", tensor("w", [-2, -2], raw=bytes(16)))
    yield one("least", "negative dimension", tensor("w", [-2**63]))
    yield one("axes", "axes, at most", tensor("w", [1] * 1_000_000, raw=bytes(4)))
    yield one("raw-short", "has 4 bytes of data", tensor("w", [2], raw=bytes(4)))
    yield one("raw-long", "has 9 bytes of data", tensor("w", [2], raw=bytes(9)))
    yield one("raw-and-typed", "twice", tensor("w", [1], raw=bytes(4), more=blob(4, struct.pack("<f", 1))))
    yield one("typed-of-another-type", "has 0 bytes of data", tensor("w", [1], more=numbers(7, [1])))
    yield one("type-undefined", "element type UNDEFINED", tensor("w", [1], 0, bytes(4)))
    yield one("type-unknown", "element type 77", tensor("w", [1], 77, bytes(4)))
    yield one("type-wraps", "element type 257", tensor("w", [1], 257, bytes(4)))
    yield one("type-negative", "element type -1", tensor("w", [1], -1, bytes(4)))
    yield one("strings", "element type STRING", tensor("w", [1], STRING, more=blob(6, "a" * 100_000)))
    yield one("file-and-raw", "twice", tensor("w", [1], raw=bytes(4), external=[("location", "model.onnx")]))
    yield one("file-of-a-process", "leaves the model's folder", tensor("w", [1], external=[("location", "../../proc/self/mem")]))
    yield one("file-device", "absolute", tensor("w", [1], external=[("location", "/dev/zero")]))
    yield one("file-absent", "is not in the model's folder", tensor("w", [1], external=[("location", "absent.bin")]))
    yield one("file-name-long", "is not in the model's folder", tensor("w", [1], external=[("location", "a" * 100_000)]))
    yield one("file-escape-codes", "is not in the model's folder", tensor("w", [1], external=[("location", "\x1b[2J\n")]))
    yield nodes("constant-in-file", "in another file",
                node("Constant", [], ["y"], [attribute("value", t=tensor("", [1], external=[("location", "/etc/passwd")]))]),
                outputs=[value("y", [1])])
    yield nodes("constant-without-data", "has 0 bytes of data",
                node("Constant", [], ["y"], [attribute("value", t=tensor("", [2**40]))]), outputs=[value("y", [1])])
    yield nodes("constant-without-value", "onstant", node("Constant", [], ["y"]))
    indices = int64s("i", [BIG, -1])
    yield binary("sparse-out-of-range", "sparse", graph([node("Identity", ["w"], ["y"])], [X], [value("y", [4])], sparse=[
        blob(1, tensor("w", [2], raw=bytes(8))) + blob(2, indices) + numbers(3, [4])]))
    yield binary("sparse-huge", "sparse", graph([node("Identity", ["w"], ["y"])], [X], [value("y", [4])], sparse=[
        blob(1, tensor("w", [1], raw=bytes(4))) + blob(2, int64s("i", [0])) + numbers(3, [2**40])]))
    inner = graph([node("Identity", ["w"], ["y"])], (), [value("y", [1])], [tensor("w", [1], external=[("location", "/etc/passwd")])])
    yield nodes("subgraph-in-file", "",
                node("If", ["c"], ["y"], [attribute("then_branch", g=inner), attribute("else_branch", g=inner)]),
                outputs=[value("y", [1])], initializers=[tensor("c", [], BOOL, b"\1")])


def types():
    for name, dims, words in (("negative", [-1, 4], "negative"), ("huge", [1, BIG], "more than 16 TiB"), ("axes", [1] * 100_000, "axes"),
                              ("overflow", [2**33, 2**33], "more than 16 TiB"), ("batch", [2**40, 1], "is above"),
                              ("overflow-before-zero", [BIG, BIG, 0], "more than 16 TiB")):
        yield nodes(f"input-{name}", words, relu(), inputs=[value("x", dims)], outputs=[blob(1, "y")])
    for code in (0, STRING, 77, 257, -1, 2**31 - 1):
        yield nodes(f"input-type-{code}", "element type", relu(), inputs=[value("x", [2, 4], code)])
    yield nodes("input-without-type", "is not a tensor", relu(), inputs=[blob(1, "x")])
    yield nodes("input-without-shape", "has no shape", relu(), inputs=[blob(1, "x") + blob(2, blob(1, number(1, FLOAT)))])
    for name, symbol in (("spaces", "a b --dim c=1"), ("number", "-5"), ("long", "n" * 1024)):
        yield nodes(f"symbol-{name}", "has no value; bind it with --dim", relu(), inputs=[value("x", [2, symbol])])
    yield nodes("symbol-escape-codes", "control character", relu(), inputs=[value("x", [2, "\x1b[31m"])])
    for name, dim, words in (("huge", 2**62, "more than 16 TiB"), ("zero", 0, "wanted at least 1")):
        yield nodes(f"dim-{name}", words, relu(), inputs=[value("x", [2, "n"])], flags=(f"--dim=n={dim}",))
    yield nodes("range-huge", "", relu(), inputs=[value("x", [2**20, 2**20])], flags=("--input=x=range",))


def names():
    for name, bad in (("newline", "a\nb"), ("escape", "\x1b[2J"), ("zero", "a\0b"), ("delete", "\x7f"), ("not-utf8", b"\xff\xfe"),
                      ("overlong", b"\xc0\xaf"), ("surrogate", b"\xed\xa0\x80"), ("control-c1", "\x9b31m")):
        yield nodes(f"name-{name}", "control character or is not UTF-8", relu("x", bad), outputs=[value(bad)])
    yield nodes("name-long", "bytes, at most", relu("x", "y" * 1_000_000))
    yield nodes("node-name-long", "bytes, at most", node("Relu", ["x"], ["y"], name="n" * 1_000_000))
    yield nodes("op-escape-codes", "control character", node("\x1b[2J", ["x"], ["y"]))
    yield nodes("op-unknown", "unknown op", node("Drop'; TABLE", ["x"], ["y"]))
    yield nodes("domain-unknown", "not among the opset imports", node("Relu", ["x"], ["y"], domain="../../etc"))
    yield nodes("result-twice", "a second time", relu(), relu())
    yield nodes("result-is-input", "a second time", relu("x", "x"), outputs=[value("x")])
    yield nodes("input-twice", "name of another", relu(), inputs=[X, X])
    yield nodes("input-without-name", "no name", relu(), inputs=[X, value("")])
    yield nodes("initializer-twice", "name of another", relu(), initializers=[tensor("w", [1], raw=bytes(4))] * 2)
    yield nodes("output-of-nothing", "defined by nothing", relu(), outputs=[value("z")])
    yield nodes("operand-of-nothing", "which nothing defines", relu("z"))
    yield nodes("operand-absent", "", node("Add", ["x", ""], ["y"]))
    yield nodes("cycle", "cycle", relu("b", "a"), relu("a", "b"), relu())
    yield nodes("cycle-of-one", "cycle", relu("a", "a"), relu())
    yield nodes("no-outputs", "no node that could run", relu(), outputs=())
    yield nodes("attribute-of-another-type", "axis", node("Softmax", ["x"], ["y"], [attribute("axis", s="1")]))
    yield nodes("attribute-unknown", "ttribute", node("Relu", ["x"], ["y"], [attribute("rm", s="-rf")]))
    yield nodes("attribute-reference", "outside of one",
                node("Softmax", ["x"], ["y"], [blob(1, "axis") + blob(21, "axis") + number(20, 2)]))


def counts():
    many = 1_000_000
    yield nodes("results-many", "", node("Split", ["x"], ["y", *(f"y{i}" for i in range(many))]))
    yield nodes("results-unnamed-many", "", node("Split", ["x"], ["y"] + [""] * many))
    yield nodes("operands-many", "", node("Concat", ["x"] * many, ["y"], [attribute("axis", i=0)]), outputs=[value("y", [3, 4])])
    yield nodes("outputs-many", "", relu(), outputs=[value(f"y{i}", []) for i in range(100_000)])
    yield nodes("attribute-long", "", node("Transpose", ["x"], ["y"], [attribute("perm", ints=range(many))]))
    yield nodes("axes-many", "", node("ReduceSum", ["x", "a"], ["y"]), initializers=[int64s("a", [0] * 100_000)])
    yield binary("nodes-many", "nodes once functions are expanded", graph([relu()] * 250_000, [X], [Y]))


def functions():
    def calls(name, words, functions, call="a"):
        return nodes(f"function-{name}", words, node(call, ["x"], ["y"], domain="f"), functions=functions)

    def body(name, *called):
        names = ["x", *(f"v{i}" for i in range(1, len(called))), "y"]
        made = [node(op, [a], [b], domain=domain) for (op, domain), a, b in zip(called, names, names[1:])]
        return function(name, ["x"], ["y"], made)

    yield calls("of-itself", "calls itself", [body("a", ("a", "f"))])
    yield calls("of-each-other", "calls itself", [body("a", ("b", "f")), body("b", ("a", "f"))])
    yield calls("deep", "deep", [body(f"a{i}" if i else "a", (f"a{i + 1}", "f")) for i in range(500)] + [body("a500", ("Relu", ""))])
    doubling = [body(f"a{i}" if i else "a", (f"a{i + 1}", "f"), (f"a{i + 1}", "f")) for i in range(60)]
    yield calls("doubling", "once functions are expanded", doubling + [body("a60", ("Relu", ""))])
    yield calls("hundredfold", "once functions are expanded",
                [body(f"a{i}" if i else "a", *[(f"a{i + 1}", "f")] * 100) for i in range(3)] + [body("a3", ("Relu", ""))])
    yield calls("without-output", "has no result", [function("a", ["x"], [], [])])
    yield calls("of-nothing", "which nothing defines", [function("a", ["x"], ["y"], [node("Relu", ["z"], ["y"])])])
    yield calls("absent", "unknown op", [body("b", ("Relu", ""))])
    yield calls("opset-99", "newer than the newest known", [function("a", ["x"], ["y"], [relu()], opset=99)])
    yield nodes("function-operands", "is given 50 operands, has inputs for 1", node("a", ["x"] * 50, ["y"], domain="f"), functions=[body("a", ("Relu", ""))])
    text_functions = "\n".join(f'<domain: "f", opset_import: ["f" : 1]> a{i} (x) => (y) {{ t = f.a{i + 1} (x)  y = f.a{i + 1} (t) }}'
                               for i in range(60))
    yield text("function-doubling-text", "once functions are expanded", "y = f.a0 (x)", functions=text_functions +
               '\n<domain: "f", opset_import: ["" : 21]> a60 (x) => (y) { y = Relu (x) }')


def control_flow():
    same = "g (int64 i, bool c, float[2,4] v) => (bool c2, float[2,4] v2) { c2 = Identity (c)  v2 = Relu (v) }"
    double = "g (int64 i, bool c, float[n,4] v) => (bool c2, float[m,4] v2) { c2 = Identity (c)  v2 = Concat <axis = 0> (v, v) }"
    for name, trips in (("endless", BIG), ("long", 10_000_000), ("negative", -BIG)):
        yield text(f"loop-{name}", "", f"y = Loop (m, t, x) <body = {same}>", initializers=f"int64 m = {{{trips}}}, bool t = {{1}}")
    yield text("loop-without-limit", "", f'y = Loop ("", t, x) <body = {same}>', initializers="bool t = {1}")
    yield text("loop-doubling", "", f"y = Loop (m, t, x) <body = {double}>", initializers="int64 m = {60}, bool t = {1}")
    inner = "h (int64 j, bool d, float[2,4] w) => (bool d2, float[2,4] w2) { d2 = Identity (d)  w2 = Relu (w) }"
    outer = f"g (int64 i, bool c, float[2,4] v) => (bool c2, float[2,4] v2) {{ c2 = Identity (c)  v2 = Loop (m, t, v) <body = {inner}> }}"
    yield text("loop-in-loop", "", f"y = Loop (m, t, x) <body = {outer}>", initializers="int64 m = {50000}, bool t = {1}")
    yield text("loop-body-captures-nothing", "",
               "y = Loop (m, t, x) <body = g (int64 i, bool c, float[2,4] v) => (bool c2, float[2,4] v2) { c2 = Identity (c)  v2 = Relu (q) }>",
               initializers="int64 m = {2}, bool t = {1}")
    scan = "g (float[2,4] s, float[4] e) => (float[2,4] s2, float[4] o) { s2 = Add (s, e)  o = Relu (e) }"
    yield text("scan-long", "", f"s, y = Scan (x, big) <num_scan_inputs = 1, body = {scan}>", inputs="float[2,4] x, float[1000000000,4] big")
    yield text("scan-inputs-negative", "", f"s, y = Scan (x, x) <num_scan_inputs = -5, body = {scan}>")
    yield text("if-without-branches", "", "y = If (t) <then_branch = 1>", initializers="bool t = {1}")


def growth():
    def op(name, words, body, initializers="", inputs="float[2,4] x"):
        return text(f"grow-{name}", words, body, initializers=initializers, inputs=inputs, output="y")

    huge = "int64[2] s = {4611686018427387904, 4}"
    tera = "int64[2] s = {100000, 10000000}"
    yield op("expand", "", "y = Expand (x, s)", "int64[3] s = {4611686018427387904, 2, 4}")
    yield op("expand-tera", "", "y = Expand (x, s)", "int64[3] s = {100000000000, 2, 4}")
    yield op("tile", "", "y = Tile (x, s)", huge)
    yield op("tile-negative", "", "y = Tile (x, s)", "int64[2] s = {-1, -1}")
    yield op("constant-of-shape", "", "y = ConstantOfShape (s)", huge)
    yield op("constant-of-shape-tera", "memory", "y = ConstantOfShape (s)", tera)
    yield op("constant-of-shape-negative", "", "y = ConstantOfShape (s)", "int64[2] s = {-4, 4}")
    yield op("constant-of-shape-axes", "axes", "y = ConstantOfShape (s)", f"int64[5000] s = {{{','.join(['1'] * 5000)}}}")
    yield op("range", "", "y = Range (a, b, c)", f"int64 a = {{0}}, int64 b = {{{BIG}}}, int64 c = {{1}}")
    yield op("range-step-0", "", "y = Range (a, b, c)", "int64 a = {0}, int64 b = {10}, int64 c = {0}")
    yield op("range-float", "", "y = Range (a, b, c)", "float a = {0}, float b = {1e38}, float c = {1e-38}")
    yield op("range-nan", "", "y = Range (a, b, c)", "float a = {nan}, float b = {inf}, float c = {1}")
    yield op("range-overflow", "", "y = Range (a, b, c)", f"int64 a = {{{-2**63}}}, int64 b = {{{2**63 - 1}}}, int64 c = {{1}}")
    yield op("resize", "", 'y = Resize (x, "", "", s)', huge)
    yield op("resize-scales", "", 'y = Resize (x, "", s)', "float[2] s = {1e30, 1e30}")
    yield op("resize-scales-nan", "", 'y = Resize (x, "", s)', "float[2] s = {nan, -1}")
    yield op("pad", "", "y = Pad (x, s)", f"int64[4] s = {{{BIG}, {BIG}, {BIG}, {BIG}}}")
    yield op("pad-negative", "", "y = Pad (x, s)", f"int64[4] s = {{{-BIG}, -9, 0, 0}}")
    yield op("one-hot", "", "y = OneHot (i, d, v)", f"int64[2] i = {{0, 1}}, int64 d = {{{BIG}}}, float[2] v = {{0, 1}}")
    yield op("one-hot-negative", "", "y = OneHot (i, d, v)", "int64[2] i = {0, 1}, int64 d = {-3}, float[2] v = {0, 1}")
    yield op("eye-like", "memory", "t = ConstantOfShape (s)  y = EyeLike (t)", tera)
    yield op("outer", "more than 16 TiB", "a = Reshape (x, r)  b = Reshape (x, q)  c = MatMul (a, b)  d = Expand (c, s)  y = Relu (d)",
             "int64[2] r = {8, 1}, int64[2] q = {1, 8}, int64[3] s = {4611686018427387, 8, 8}")
    yield op("triangle", "", "t = ConstantOfShape (s)  y = Trilu (t)", huge)
    steps = "  ".join(f"v{i + 1} = Concat <axis = 0> (v{i}, v{i})" for i in range(60))
    yield op("concat-chain", "negative dimension", f"v0 = Identity (x)  {steps}  y = Identity (v60)")
    steps = "  ".join(f"v{i + 1} = Concat <axis = 0> (v{i}, v{i})" for i in range(28))
    yield op("concat-constants", "negative dimension", f"v0 = Relu (c)  {steps}  s = ReduceSum (v28)  y = Add (x, s)", "float[1024] c = {" + ",".join(["1"] * 1024) + "}")
    fills = "  ".join(f"v{i + 1} = Add (v{i}, v{i})" for i in range(3000))
    yield op("fold-long", "", f"v0 = ConstantOfShape (s)  {fills}  y = Add (v3000, q)", "int64[1] s = {4000000}, float[1] q = {0}")
    keeps = "  ".join(f"v{i} = ConstantOfShape (s)  w{i} = Add (x, v{i})" for i in range(2000))
    yield op("fold-wide", "", f"{keeps}  y = Add (w0, q)", "int64[2] s = {1000000, 4}, float[1] q = {0}", inputs="float[1,4] x")
    multiplies = "  ".join(f"v{i + 1} = MatMul (v{i}, v{i})" for i in range(200))
    yield op("fold-slow", "", f"v0 = ConstantOfShape (s)  {multiplies}  y = Add (v200, q)", "int64[2] s = {2000, 2000}, float[1] q = {0}")


def arithmetic():
    least = -2**63

    def op(name, words, body, initializers="", **more):
        return text(f"math-{name}", words, body, initializers=initializers, output="y", **more)

    shaped = "  y = Reshape (x, r)"
    one = "int64[1] a = {%d}, int64[1] b = {%d}"
    for name, a, b, call in (("divide-by-zero", 8, 0, "Div"), ("divide-least", least, -1, "Div"), ("mod-zero", 8, 0, "Mod"),
                             ("mod-least", least, -1, "Mod"), ("multiply-overflow", BIG, 4, "Mul"), ("add-overflow", 2**63 - 1, 1, "Add"),
                             ("subtract-overflow", least, 1, "Sub"), ("power-overflow", 10, 100, "Pow"), ("power-negative", 0, -1, "Pow")):
        yield op(name, "", f"r = {call} (a, b){shaped}", one % (a, b))
    yield op("negate-least", "", f"r = Neg (a){shaped}", f"int64[1] a = {{{least}}}")
    yield op("absolute-least", "", f"r = Abs (a){shaped}", f"int64[1] a = {{{least}}}")
    yield op("shift", "", f'u = BitShift <direction = "LEFT"> (a, b)  r = Cast <to = 7> (u){shaped}', "uint64[1] a = {1}, uint64[1] b = {64}")
    yield op("cast-nan", "", f"r = Cast <to = 7> (a){shaped}", "float[1] a = {nan}")
    yield op("cast-infinity", "", f"r = Cast <to = 7> (a){shaped}", "float[1] a = {1e38}")
    yield op("cast-type-0", "", "y = Cast <to = 0> (x)")
    yield op("cast-type-99", "", "y = Cast <to = 99> (x)")
    yield op("reshape-twice-unknown", "", "y = Reshape (x, r)", "int64[2] r = {-1, -1}")
    yield op("reshape-negative", "", "y = Reshape (x, r)", "int64[2] r = {-2, -4}")
    yield op("reshape-overflow", "", "y = Reshape (x, r)", f"int64[3] r = {{{2**32}, {2**32}, 8}}")
    yield op("reshape-zero-unknown", "", "y = Reshape <allowzero = 1> (x, r)", "int64[2] r = {0, -1}")
    yield op("split-sum", "", "y, z = Split (x, r)", "int64[2] r = {3, 3}")
    yield op("split-negative", "", "y, z = Split (x, r)", "int64[2] r = {4, -2}")
    yield op("split-overflow", "", "y, z = Split (x, r)", f"int64[2] r = {{{2**63 - 1}, {least + 3}}}")
    yield op("split-parts", "", "y, z = Split <num_outputs = 1000000000> (x)")
    yield op("gather-outside", "", "y = Gather (c, i)", "float[2] c = {1, 2}, int64[1] i = {5}")
    yield op("gather-far-outside", "", "y = Gather (c, i)", f"float[2] c = {{1, 2}}, int64[1] i = {{{least}}}")
    yield op("gather-elements-outside", "", "y = GatherElements (c, i)", f"float[2] c = {{1, 2}}, int64[1] i = {{{BIG}}}")
    yield op("gather-nd-outside", "", "y = GatherND (c, i)", f"float[2] c = {{1, 2}}, int64[1,1] i = {{{BIG}}}")
    yield op("scatter-outside", "", "y = ScatterElements (c, i, u)", f"float[2] c = {{1, 2}}, int64[1] i = {{{BIG}}}, float[1] u = {{1}}")
    yield op("scatter-nd-outside", "", "y = ScatterND (c, i, u)", f"float[2] c = {{1, 2}}, int64[1,1] i = {{{-BIG}}}, float[1] u = {{1}}")
    yield op("slice-step-0", "", "y = Slice (x, a, b, c, d)", "int64[1] a = {0}, int64[1] b = {2}, int64[1] c = {0}, int64[1] d = {0}")
    yield op("slice-axis", "", "y = Slice (x, a, b, c)", "int64[1] a = {0}, int64[1] b = {2}, int64[1] c = {9}")
    yield op("slice-lengths", "", "y = Slice (x, a, b)", "int64[1] a = {0}, int64[2] b = {2, 2}")
    extreme = f"int64[1] a = {{{2**63 - 1}}}, int64[1] b = {{{least}}}, int64[1] c = {{0}}, int64[1] d = {{{least}}}"
    yield op("slice-extreme", "", "y = Slice (x, a, b, c, d)  ", extreme)
    for call in ("Softmax <axis = -9> (x)", "Concat <axis = 5> (x, x)", "Flatten <axis = 77> (x)", "ArgMax <axis = -3> (x)",
                 f"LayerNormalization <axis = {least}> (x, w)", f"Transpose <perm = [0, {BIG}]> (x)", "Transpose <perm = [0, 0]> (x)",
                 f"Softmax <axis = {2**63 - 1}> (x)", "Gather <axis = 100> (x, i)", "DepthToSpace <blocksize = 0> (x)",
                 "SpaceToDepth <blocksize = -1> (v)", "LRN <size = 0> (v)", f"Trilu <upper = 7> (i)", "CumSum (x, k)", "TopK (x, i)"):
        yield op("axis-" + "".join(c if c.isalnum() else "-" for c in call), "", f"y = {call}" if "TopK" not in call else f"y, z = {call}",
                 f"float[4] w = {{1,1,1,1}}, int64[1] i = {{{BIG}}}, int64 k = {{9}}", inputs="float[2,4] x, float[1,4,4,4] v")
    yield op("squeeze-axis", "", "y = Squeeze (x, a)", "int64[1] a = {7}")
    yield op("unsqueeze-axes", "", "y = Unsqueeze (x, a)", "int64[3] a = {0, 0, 0}")
    yield op("reduce-axis", "", "y = ReduceSum (x, a)", f"int64[1] a = {{{least}}}")
    image = "float[1,2,8,8] v"
    for call in ("MaxPool <kernel_shape = [0, 0]> (v)", "MaxPool <kernel_shape = [3, 3], strides = [0, 0]> (v)",
                 "AveragePool <kernel_shape = [2, 2], dilations = [0, 0]> (v)", f"MaxPool <kernel_shape = [{BIG}, {BIG}]> (v)",
                 f"MaxPool <kernel_shape = [2, 2], pads = [{BIG}, {BIG}, {BIG}, {BIG}]> (v)", "MaxPool <kernel_shape = [-2, -2]> (v)",
                 "MaxPool <kernel_shape = [2]> (v)", "AveragePool <kernel_shape = [2, 2], pads = [-9, -9, -9, -9]> (v)",
                 "Conv <strides = [0, 0]> (v, w)", "Conv <dilations = [0, 0]> (v, w)", "Conv <group = 0> (v, w)", "Conv <group = -1> (v, w)",
                 f"Conv <pads = [{BIG}, {BIG}, {BIG}, {BIG}]> (v, w)", f"Conv <dilations = [{BIG}, {BIG}]> (v, w)",
                 f"Conv <group = {BIG}> (v, w)", "Conv <kernel_shape = [7, 7, 7]> (v, w)", "ConvTranspose <strides = [0, 0]> (v, w)",
                 f"ConvTranspose <strides = [{BIG}, {BIG}]> (v, w)", "ConvTranspose <group = 0> (v, w)",
                 f"ConvTranspose <output_padding = [{BIG}, 9]> (v, w)", f"ConvTranspose <output_shape = [{BIG}, {BIG}]> (v, w)"):
        yield op("window-" + "".join(c if c.isalnum() else "-" for c in call), "", f"y = {call}", "float[2,2,1,1] w = {1,1,1,1}", inputs=image)
    for equation in ("ij,jk->", "", "->", "i" * 1000, "ij,jk,kl->il", "...ij,...->...", "ii->ij", "ij->kk", "i,j->\x01", "ij-" + ">" * 500, "a1b,b2->a"):
        yield op("einsum-" + "".join(c if c.isalnum() else "-" for c in equation[:20]), "", f'y = Einsum <equation = "{equation}"> (x, x)')
    rnn = f"float[1,16,4] w = {{{','.join(['1'] * 64)}}}, float[1,16,4] r = {{{','.join(['1'] * 64)}}}"
    for hidden in (0, -1, BIG, 5):
        yield op(f"lstm-hidden-{hidden}", "", f"y = LSTM <hidden_size = {hidden}> (v, w, r)", rnn, inputs="float[3,2,4] v")
    yield op("lstm-direction", "", 'y = LSTM <hidden_size = 4, direction = "sideways"> (v, w, r)', rnn, inputs="float[3,2,4] v")


def all_models():
    """Every model, names unique."""
    made = [m for group in (syntax, text_syntax, tensors, types, names, counts, functions, control_flow, growth, arithmetic) for m in group()]
    made = [m if m.words else m._replace(words=WORDS[m.name]) for m in made]
    assert len({m.name for m in made}) == len(made), collections.Counter(m.name for m in made).most_common(1)
    return made


if __name__ == "__main__":
    folder = pathlib.Path(sys.argv[1])
    for each in all_models():
        (folder / f"{each.name}{each.suffix}").write_bytes(each.content)
    print(len(all_models()), "models in", folder)
