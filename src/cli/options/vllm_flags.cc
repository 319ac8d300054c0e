#include "cli/options/vllm_flags.h"

#include <fmt/format.h>

#include <cstdlib>
#include <stdexcept>
#include <string_view>

#include "base/text/strings.h"

namespace valora::cli {
namespace {

constexpr const char* kGroup = "Accepted for vLLM's command lines";
constexpr const char* kHidden = "";

bool is_listed(std::string_view values, std::string_view value) {
  while (true) {
    const size_t end = values.find('|');
    if (values.substr(0, end) == value) return true;
    if (end == std::string_view::npos) return false;
    values.remove_prefix(end + 1);
  }
}

bool is_number(const std::string& text) {
  char* end = nullptr;
  std::strtod(text.c_str(), &end);
  return !text.empty() && *end == '\0';
}

// Throws if this value ("" for none) is not supported.
void take(const VllmOption& option, const std::string& value, std::vector<std::string>& notes) {
  // A value that does not matter is not printed: it may be a secret.
  const bool plain = value.empty() || (*option.served == '\0' && !option.refused);
  const std::string given =
      plain ? option.name : fmt::format("{} {}", option.name, shortened(value, 60));
  const std::string_view served = option.served;
  if (option.refused || !(served.empty() || is_listed(served, value)))
    throw std::invalid_argument(fmt::format("{} is not served: {}", given, option.note));
  if (option.takes == VllmOption::Takes::kNumber && !is_number(value))
    throw std::invalid_argument(fmt::format("{} takes a number, not {}", option.name, value));
  notes.push_back(fmt::format("{}: {}", given, option.note));
}

// An unsupported flag set to false asks for nothing.
void take_flag(const VllmOption& option, bool on, std::vector<std::string>& notes) {
  if (on) return take(option, "", notes);
  if (!option.refused) notes.push_back(fmt::format("{} false: {}", option.name, option.note));
}

void add(Command command, const VllmOption& option, std::vector<std::string>& notes) {
  const char* const group = option.refused ? kHidden : kGroup;
  switch (option.takes) {
    case VllmOption::Takes::kNothing:
      command
          .add_flag_function(
              option.name, [&option, &notes](bool on) { take_flag(option, on, notes); },
              option.note)
          .group(group);
      return;
    case VllmOption::Takes::kTexts:
      command
          .add_option_function<std::vector<std::string>>(
              option.name,
              [&option, &notes](const std::vector<std::string>& values) {
                take(option, fmt::format("{}", fmt::join(values, " ")), notes);
              },
              option.note)
          .group(group);
      return;
    case VllmOption::Takes::kNumber:
    case VllmOption::Takes::kText:
      command
          .add_option_function<std::string>(
              option.name,
              [&option, &notes](const std::string& value) { take(option, value, notes); },
              option.note)
          .type_name(option.takes == VllmOption::Takes::kNumber ? "NUMBER" : "TEXT")
          .group(group);
  }
}

}  // namespace

void add_vllm_flags(Command command, std::vector<std::string>& notes) {
  for (const VllmOption& option : vllm_options()) add(command, option, notes);
}

namespace {

constexpr auto kNothing = VllmOption::Takes::kNothing;
constexpr auto kNumber = VllmOption::Takes::kNumber;
constexpr auto kText = VllmOption::Takes::kText;
constexpr auto kTexts = VllmOption::Takes::kTexts;

constexpr const char* kOneDevice = "only 1 is served: one device runs the whole model";
constexpr const char* kAccessLog =
    "has no effect: a line for each answer is logged unless --log-level is warning";
constexpr const char* kChunks = "has no effect: --max-decode-gap decides how prompts are cut";
constexpr const char* kNoGraphs = "has no effect: nothing is compiled at start";
constexpr const char* kNoDraft = "has no effect: no draft model is used, answers are the same";
constexpr const char* kOneProcess = "has no effect: one process serves";
constexpr const char* kKernels = "has no effect: kernels are chosen by the processor";
constexpr const char* kHeaderLimits = "has no effect: headers have limits of their own";
constexpr const char* kMediaCache = "has no effect: --media-cache and --visual-cache set the sizes";
constexpr const char* kAllEndpoints = "has no effect: all endpoints are served";
constexpr const char* kOneSampler = "has no effect: steps are planned one by one";
constexpr const char* kConfigJson = "write it into the model's config.json";

constexpr VllmOption kOptions[] = {
    // adapters
    {"--enable-lora", kNothing, "", "adapters are always enabled"},
    {"--max-loras", kNumber, "",
     "a batch takes any number of adapters; --max-cpu-loras limits the loaded ones"},
    {"--lora-dtype", kText, "auto", "adapters are computed in the data type of the weights"},
    {"--lora-extra-vocab-size", kNumber, "",
     "has no effect: an adapter may bring any number of tokens"},
    {"--fully-sharded-loras", kNothing, "",
     "has no effect: each rank holds its part of every adapter"},
    {"--enable-tower-connector-lora", kNothing, "",
     "adapters are always applied to the vision tower and the projector"},
    // the model and its weights
    {"--load-format", kText, "auto|safetensors|hf|gguf",
     "weights are read from safetensors and GGUF files"},
    {"--safetensors-load-strategy", kText, "", "has no effect: files are mapped"},
    {"--max-parallel-loading-workers", kNumber, "", kOneProcess},
    {"--use-tqdm-on-load", kNothing, "", "has no effect: loading shows no bar"},
    {"--no-use-tqdm-on-load", kNothing, "", "has no effect: loading shows no bar"},
    {"--trust-remote-code", kNothing, "", "no code of a model's folder is run"},
    {"--tokenizer-mode", kText, "auto|hf|slow", "tokenizer.json is read"},
    {"--config-format", kText, "auto|hf", "config.json is read"},
    {"--model-impl", kText, "auto|vllm|transformers", "has no effect: a family has one"},
    {"--code-revision", kText, "", "has no effect: no code of a model's folder is run"},
    {"--tokenizer-revision", kText, "", "has no effect: the tokenizer is that of --revision"},
    {"--tokenizer", kText, "", "the tokenizer is the model folder's", true},
    {"--hf-overrides", kText, "{}", kConfigJson},
    {"--rope-scaling", kText, "{}", kConfigJson},
    {"--rope-theta", kText, "", kConfigJson, true},
    {"--task", kText, "auto|generate|embed|embedding|classify", kAllEndpoints},
    {"--runner", kText, "auto|generate|pooling", kAllEndpoints},
    {"--convert", kText, "auto|none|embed|classify", kAllEndpoints},
    // devices and processes
    {"--pipeline-parallel-size", kNumber, "1", kOneDevice},
    {"--data-parallel-size", kNumber, "1", kOneDevice},
    {"--decode-context-parallel-size", kNumber, "1", kOneDevice},
    {"--nnodes", kNumber, "1", kOneDevice},
    {"--node-rank", kNumber, "0", kOneDevice},
    {"--api-server-count", kNumber, "1", kOneProcess},
    {"--distributed-executor-backend", kText, "", kOneProcess},
    {"--worker-use-ray", kNothing, "", kOneProcess},
    {"--disable-frontend-multiprocessing", kNothing, "", kOneProcess},
    {"--disable-custom-all-reduce", kNothing, "", kOneProcess},
    {"--enable-expert-parallel", kNothing, "", "has no effect: all experts are in one process"},
    {"--mm-encoder-tp-mode", kText, "weights|data", kOneProcess},
    {"--enable-multimodal-encoder-data-parallel", kNothing, "", kOneProcess},
    // memory
    {"--gpu-memory-utilization", kNumber, "",
     "has no effect; --kv-cache-memory sets the bytes of the KV cache"},
    {"--num-gpu-blocks-override", kNumber, "", "has no effect; --pool-memory sets the bytes"},
    {"--block-size", kNumber, "", "has no effect: blocks have a size of their own"},
    {"--cpu-offload-gb", kNumber, "", "has no effect: weights stay on the device"},
    {"--preemption-mode", kText, "recompute|swap",
     "has no effect: KV is swapped if --swap-space is given, else computed again"},
    {"--enable-prefix-caching", kNothing, "", "on unless --no-enable-prefix-caching is given"},
    {"--prefix-caching-hash-algo", kText, "", "has no effect: prefixes have digests of their own"},
    {"--mm-processor-cache-type", kText, "lru|shm", kMediaCache},
    {"--mm-shm-cache-max-object-size-mb", kNumber, "", kMediaCache},
    {"--skip-mm-profiling", kNothing, "", "has no effect: nothing is profiled at start"},
    // steps
    {"--enable-chunked-prefill", kNothing, "", kChunks},
    {"--no-enable-chunked-prefill", kNothing, "", kChunks},
    {"--max-num-partial-prefills", kNumber, "", kChunks},
    {"--max-long-partial-prefills", kNumber, "", kChunks},
    {"--long-prefill-token-threshold", kNumber, "", kChunks},
    {"--scheduler-delay-factor", kNumber, "", kChunks},
    {"--async-scheduling", kNothing, "", kOneSampler},
    {"--no-async-scheduling", kNothing, "", kOneSampler},
    {"--num-scheduler-steps", kNumber, "", kOneSampler},
    {"--multi-step-stream-outputs", kNothing, "", kOneSampler},
    {"--disable-async-output-proc", kNothing, "", kOneSampler},
    {"--num-lookahead-slots", kNumber, "", kNoDraft},
    {"--stream-interval", kNumber, "", "has no effect: streams send each token"},
    {"--use-v2-block-manager", kNothing, "", kOneSampler},
    {"--enforce-eager", kNothing, "", "has no effect; on CPUs no graphs are captured"},
    {"--max-seq-len-to-capture", kNumber, "", kNoGraphs},
    {"--cudagraph-capture-sizes", kTexts, "", kNoGraphs},
    {"--compilation-config", kText, "", kNoGraphs},
    {"--optimization-level", kText, "", kNoGraphs},
    {"--performance-mode", kText, "", kOneSampler},
    {"--attention-backend", kText, "", kKernels},
    {"--mm-encoder-attn-backend", kText, "", kKernels},
    {"--disable-cascade-attn", kNothing, "", kKernels},
    {"--disable-sliding-window", kNothing, "",
     "a model's attention windows are served at any length"},
    {"--speculative-model", kText, "", kNoDraft},
    {"--num-speculative-tokens", kNumber, "", kNoDraft},
    // prompts and answers
    {"--chat-template-content-format", kText, "auto|openai",
     "contents reach the template as it reads them, with their parts in order"},
    {"--enable-auto-tool-choice", kNothing, "", "calls of tools are always read"},
    {"--response-role", kText, "assistant", "answers are the assistant's"},
    {"--guided-decoding-backend", kText, "auto|xgrammar|guidance|outlines|lm-format-enforcer",
     "xgrammar constrains all answers"},
    {"--logprobs-mode", kText, "raw_logprobs",
     "log probabilities are the model's, under a form those among the allowed tokens"},
    {"--video-pruning-rate", kNumber, "0|0.0", "all tokens of videos are kept"},
    {"--enable-prompt-tokens-details", kNothing, "", "usage always has the cached tokens"},
    {"--tool-parser-plugin", kText, "", "--tool-call-parser names the parsers that there are",
     true},
    {"--exclude-tools-when-tool-choice-none", kNothing, "", "prompts always describe the tools",
     true},
    {"--return-tokens-as-token-ids", kNothing, "",
     "send \"return_tokens_as_token_ids\" in requests instead", true},
    {"--enable-force-include-usage", kNothing, "",
     "send \"stream_options\": {\"include_usage\": true} in requests instead", true},
    {"--logits-processors", kTexts, "", "no code of users is run", true},
    // the server
    {"--disable-log-requests", kNothing, "", kAccessLog},
    {"--enable-log-requests", kNothing, "", kAccessLog},
    {"--no-enable-log-requests", kNothing, "", kAccessLog},
    {"--disable-uvicorn-access-log", kNothing, "", kAccessLog},
    {"--uvicorn-log-level", kText, "", kAccessLog},
    {"--max-log-len", kNumber, "", "has no effect: prompts are never logged"},
    {"--disable-log-stats", kNothing, "", "has no effect: statistics are at /metrics alone"},
    {"--show-hidden-metrics-for-version", kText, "", "has no effect: /metrics shows all"},
    {"--enable-server-load-tracking", kNothing, "", "/load always counts"},
    {"--enable-request-id-headers", kNothing, "", "answers always have X-Request-Id"},
    {"--enable-ssl-refresh", kNothing, "", "certificates are always read again if they change"},
    {"--disable-fastapi-docs", kNothing, "",
     "has no effect: --no-ui turns /docs off, and the page"},
    {"--h11-max-incomplete-event-size", kNumber, "", kHeaderLimits},
    {"--h11-max-header-count", kNumber, "", kHeaderLimits},
    {"--middleware", kTexts, "", "no code of users is run", true},
    {"--otlp-traces-endpoint", kText, "", "no traces are sent", true},
    {"--kv-transfer-config", kText, "", "KV stays in this server", true},
    {"--enable-sleep-mode", kNothing, "", "there are no endpoints to sleep", true},
};

}  // namespace

std::span<const VllmOption> vllm_options() { return kOptions; }

}  // namespace valora::cli
