"""OpenVINO GenAI as a system of tools/bench/peers.py. Run by the Python of an environment with openvino-genai:
peer_openvino.py EXPORTED-MODEL THREADS"""

import json
import sys
import time

import numpy
import openvino
import openvino_genai


def main():
    folder, threads = sys.argv[1:]
    scheduler = openvino_genai.SchedulerConfig()
    scheduler.cache_size, scheduler.enable_prefix_caching, scheduler.max_num_batched_tokens = 2, False, 4096  # 2 GB, 4096 tokens
    pipeline = openvino_genai.ContinuousBatchingPipeline(folder, scheduler, "CPU", {"INFERENCE_NUM_THREADS": int(threads)})
    print("ANSWER []", flush=True)
    for line in sys.stdin:
        case = json.loads(line)
        config = openvino_genai.GenerationConfig()
        config.max_new_tokens, config.ignore_eos, config.do_sample = case["tokens"], True, False
        prompts = [openvino.Tensor(numpy.array([prompt], dtype=numpy.int64)) for prompt in case["prompts"]]
        begin = time.perf_counter()
        results = pipeline.generate(prompts, [config] * len(prompts))
        seconds = time.perf_counter() - begin
        print("ANSWER", json.dumps([seconds, sum(len(result.m_generation_ids[0]) for result in results)]), flush=True)


main()
