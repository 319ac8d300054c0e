#include "cli/options/engine_flags.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>

#include "cli/options/named_option.h"
#include "scheduler/policies/policy.h"

namespace valora::cli {
namespace {

constexpr double kGibibyte = 1 << 30;

// Parses an integer; nullopt for vLLM's names for the model's own length.
std::optional<int> model_len(const std::string& text) {
  if (text == "auto" || text == "-1") return {};
  char* end = nullptr;
  const long length = std::strtol(text.c_str(), &end, 10);
  if (text.empty() || *end != '\0' || length > INT32_MAX || length < INT32_MIN)
    throw std::invalid_argument("--max-model-len takes a whole number or auto, not " + text);
  return static_cast<int>(length);
}

// Values below 1024 are GiB, as in vLLM; no swap file is smaller than 1024 bytes.
int64_t swap_bytes(const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0' || !(std::abs(value) < 9e15))
    throw std::invalid_argument("--swap-space takes bytes, such as 8G, not " + text);
  return static_cast<int64_t>(value > 0 && value < 1024 ? value * kGibibyte : value);
}

// vLLM's two names: requests run first come, first served within their priorities.
std::string policy_name(const std::string& name) {
  return name == "fcfs" || name == "priority" ? "unmerged" : name;
}

std::string meanings() {
  std::string text;
  for (const scheduler::PolicyRow& row : scheduler::policies())
    text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", row.name, row.meaning);
  return text;
}

// Two names for one option. If both are given, they must agree.
void add_policy(Command command, std::string& policy) {
  command
      .add_option_function<std::vector<std::string>>(
          "--scheduling-policy,--mode",
          [&policy](const std::vector<std::string>& names) {
            for (const std::string& name : names)
              if (name != names.front())
                throw std::invalid_argument("--scheduling-policy (or --mode) is given as " +
                                            names.front() + " and as " + name +
                                            "; give one of them");
            policy = value_or_throw(scheduler::make_policy(policy_name(names.front())))->name();
          },
          "How adapters are applied: " + meanings() + "; vLLM's fcfs and priority are unmerged")
      .type_name("TEXT")
      .expected(1, 2)
      .allow_extra_args(false)
      .default_str(policy);
}

void add_scheduling(Command command, SchedulingOptions& s) {
  add_policy(command, s.policy);
  const std::string group = "Scheduling";
  command
      .add_option("--starvation-threshold", s.tolerance,
                  "Seconds that valora's modes may delay a request in total")
      .capture_default_str()
      .group(group);
  command
      .add_option("--max-adapters-per-step", s.max_adapters,
                  "Adapters per step from which on unmerged prefers requests of these; 0: no limit")
      .capture_default_str()
      .group(group);
  command
      .add_flag("--early-abort", s.early_abort,
                "Refuse a waiting request once its first token cannot come within its target")
      .group(group);
  command
      .add_option("--costs", s.costs,
                  "File of `valora tune --cost` with what steps cost (default: this model's, else "
                  "an estimate)")
      .group(group);
}

void add_lengths(Command command, EngineOptions& o) {
  command
      .add_option_function<std::string>(
          "--max-model-len", [&o](const std::string& text) { o.max_model_len = model_len(text); },
          "Highest number of tokens per sequence, prompt and answer together; 2k: 2,000, "
          "2K: 2,048; auto: the model's own, or what the pool holds")
      .type_name("INT")
      .human_integer();
  command.add_option("--max-num-seqs", o.max_num_seqs, "Highest number of sequences per step")
      .capture_default_str();
  command
      .add_option("--max-num-batched-tokens", o.max_num_batched_tokens,
                  "Highest number of tokens per step")
      .human_integer()
      .capture_default_str();
  command.add_option(
      "--max-decode-gap", o.max_decode_gap,
      "Seconds between two tokens of a running answer: while there is one, a step takes only as "
      "many tokens of prompts as fit into this time, or into three steps without them if that is "
      "more; 0: any number (default: 0.03 for prompts with pictures or videos, 0.5 for others)");
  command.add_option("--max-lora-rank", o.max_lora_rank, "Highest accepted adapter rank")
      .capture_default_str();
  command.add_option_function<std::string>(
      "--speculative-config",
      [&o](const std::string& text) { o.speculation = value_or_throw(parse_speculation(text)); },
      R"(Guess the next tokens of answers and verify them in one step: {"method": "ngram", )"
      R"("num_speculative_tokens": 4, "prompt_lookup_max": 5, "prompt_lookup_min": 2})");
  command.add_flag("!--no-enable-prefix-caching", o.prefix_caching,
                   "Do not reuse the KV cache of common prompt prefixes");
}

void add_memory(Command command, MemoryOptions& m) {
  command
      .add_option("--pool-memory,--kv-cache-memory,--kv-cache-memory-bytes", m.pool_bytes,
                  "Bytes of the pool that adapters and KV cache share, e.g. 4G (default: from the "
                  "free memory)")
      .human_integer();
  command
      .add_option_function<std::string>(
          "--swap-space", [&m](const std::string& text) { m.swap_bytes = swap_bytes(text); },
          "Bytes of a swap file for KV that leaves the pool, e.g. 8G; with a GPU, of pinned "
          "host memory; a number below 1024 is GiB, as vLLM's; 0: none")
      .type_name("INT")
      .human_integer()
      .default_str("0");
  command.add_option("--swap-dir", m.swap_dir, "Folder of the swap file").capture_default_str();
  command
      .add_option(
          "--adapter-cache", m.adapter_cache_bytes,
          "With a GPU: bytes of host memory for adapters that are not in the pool (default: "
          "4G, at most a quarter of the free memory)")
      .human_integer();
}

}  // namespace

void add_quantization_flag(Command command, EngineOptions& o) {
  add_named_option(command, "--quantization", o.quantization, parse_quantization,
                   "Weights of the decoder's linears: none (of the data type), int8, or int4 "
                   "(the output layer: int8)");
}

void add_rounding_flags(Command command, EngineOptions& o) {
  add_quantization_flag(command, o);
  add_named_option(
      command, "--activations", o.activations, parse_activations,
      "Inputs of linears in integers, on CPUs: auto (of the data type), or int8 (rounded in each "
      "product: faster, less exact)");
  add_named_option(command, "--kv-cache-dtype", o.kv_cache_dtype, parse_kv_cache_dtype,
                   "KV cache: auto (of the data type), int8 or fp8 (8 bits with a scale "
                   "per token and head: nearly twice as many tokens, less exact)");
}

void add_rank_flags(Command command, EngineOptions& o) {
  command
      .add_option(
          "--tensor-parallel-size", o.tensor_parallel_size,
          "Ranks that share the decoder's linears, KV heads and adapters; each has its part of "
          "the compute threads, or a GPU")
      .capture_default_str();
  command
      .add_option(
          "--rank-cores", o.rank_cores,
          "CPUs of each rank, e.g. 0-3|4-7; auto: the NUMA nodes, if there are several that "
          "the ranks divide among evenly; none: any")
      .capture_default_str();
}

void add_mmproj_flag(Command command, std::string& mmproj) {
  command.add_option(
      "--mmproj", mmproj,
      "Vision part (mmproj) of a model in a GGUF file, or none; by default the one in "
      "the folder of the model's file");
}

void add_engine_flags(Command command, EngineOptions& o, bool model_required) {
  Option model = command.add_option("model,--model", o.model_path,
                                    "Folder of a Hugging Face checkpoint, a GGUF file, or "
                                    "OWNER/NAME[@REVISION] on the Hugging Face Hub");
  if (model_required) model.required();
  add_mmproj_flag(command, o.mmproj);
  command.add_option("--chat-template", o.chat_template,
                     "Jinja chat template file, instead of the model folder's template");
  add_named_option(
      command, "--dtype", o.dtype, parse_dtype,
      "Data type of weights: auto (the checkpoint's), float32, bfloat16 or float16 (GPUs only)");
  add_rounding_flags(command, o);
  add_named_option(command, "--device", o.device, parse_device, "Device: cpu or cuda");
  add_named_option(command, "--kernels", o.kernels, parse_kernels,
                   "Kernels on CPUs: native, or reference (ATen, for comparisons)");
  add_scheduling(command, o.scheduling);
  add_named_option(command, "--merge", o.merge, parse_merge_place,
                   "Where merged weights are stored: shadow (a copy of the linears), or inplace "
                   "(in the base weights)");
  command.add_option("--tiles", o.tiles,
                     "Tile table for CPU matrix products (default: the one written by `valora "
                     "tune`, else the shipped one)");
  command
      .add_option("--threads", o.threads,
                  "Compute threads; 0: one per core, fewer while other programs keep cores busy")
      .capture_default_str();
  add_rank_flags(command, o);
  add_lengths(command, o);
  add_named_option(command, "--json-whitespace", o.json_whitespace, parse_json_spacing,
                   "White space in answers that are JSON: bounded (as printers write it), compact "
                   "(one line, with \", \" and \": \"), or free (any)");
  command
      .add_option("--form-compile-limit", o.form_limits.compilation,
                  "CPU seconds after which the compilation of an answer's form (schema, regular "
                  "expression, grammar) is refused")
      .range(0.1, 3600)
      .capture_default_str();
  add_memory(command, o.memory);
}

void add_hub_flags(Command command, HubFlags& flags, bool revision) {
  const std::string group = "Models and adapters by name";
  if (revision)
    command
        .add_option("--revision", flags.revision,
                    "Branch, tag or commit of a model that is given as OWNER/NAME")
        .group(group);
  command
      .add_flag("--no-download", flags.no_download,
                "Take names from the local caches alone, as HF_HUB_OFFLINE=1 does")
      .group(group);
  command
      .add_option("--download-dir", flags.download_dir,
                  "Cache of names, in Hugging Face's layout (default: HF_HUB_CACHE, else "
                  "~/.cache/huggingface/hub)")
      .group(group);
  command
      .add_option("--hf-token", flags.token,
                  "Token for private and gated names; HF_TOKEN, which other users of the machine "
                  "cannot see, does the same")
      .group(group);
}

}  // namespace valora::cli
