"""One model in the ops of one opset: every method writes the form that its op had at that time."""

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

# The IR version that was current when the opset was published, by onnx's own table.
IR = {row[2]: row[1] for row in helper.VERSION_TABLE}


class Builder:
    def __init__(self, opset, seed):
        self.opset = opset
        self.random = numpy.random.default_rng(seed)
        self.nodes, self.initializers, self.inputs, self.outputs = [], [], [], []
        self.data = {}
        self.count = 0
        self.checked = True

    # Values

    def input(self, name, array, batch="N"):
        """An input whose first axis is the batch's; `array` is what it is fed."""
        kind = helper.np_dtype_to_tensor_dtype(array.dtype)
        self.inputs.append(helper.make_tensor_value_info(name, kind, [batch, *array.shape[1:]]))
        self.data[name] = array
        return name

    def floats(self, *shape, low=-1.0, high=1.0):
        return self.random.uniform(low, high, shape).astype(numpy.float32)

    def weight(self, *shape, scale=None):
        scale = shape[0] ** -0.5 if scale is None else scale
        return self.constant(self.floats(*shape, low=-scale, high=scale), "w")

    def constant(self, array, name="c"):
        name = self.fresh(name)
        self.initializers.append(numpy_helper.from_array(numpy.asarray(array), name))
        return name

    def ints(self, *values):
        return self.constant(numpy.array(values, numpy.int64))

    def scalar(self, value, dtype=numpy.float32):
        return self.constant(numpy.array(value, dtype))

    def fresh(self, name):
        self.count += 1
        return f"{name}{self.count}"

    # Nodes

    def node(self, op, *inputs, outputs=1, **attributes):
        names = [self.fresh(op.lower()) for _ in range(outputs)]
        self.nodes.append(helper.make_node(op, inputs, names, name=self.fresh(f"{op}_"), **attributes))
        return names[0] if outputs == 1 else names

    def with_axes(self, op, x, axes, since, **attributes):
        """Ops whose axes were an attribute before opset `since`."""
        if self.opset < since:
            return self.node(op, x, axes=axes, **attributes)
        return self.node(op, x, self.ints(*axes), **attributes)

    def squeeze(self, x, *axes):
        return self.with_axes("Squeeze", x, axes, 13)

    def unsqueeze(self, x, *axes):
        return self.with_axes("Unsqueeze", x, axes, 13)

    def reduce(self, op, x, axes, keepdims=1):
        return self.with_axes(op, x, axes, 13 if op == "ReduceSum" else 18, keepdims=keepdims)

    def split(self, x, axis, sizes):
        equal = len(set(sizes)) == 1
        if self.opset < 13:
            more = {} if equal else {"split": sizes}
            return self.node("Split", x, outputs=len(sizes), axis=axis, **more)
        if equal and self.opset >= 18:
            return self.node("Split", x, outputs=len(sizes), axis=axis, num_outputs=len(sizes))
        return self.node("Split", x, *([] if equal else [self.ints(*sizes)]), outputs=len(sizes), axis=axis)

    def slice(self, x, starts, ends, axes):
        if self.opset < 10:
            return self.node("Slice", x, starts=starts, ends=ends, axes=axes)
        return self.node("Slice", x, self.ints(*starts), self.ints(*ends), self.ints(*axes))

    def clip(self, x, low=None, high=None):
        if self.opset < 11:
            bounds = {"min": low, "max": high}
            return self.node("Clip", x, **{k: v for k, v in bounds.items() if v is not None})
        return self.node("Clip", x, *("" if v is None else self.scalar(v) for v in (low, high)))

    def pad(self, x, pads, value):
        if self.opset < 11:
            return self.node("Pad", x, pads=pads, value=value)
        return self.node("Pad", x, self.ints(*pads), self.scalar(value))

    def dropout(self, x, ratio):
        if self.opset < 12:
            return self.node("Dropout", x, ratio=ratio)
        return self.node("Dropout", x, self.scalar(ratio))

    def top_k(self, x, k, axis):
        if self.opset < 10:
            return self.node("TopK", x, outputs=2, k=k, axis=axis)
        return self.node("TopK", x, self.ints(k), outputs=2, axis=axis)

    def resize(self, x, scales, mode):
        scales = numpy.array(scales, numpy.float32)
        if self.opset < 9:
            return self.node("Upsample", x, scales=scales.tolist(), mode=mode)
        if self.opset < 11:
            return self.node("Upsample" if self.opset < 10 else "Resize", x, self.constant(scales), mode=mode)
        region = self.constant(numpy.zeros(0, numpy.float32)) if self.opset < 13 else ""
        return self.node("Resize", x, region, self.constant(scales), mode=mode)

    def gelu(self, x):
        if self.opset >= 20:
            return self.node("Gelu", x)
        if self.opset >= 9:
            erf = self.node("Erf", self.node("Mul", x, self.scalar(2**-0.5)))
            return self.node("Mul", self.node("Mul", x, self.node("Add", erf, self.scalar(1))), self.scalar(0.5))
        return self.node("Mul", x, self.node("Sigmoid", self.node("Mul", x, self.scalar(1.702))))

    def layer_norm(self, x, width):
        scale, bias = self.constant(self.floats(width, low=0.5, high=1.5), "w"), self.weight(width)
        if self.opset >= 17:
            return self.node("LayerNormalization", x, scale, bias, axis=-1, epsilon=1e-5)
        centred = self.node("Sub", x, self.reduce("ReduceMean", x, [2]))
        variance = self.reduce("ReduceMean", self.node("Pow", centred, self.scalar(2)), [2])
        deviation = self.node("Sqrt", self.node("Add", variance, self.scalar(1e-5)))
        return self.node("Add", self.node("Mul", self.node("Div", centred, deviation), scale), bias)

    def batch_norm(self, x, channels):
        values = [self.constant(self.floats(channels, low=0.5, high=1.5), "w") for _ in range(4)]
        return self.node("BatchNormalization", x, *values, **({"spatial": 1} if self.opset < 9 else {}))

    # The model

    def output(self, value, kind=TensorProto.FLOAT):
        name = f"y{len(self.outputs)}"
        self.nodes.append(helper.make_node("Identity", [value], [name]))
        self.outputs.append(helper.make_tensor_value_info(name, kind, None))

    def model(self):
        graph = helper.make_graph(self.nodes, f"opset_{self.opset}", self.inputs, self.outputs, self.initializers)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=IR[self.opset])
        if model.ir_version < 4:  # initializers had to be inputs too
            for tensor in self.initializers:
                graph_input = helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims)
                model.graph.input.append(graph_input)
        return model

    def finish(self, model, arrays):
        """Gives the outputs the shapes of `arrays`, which are what the model makes of the data, and checks it."""
        samples = len(next(iter(self.data.values())))
        for output, array in zip(model.graph.output, arrays):
            dims = ["N" if axis == 0 and dim == samples else dim for axis, dim in enumerate(array.shape)]
            output.CopyFrom(helper.make_tensor_value_info(output.name, output.type.tensor_type.elem_type, dims))
        if self.checked:
            onnx.checker.check_model(model, full_check=True)
        return model
