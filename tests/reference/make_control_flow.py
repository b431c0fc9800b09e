"""Writes tests/data/control_flow: models with loops, scans, branches, sequences and optionals, and what onnxruntime makes of
them. Needs onnx, onnxruntime and numpy; run it after adding a model, and look at the difference:

    python3 tests/reference/make_control_flow.py
"""

import json
import pathlib

import numpy as np
import onnx.parser
import onnxruntime

TARGET = pathlib.Path(__file__).resolve().parents[1] / "data" / "control_flow"

# name: (opset, graph). Every input is a float tensor; none of them decides how the model runs.
MODELS = {
    "nested_loops": (17, """
        g (float[2,3] x) => (float[2,3] y, float[6,2,3] rows)
        <int64 three = {3}, int64 two = {2}, bool yes = {1}> {
          y, outer = Loop(three, yes, x) <body = a (int64 i, bool c, float[2,3] s) => (bool c2, float[2,3] t, float[2,2,3] r) {
            c2 = Identity(c)
            f = Cast<to = 1>(i)
            t, r = Loop(two, , s) <body = b (int64 j, bool d, float[2,3] u) => (bool d, float[2,3] v, float[2,3] w) {
              g2 = Cast<to = 1>(j)
              h = Add(f, g2)
              u1 = Mul(u, x)
              v = Add(u1, h)
              w = Neg(v)
            }>
          }>
          shape = Constant<value_ints = [6, 2, 3]>()
          rows = Reshape(outer, shape)
        }"""),
    "loop_until": (16, """
        g (float[2,3] x) => (float[2,3] y, float[4,2,3] rows) <int64 many = {100}, int64 three = {3}, bool yes = {1}> {
          y, rows = Loop(many, yes, x) <body = a (int64 i, bool c, float[2,3] s) => (bool d, float[2,3] t, float[2,3] r) {
            d = Less(i, three)
            odd = Constant<value = int64 {2}>()
            m = Mod(i, odd)
            zero = Sub(m, m)
            even = Equal(m, zero)
            t = If(even) <then_branch = p () => (float[2,3] v) { v = Add(s, x) }, else_branch = q () => (float[2,3] v) { v = Mul(s, x) }>
            r = Identity(t)
          }>
        }"""),
    "growing_state": (13, """
        g (float[1,3] x) => (float[8,3] y) <int64 three = {3}> {
          y = Loop(three, , x) <body = a (int64 i, bool c, float[N,3] s) => (bool c, float[M,3] t) { t = Concat<axis = 0>(s, s) }>
        }"""),
    "scan_axes_and_directions": (17, """
        g (float[2] s0, float[3,2] q0, float[2,4] x, float[3,4,2] z) => (float[2] s, float[3,2] q, float[2,4] a, float[3,2,4] b, float[4,3,2] e) {
          s, q, a, b, e = Scan<num_scan_inputs = 2, scan_input_axes = [1, -2], scan_input_directions = [0, 1],
                            scan_output_axes = [1, -1, 0], scan_output_directions = [1, 0, 0],
                            body = step (float[2] s_in, float[3,2] q_in, float[2] xi, float[3,2] zi)
                              => (float[2] s_out, float[3,2] q_out, float[2] ai, float[3,2] bi, float[3,2] ei) {
            s_out = Add(s_in, xi)
            q_out = Mul(q_in, zi)
            ai = Neg(s_out)
            bi = Add(q_out, s_out)
            ei = Identity(zi)
          }>(s0, q0, x, z)
        }"""),
    "scan_opset_8": (8, """
        g (float[3,2] s0, float[3,4,2] x) => (float[3,2] s, float[3,4,2] a) {
          s, a = Scan<num_scan_inputs = 1, directions = [1], body = step (float[2] s_in, float[2] xi) => (float[2] s_out, float[2] row) {
            s_out = Add(s_in, xi)
            row = Mul(s_out, xi)
          }>( , s0, x)
        }"""),
    "sequences": (17, """
        g (float[5,3] x, float[2,3] z) => (float[2,3] a, float[1,3] b, float[9,3] c, float[2,5,3] d, int64 n)
        <int64 two = {2}, int64[2] uneven = {4, 1}, int64 zero = {0}, int64 last = {-1}> {
          chunks = SplitToSequence(x, two)
          with_z = SequenceInsert(chunks, z, last)
          a = SequenceAt(with_z, two)
          parts = SplitToSequence(x, uneven)
          b = SequenceAt(parts, last)
          longer = SequenceInsert(with_z, z)
          c = ConcatFromSequence<axis = 0>(longer)
          first = SequenceErase(chunks, zero)
          rows = SplitToSequence<keepdims = 0>(z)
          pair = SequenceConstruct(x, x)
          d = ConcatFromSequence<axis = 0, new_axis = 1>(pair)
          n = SequenceLength(first)
        }"""),
    "sequence_in_a_loop": (16, """
        g (float[4,3] x) => (float[3,4] y, float[4,3] z) <int64 four = {4}, bool yes = {1}> {
          empty = SequenceEmpty()
          rows = SplitToSequence<axis = 0, keepdims = 0>(x)
          sums = Loop(four, yes, empty) <body = a (int64 i, bool c, seq(float[3]) s) => (bool d, seq(float[3]) t) {
            d = Identity(c)
            zero = Constant<value = int64 {0}>()
            r = SequenceAt(rows, i)
            more = Add(r, r)
            t = SequenceInsert(s, more, zero)
          }>
          y = ConcatFromSequence<axis = 1, new_axis = 1>(sums)
          z = ConcatFromSequence<axis = 0, new_axis = 1>(sums)
        }"""),
    "optionals": (18, """
        g (float[2,3] x) => (float[2,3] y) {
          some = Optional(x)
          has = OptionalHasElement(some)
          y = If(has) <then_branch = p () => (float[2,3] v) { w = OptionalGetElement(some) v = Exp(w) },
                       else_branch = q () => (float[2,3] v) { v = Neg(x) }>
        }"""),
}


def main():
    TARGET.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(3)
    for name, (opset, graph) in MODELS.items():
        text = f'<ir_version: 8, opset_import: ["" : {opset}]>\n' + "\n".join(line.strip() for line in graph.strip().splitlines()) + "\n"
        model = onnx.parser.parse_model(text)
        feeds = {i.name: random.uniform(-1, 1, [d.dim_value for d in i.type.tensor_type.shape.dim]).astype(np.float32)
                 for i in model.graph.input}
        session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
        results = dict(zip([o.name for o in model.graph.output], session.run(None, feeds)))
        (TARGET / f"{name}.onnxtxt").write_text(text)
        arrays = {k: {n: {"shape": list(a.shape), "values": [float(f"{v:.8g}") for v in a.flatten()]} for n, a in d.items()}
                  for k, d in (("inputs", feeds), ("outputs", results))}
        (TARGET / f"{name}.json").write_text(json.dumps(arrays) + "\n")
    print(f"{len(MODELS)} models, onnxruntime {onnxruntime.__version__}")


if __name__ == "__main__":
    main()
