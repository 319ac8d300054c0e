"""OpenVINO's products with integer weights, for tools/bench/products.py. Run by the Python of an environment with openvino:
peer_openvino_products.py THREADS IN OUT TOKENS… → a JSON object of seconds per product, by encoding and tokens."""

import json
import statistics
import sys
import time

import numpy
import openvino
from openvino import opset13 as ops

ROUNDS, SECONDS, COPIES = 5, 0.2, 3
ENCODINGS = {"int8": (openvino.Type.i8, 128), "int4": (openvino.Type.i4, 32)}  # inputs per scale


def linear(random, kept, kind, group, inputs, outputs):
    x = ops.parameter([-1, inputs], numpy.float32)
    low, high = (-127, 128) if kind == openvino.Type.i8 else (-7, 8)
    values = random.integers(low, high, (outputs, inputs // group, group), dtype=numpy.int8)
    packed = values if kind == openvino.Type.i8 else ((values[..., ::2] & 15) | (values[..., 1::2] << 4)).astype(numpy.uint8)
    kept.append(packed.reshape(-1).view(numpy.uint8))  # the constant refers to this memory
    weights = ops.constant(openvino.Tensor(kept[-1], openvino.Shape(values.shape), kind))
    scales = ops.constant(random.uniform(0.001, 0.002, (outputs, inputs // group, 1)).astype(numpy.float16))
    decoded = ops.multiply(ops.convert(weights, numpy.float16), scales)
    w = ops.convert(ops.reshape(decoded, [outputs, inputs], False), numpy.float32)
    return openvino.Model([ops.matmul(x, w, False, True)], [x])


def seconds_of(requests, x):
    for request in requests:
        request.set_input_tensor(openvino.Tensor(x))
        request.infer()
    times = []
    for _ in range(ROUNDS):
        count, begin = 0, time.perf_counter()
        while time.perf_counter() - begin < SECONDS:
            requests[count % len(requests)].infer(share_outputs=True)
            count += 1
        times.append((time.perf_counter() - begin) / count)
    return statistics.median(times)


def main():
    threads, inputs, outputs, *tokens = map(int, sys.argv[1:])
    random = numpy.random.default_rng(1)
    core, kept, seconds = openvino.Core(), [], {}
    for name, (kind, group) in ENCODINGS.items():
        models = [core.compile_model(linear(random, kept, kind, group, inputs, outputs), "CPU", {"INFERENCE_NUM_THREADS": threads}) for _ in range(COPIES)]
        requests = [model.create_infer_request() for model in models]
        seconds[name] = {n: seconds_of(requests, random.standard_normal((n, inputs), dtype=numpy.float32)) for n in tokens}
    print(json.dumps(seconds))


main()
