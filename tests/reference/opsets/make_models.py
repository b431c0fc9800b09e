"""Whole models in the ops of each opset from 7 to 27, with what onnxruntime makes of them.

    make_models.py OUT      writes OUT/NN/MODEL.onnx, OUT/NN/MODEL.inputs.npz and OUT/NN/MODEL.outputs.npz

Needs onnx, onnxruntime and numpy. tests/data/opsets is its output. A model uses every op whose form changed at or
after its opset and that a CPU kernel or a function body can run; the same seed gives the same file.
"""

import os
import pathlib
import sys

os.environ["ALLOW_RELEASED_ONNX_OPSET_ONLY"] = "0"

import numpy
import onnxruntime
from builder import Builder
from onnx import TensorProto

OPSETS = range(7, 28)
SAMPLES = 4


def mlp(b):
    """Layers with what stood between them."""
    x = b.input("x", b.floats(SAMPLES, 6))
    h = b.node("Relu", b.node("Gemm", x, b.weight(8, 6), b.weight(8), transB=1))
    h = b.dropout(h, 0.25)
    h = b.clip(b.node("MatMul", h, b.weight(8, 8)), low=-0.5, high=1.5)
    h = b.node("Sum", h, b.weight(8), b.weight(1, 8)) if b.opset >= 8 else b.node("Add", h, b.weight(8))
    h = b.node("Max", h, b.scalar(-0.25)) if b.opset >= 8 else b.clip(h, low=-0.25)
    h = b.node("Mul", h, b.node("Sigmoid", h))
    h = b.node("Tanh", b.node("Gemm", h, b.weight(8, 5), b.weight(5), alpha=0.5))
    b.output(b.node("LogSoftmax", h, axis=1))
    b.output(b.node("Softmax", h) if b.opset < 13 else b.node("Softmax", h, axis=-1))


ELEMENTWISE = [  # op, the opset that brought it, attributes
    ("Abs", 7, {}), ("Ceil", 7, {}), ("Elu", 7, {"alpha": 0.5}), ("Exp", 7, {}), ("Floor", 7, {}),
    ("HardSigmoid", 7, {}), ("LeakyRelu", 7, {}), ("Neg", 7, {}), ("Reciprocal", 7, {}), ("Relu", 7, {}),
    ("Selu", 7, {}), ("Sigmoid", 7, {}), ("Softplus", 7, {}), ("Softsign", 7, {}), ("Tanh", 7, {}), ("Acos", 7, {}),
    ("Asin", 7, {}), ("Atan", 7, {}), ("Cos", 7, {}), ("Sin", 7, {}), ("Tan", 7, {}), ("Identity", 7, {}),
    ("Asinh", 9, {}), ("Atanh", 9, {}), ("Cosh", 9, {}), ("Erf", 9, {}), ("Sign", 9, {}), ("Sinh", 9, {}),
    ("ThresholdedRelu", 10, {"alpha": 0.3}), ("Round", 11, {}), ("Celu", 12, {}), ("HardSwish", 14, {}),
    ("Gelu", 20, {"approximate": "tanh"}),
]


def elementwise(b):
    """One op after the other on the same values, and those of two operands and more."""
    x = b.input("x", b.floats(SAMPLES, 6, low=-0.9, high=0.9))
    results = [b.node(op, x, **attributes) for op, since, attributes in ELEMENTWISE if b.opset >= since]
    y = b.input("y", b.floats(SAMPLES, 6))
    results += [b.node(op, x, y) for op in ("Add", "Sub", "Mul", "Div", "Max", "Min", "Sum", "Mean")]
    results.append(b.node("PRelu", x, b.weight(6)))
    results.append(b.node("Pow", b.node("Abs", x), y))
    results.append(b.node("Sqrt", b.node("Log", b.node("Add", b.node("Abs", x), b.scalar(1)))))
    less, greater = b.node("Less", x, y), b.node("Greater", x, b.scalar(0.1))
    for op in ("And", "Or", "Xor"):
        results.append(b.node("Cast", b.node(op, less, b.node("Not", greater)), to=TensorProto.FLOAT))
    whole = b.node("Cast", b.node("Mul", x, b.scalar(4)), to=TensorProto.INT64)
    results.append(b.node("Cast", b.node("Equal", whole, b.scalar(1, numpy.int64)), to=TensorProto.FLOAT))
    if b.opset >= 9:
        results.append(b.node("Cast", b.node("IsNaN", b.node("Log", x)), to=TensorProto.FLOAT))
    if b.opset >= 10:
        results.append(b.node("Cast", b.node("Mod", whole, b.scalar(-3, numpy.int64)), to=TensorProto.FLOAT))
    if b.opset >= 12:
        results.append(b.node("Cast", b.node("LessOrEqual", x, y), to=TensorProto.FLOAT))
    b.output(b.node("Concat", *results, axis=1))


