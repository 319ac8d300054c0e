"""mistral.rs as a system of tools/bench/peers.py. Run by the Python of an environment with mistralrs:
peer_mistralrs.py MODEL QUANTISATION, where QUANTISATION is f32 or one of its in-situ ones. Threads: RAYON_NUM_THREADS."""

import json
import sys
import tempfile
import time

from mistralrs import Architecture, ChatCompletionRequest, ModelDType, Runner, Which


def main():
    folder, quantisation = sys.argv[1:]
    with tempfile.NamedTemporaryFile("w", suffix=".jinja") as template:
        template.write("{{ messages[0]['content'] }}")
        template.flush()
        runner = Runner(which=Which.Plain(model_id=folder, arch=Architecture.Qwen2, dtype=ModelDType.F32), token_source="none",
                        in_situ_quant=None if quantisation == "f32" else quantisation, max_seqs=8, prefix_cache_n=0,
                        jinja_explicit=template.name)

    def begin_answer(prompt, tokens):
        # It takes text. A letter is one token of the model's vocabulary of bytes.
        text = "".join(chr(ord("a") + token % 26) for token in prompt)
        return runner.send_chat_completion_request(
            ChatCompletionRequest(messages=[{"role": "user", "content": text}], model="default", max_tokens=tokens,
                                  temperature=0.0, stream=True, ignore_eos=True))

    print("ANSWER []", flush=True)
    for line in sys.stdin:
        case = json.loads(line)
        begin = time.perf_counter()
        # One call at a time is allowed, but streams run together.
        streams = [begin_answer(prompt, case["tokens"]) for prompt in case["prompts"]]
        last = [list(stream)[-1] for stream in streams]
        seconds = time.perf_counter() - begin
        for chunk, prompt in zip(last, case["prompts"], strict=True):
            if chunk.usage.prompt_tokens != len(prompt):
                sys.exit(f"the prompt has {chunk.usage.prompt_tokens} tokens, not {len(prompt)}")
        print("ANSWER", json.dumps([seconds, sum(chunk.usage.completion_tokens for chunk in last)]), flush=True)


main()
