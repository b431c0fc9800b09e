"""ONNX models written byte by byte: also such as no library would write. Standard library only.

A message is bytes; fields are joined by +. Numbers of fields are those of onnx.proto.
"""

import struct

FLOAT, INT32, INT64, STRING, BOOL = 1, 6, 7, 8, 9
EXTERNAL = 1


def varint(value):
    value &= 2**64 - 1
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def number(field, value):
    return varint(field << 3) + varint(value)


def real(field, value):
    return varint(field << 3 | 5) + struct.pack("<f", value)


def blob(field, content):
    content = content.encode() if isinstance(content, str) else content
    return varint(field << 3 | 2) + varint(len(content)) + content


def blobs(field, contents):
    return b"".join(blob(field, content) for content in contents)


def numbers(field, values):
    return b"".join(number(field, value) for value in values)


def tensor(name, dims, dtype=FLOAT, raw=None, external=None, more=b""):
    """TensorProto; `external` is a list of (key, value)."""
    message = numbers(1, dims) + number(2, dtype) + blob(8, name) + more
    if raw is not None:
        message += blob(9, raw)
    if external is not None:
        message += b"".join(blob(13, blob(1, key) + blob(2, value)) for key, value in external) + number(14, EXTERNAL)
    return message


def int64s(name, values, dims=None):
    return tensor(name, [len(values)] if dims is None else dims, INT64, struct.pack(f"<{len(values)}q", *values))


def tensor_type(dims, dtype=FLOAT):
    """TypeProto; a dimension is a number, a name, or None."""
    shape = b"".join(
        blob(1, b"" if dim is None else number(1, dim) if isinstance(dim, int) else blob(2, dim)) for dim in dims)
    return blob(1, number(1, dtype) + blob(2, shape))


def value(name, dims=(2, 4), dtype=FLOAT):
    return blob(1, name) + blob(2, tensor_type(dims, dtype))


def attribute(name, **kinds):
    """AttributeProto: i=, f=, s=, t=, g=, ints=, graphs=, strings=."""
    ((kind, content),) = kinds.items()
    message = blob(1, name)
    if kind == "i":
        return message + number(3, content) + number(20, 2)
    if kind == "f":
        return message + real(2, content) + number(20, 1)
    if kind == "ints":
        return message + numbers(8, content) + number(20, 7)
    field, code = {"s": (4, 3), "t": (5, 4), "g": (6, 5)}.get(kind, (None, None))
    if field:
        return message + blob(field, content) + number(20, code)
    field, code = {"strings": (9, 8), "graphs": (11, 10)}[kind]
    return message + blobs(field, content) + number(20, code)


def node(op, inputs=(), outputs=(), attributes=(), name="", domain="", overload=""):
    return (blobs(1, inputs) + blobs(2, outputs) + blob(3, name) + blob(4, op) + blobs(5, attributes) + blob(7, domain)
            + blob(8, overload))


def graph(nodes, inputs=(), outputs=(), initializers=(), sparse=()):
    return (blobs(1, nodes) + blob(2, "g") + blobs(5, initializers) + blobs(11, inputs) + blobs(12, outputs)
            + blobs(15, sparse))


def function(name, inputs, outputs, nodes, domain="f", attributes=(), opset=21):
    return (blob(1, name) + blobs(4, inputs) + blobs(5, outputs) + blobs(6, attributes) + blobs(7, nodes)
            + blob(9, number(2, opset)) + blob(9, blob(1, domain) + number(2, 1)) + blob(10, domain))


def model(graph_bytes, opset=21, ir=10, functions=(), domains=("f",)):
    opsets = blob(8, blob(1, "") + number(2, opset)) + b"".join(blob(8, blob(1, d) + number(2, 1)) for d in domains)
    return number(1, ir) + opsets + blob(7, graph_bytes) + blobs(25, functions)