def block(b):
    """A transformer's block, its shapes computed in the graph."""
    heads, width, steps = 2, 8, 4
    x = b.input("x", b.floats(SAMPLES, steps, width))
    shape = b.node("Shape", x)
    batch = b.unsqueeze(b.node("Gather", shape, b.constant(numpy.array(0, numpy.int64))), 0)

    def split_heads(value):
        target = b.node("Concat", batch, b.ints(steps, heads, width // heads), axis=0)
        return b.node("Transpose", b.node("Reshape", value, target), perm=[0, 2, 1, 3])

    h = b.layer_norm(x, width)
    mixed = b.node("Add", b.node("MatMul", h, b.weight(width, 3 * width)), b.weight(3 * width))
    query, key, value = (split_heads(part) for part in b.split(mixed, 2, [width] * 3))
    scores = b.node("Div", b.node("MatMul", query, b.node("Transpose", key, perm=[0, 1, 3, 2])), b.scalar(2.0))
    if b.opset >= 14:
        mask = b.node("Trilu", b.constant(numpy.ones((steps, steps), numpy.float32)), upper=0)
        scores = b.node("Where", b.node("Cast", mask, to=TensorProto.BOOL), scores, b.scalar(-1e4))
    elif b.opset >= 9:
        mask = b.constant(numpy.tril(numpy.ones((steps, steps), bool)))
        scores = b.node("Where", mask, scores, b.scalar(-1e4))
    weights = b.dropout(b.node("Softmax", scores, axis=3 if b.opset < 11 else -1), 0.1)
    h = b.node("Transpose", b.node("MatMul", weights, value), perm=[0, 2, 1, 3])
    h = b.node("Reshape", h, b.node("Concat", batch, b.ints(steps, width), axis=0))
    x = b.node("Add", x, b.node("MatMul", h, b.weight(width, width)))
    h = b.gelu(b.node("MatMul", b.layer_norm(x, width), b.weight(width, 12)))
    x = b.node("Add", x, b.node("MatMul", h, b.weight(12, width)))
    first = b.squeeze(b.slice(x, [0], [1], [1]), 1)
    b.output(b.node("Gemm", first, b.weight(width, 3), b.weight(3)))
    b.output(b.reduce("ReduceMean", x, [1], keepdims=0))


def shapes(b):
    """Movement, reductions and selections."""
    x = b.input("x", b.floats(SAMPLES, 3, 4))
    padded = b.pad(x, [0, 1, 0, 0, 0, 2], 0.5)  # [N,4,6]
    b.output(padded)
    b.output(b.node("Softmax", padded, axis=1))  # before 13: over the 24 values of a sample
    first, second = b.split(padded, 2, [4, 2])
    b.output(b.node("Flatten", b.node("Concat", second, first, axis=2), axis=1))
    b.output(b.slice(padded, [-3, 1], [2**31 - 1, 3], [2, 1]))
    for op in ("ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceSumSquare", "ReduceL1", "ReduceL2",
               "ReduceLogSumExp"):
        b.output(b.reduce(op, x, [1], keepdims=0))
    b.output(b.reduce("ReduceLogSum", b.node("Exp", x), [1, 2]))
    b.output(b.squeeze(b.unsqueeze(x, 1, 3), 3))
    b.output(b.node("Cast", b.node("ArgMax", x, axis=2, keepdims=0), to=TensorProto.FLOAT))
    for y in b.top_k(x, 2, axis=2):
        b.output(b.node("Cast", y, to=TensorProto.FLOAT))
    b.output(b.node("Hardmax", x, axis=1))  # before 13: one of the 12 values of a sample
    b.output(b.node("Tile", x, b.ints(1, 2, 1)))
    whole = b.node("Cast", b.node("Greater", x, b.scalar(0)), to=TensorProto.INT64)
    b.output(b.node("Cast", whole, to=TensorProto.FLOAT))
    b.output(b.node("Gather", x, b.ints(2, 0, 2), axis=1))
    if b.opset >= 8:
        b.output(b.node("Expand", b.slice(x, [0], [1], [2]), b.ints(1, 1, 3)))
    if b.opset >= 9:
        values = b.constant(numpy.array([-1, 2], numpy.float32))
        b.output(b.node("OneHot", whole, b.scalar(2, numpy.int64), values))
        b.output(b.node("Where", b.node("Cast", whole, to=TensorProto.BOOL), x, b.scalar(9)))
    if b.opset >= 10:
        b.output(b.node("Mod", x, b.scalar(0.3), fmod=1))
    if b.opset >= 11:
        b.output(b.node("CumSum", x, b.scalar(2, numpy.int64), reverse=1))
        steps = b.node("Range", b.scalar(0), b.scalar(4), b.scalar(1))
        b.output(b.node("Mul", x, steps))
    if b.opset >= 9:
        places = b.input("places", numpy.array([[[0, 2, 1, 1]]] * SAMPLES, numpy.int64))
        updates = b.input("updates", b.floats(SAMPLES, 1, 4))
        b.output(b.node("ScatterElements" if b.opset >= 11 else "Scatter", x, places, updates, axis=1))
        if b.opset >= 11:
            b.output(b.node("GatherElements", x, places, axis=1))
        if b.opset >= 12:
            b.output(b.node("GatherND", x, b.node("Transpose", places, perm=[0, 2, 1]), batch_dims=1))
    if b.opset >= 18:
        b.output(b.node("Pad", x, b.ints(1, 1), b.scalar(0), b.ints(2)))


def cnn(b):
    """An image classifier."""
    x = b.input("x", b.floats(SAMPLES, 3, 9, 8))
    h = b.node("Conv", x, b.weight(4, 3, 3, 3), b.weight(4), auto_pad="SAME_UPPER", strides=[1, 2])  # [N,4,9,4]
    h = b.node("Relu", b.batch_norm(h, 4))
    more = {"ceil_mode": 1} if b.opset >= 10 else {}
    h = b.node("MaxPool", h, kernel_shape=[3, 2], strides=[2, 1], pads=[1, 0, 1, 1], **more)  # [N,4,5,4]
    b.output(h)
    h = b.node("Conv", h, b.weight(8, 2, 3, 3), group=2, dilations=[2, 1], pads=[2, 1, 2, 1])  # [N,8,5,4]
    h = b.node("InstanceNormalization", h, b.weight(8), b.weight(8))
    h = b.node("LRN", h, size=3, alpha=0.01)
    h = b.node("AveragePool", h, kernel_shape=[2, 2], strides=[2, 2], pads=[1, 0, 0, 0], count_include_pad=1)  # [N,8,3,2]
    b.output(h)
    # What the words of old opsets left open or had the other way round: on which side an odd pixel goes, and windows
    # that begin in the padding at the end.
    w = b.weight(8, 2, 3, 3)
    b.output(b.node("ConvTranspose", h, w, strides=[2, 2], auto_pad="SAME_UPPER"))
    b.output(b.node("ConvTranspose", h, w, strides=[2, 2], auto_pad="SAME_LOWER"))
    b.output(b.node("ConvTranspose", h, w, strides=[2, 2], output_shape=[6, 4]))
    if b.opset >= 10:
        outside = {"kernel_shape": [2, 2], "strides": [2, 3], "pads": [0, 1, 0, 1], "ceil_mode": 1}
        b.output(b.node("GlobalAveragePool", b.node("MaxPool", x, **outside)))
        b.output(b.node("GlobalAveragePool", b.node("AveragePool", x, count_include_pad=1, **outside)))
    h = b.node("ConvTranspose", h, b.weight(8, 4, 2, 2), b.weight(4), strides=[2, 2])  # [N,4,6,4]
    b.output(b.node("LpPool", h, kernel_shape=[3, 2], p=2))
    if b.opset < 9:
        places = [b.constant(b.floats(4, 6, 4, low=0.5)) for _ in range(4)]
        h = b.node("BatchNormalization", h, *places, spatial=0)
    if b.opset >= 18:
        count = 2 if b.opset < 21 else 4
        b.checked = b.opset >= 21  # the checker refuses the form of opset 18, which was deprecated with its successor
        h = b.node("GroupNormalization", h, b.weight(count), b.weight(count), num_groups=2)
    pooled = b.node("Add", b.node("GlobalAveragePool", h), b.node("GlobalMaxPool", h))
    b.output(b.node("Gemm", b.node("Flatten", pooled), b.weight(4, 5), b.weight(5)))


def modern(b):
    """A block of the ops that opset 23 brought: grouped heads, rotary positions."""
    heads, groups, size, steps = 4, 2, 4, 3
    width = heads * size
    x = b.input("x", b.floats(SAMPLES, steps, width))
    angles = numpy.outer(numpy.arange(steps), 0.5 ** numpy.arange(size // 2)).astype(numpy.float32)
    cosines, sines = b.constant(numpy.cos(angles)), b.constant(numpy.sin(angles))
    positions = b.node("Expand", b.constant(numpy.arange(steps)[None, :]),
                       b.node("Concat", b.node("Shape", x, start=0, end=1), b.ints(steps), axis=0))
    h = b.node("RMSNormalization", x, b.constant(b.floats(width, low=0.5), "w"), axis=-1, epsilon=1e-5)
    query = b.node("MatMul", h, b.weight(width, width))
    key = b.node("MatMul", h, b.weight(width, groups * size))
    value = b.node("MatMul", h, b.weight(width, groups * size))
    query = b.node("RotaryEmbedding", query, cosines, sines, positions, num_heads=heads)
    key = b.node("RotaryEmbedding", key, cosines, sines, positions, num_heads=groups)
    h = b.node("Attention", query, key, value, q_num_heads=heads, kv_num_heads=groups, is_causal=1)
    x = b.node("Add", x, b.node("MatMul", h, b.weight(width, width)))
    h = b.node("MatMul", b.node("RMSNormalization", x, b.constant(b.floats(width, low=0.5), "w")), b.weight(width, 8))
    h = b.node("Mul", h, b.node("Sigmoid", h))
    b.output(b.node("Add", x, b.node("MatMul", h, b.weight(8, width))))


def scale(b):
    """Images made larger and smaller, and continued beyond their edges."""
    x = b.input("x", b.floats(SAMPLES, 2, 4, 5))
    for mode in ("nearest", "linear"):
        b.output(b.resize(x, [1, 1, 2, 1.5], mode))
        b.output(b.resize(x, [1, 1, 3, 2], mode))
        if b.opset >= 10:
            b.output(b.resize(x, [1, 1, 0.5, 0.7], mode))
            b.output(b.resize(x, [1, 1, 0.6, 2], mode))
    if b.opset >= 11:
        shape = b.node("Concat", b.slice(b.node("Shape", x), [0], [2], [0]), b.ints(3, 7), axis=0)
        empty = [b.constant(numpy.zeros(0, numpy.float32))] * 2 if b.opset < 13 else ["", ""]
        b.output(b.node("Resize", x, *empty, shape, mode="linear"))
        b.output(b.node("Resize", x, *empty, shape, mode="cubic", coordinate_transformation_mode="align_corners"))
    for mode in ("reflect", "edge"):
        b.output(b.node("Pad", x, pads=[0, 0, 1, 2, 0, 0, 2, 1], mode=mode) if b.opset < 11 else
                 b.node("Pad", x, b.ints(0, 0, 1, 2, 0, 0, 2, 1), mode=mode))


def quantised(b):
    """A layer in integers: one scale, one a column since opset 13, one for every two rows of a column since 21."""
    x = b.input("x", b.floats(SAMPLES, 8))
    scale, zero = b.scalar(2 / 255), b.scalar(128, numpy.uint8)
    rounded = b.node("QuantizeLinear", x, scale, zero)
    whole = b.constant(b.random.integers(-100, 100, (8, 6)).astype(numpy.int8))
    weight_scale, weight_zero = b.scalar(0.01), b.scalar(3, numpy.int8)
    weights = b.node("DequantizeLinear", whole, weight_scale, weight_zero)
    b.output(b.node("MatMul", b.node("DequantizeLinear", rounded, scale, zero), weights))
    b.output(b.node("Cast", b.node("MatMulInteger", rounded, whole, zero), to=TensorProto.FLOAT))
    result_scale, result_zero = b.scalar(0.05), b.scalar(100, numpy.uint8)
    product = b.node("QLinearMatMul", rounded, scale, zero, whole, weight_scale, weight_zero, result_scale, result_zero)
    b.output(b.node("DequantizeLinear", product, result_scale, result_zero))
    if b.opset >= 13:
        columns = b.constant(b.floats(6, low=0.005, high=0.02))
        weights = b.node("DequantizeLinear", whole, columns, axis=1)
        b.output(b.node("MatMul", x, weights))
    if b.opset >= 21:
        blocks = b.constant(b.floats(4, 6, low=0.005, high=0.02))
        b.output(b.node("MatMul", x, b.node("DequantizeLinear", whole, blocks, axis=0, block_size=2)))


def recurrent(b):
    """Sequence models over [steps, N, width]: both directions, backwards, gates of their own kind."""
    steps, width, hidden = 3, 4, 5

    def weights(directions, gates, size):
        shapes = (gates * hidden, size), (gates * hidden, hidden), (2 * gates * hidden,)
        return [b.constant(b.floats(directions, *shape, low=-0.5, high=0.5), "w") for shape in shapes]

    x = b.node("Transpose", b.input("x", b.floats(SAMPLES, steps, width)), perm=[1, 0, 2])
    y, hidden_state, cell = b.node("LSTM", x, *weights(2, 4, width), outputs=3, hidden_size=hidden,
                                   direction="bidirectional")
    b.output(b.node("Transpose", b.node("Concat", hidden_state, cell, axis=2), perm=[1, 0, 2]))
    backwards = b.squeeze(b.slice(y, [1], [2], [1]), 1)
    y, last = b.node("GRU", backwards, *weights(1, 3, hidden), outputs=2, hidden_size=hidden, linear_before_reset=1)
    b.output(b.squeeze(last, 0))
    y, last = b.node("RNN", b.squeeze(y, 1), *weights(1, 1, hidden), outputs=2, hidden_size=hidden,
                     direction="reverse", activations=["Relu"])
    b.output(b.node("Transpose", b.squeeze(y, 1), perm=[1, 0, 2]))


# Name: how it is made, and from which opset on.
MODELS = {
    "mlp": (mlp, 7),
    "elementwise": (elementwise, 7),
    "block": (block, 7),
    "shapes": (shapes, 7),
    "cnn": (cnn, 7),
    "scale": (scale, 7),
    "quantised": (quantised, 10),
    "recurrent": (recurrent, 7),
    "modern": (modern, 23),
}


def main(out):
    for opset in OPSETS:
        folder = out / f"{opset:02}"
        folder.mkdir(parents=True, exist_ok=True)
        for name, (build, since) in MODELS.items():
            if opset < since:
                continue
            builder = Builder(opset, seed=opset)
            build(builder)
            model = builder.model()
            options = onnxruntime.SessionOptions()
            # What the model says, not what an optimizer makes of it.
            options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
            session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
            outputs = session.run(None, builder.data)
            blob = builder.finish(model, outputs).SerializeToString()
            (folder / f"{name}.onnx").write_bytes(blob)
            numpy.savez_compressed(folder / f"{name}.inputs.npz", **builder.data)
            names = [output.name for output in session.get_outputs()]
            numpy.savez_compressed(folder / f"{name}.outputs.npz", **dict(zip(names, outputs)))
            print(f"opset {opset}: {name}, {len(builder.nodes)} nodes, {len(blob)} bytes")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
