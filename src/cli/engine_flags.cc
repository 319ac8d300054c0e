#include "cli/command.h"
#include "cli/named_option.h"

namespace valora::cli {
namespace {

// Two names of one option. If both are given, they must agree.
void add_policy(CLI::App& command, SchedulingPolicy& policy) {
  command
      .add_option_function<std::vector<std::string>>(
          "--scheduling-policy,--mode",
          [&policy](const std::vector<std::string>& names) {
            for (const std::string& name : names)
              if (name != names.front())
                throw std::invalid_argument("--scheduling-policy (or --mode) is given as " +
                                            names.front() + " and as " + name +
                                            "; give one of them");
            policy = value_or_throw(parse_scheduling_policy(names.front()));
          },
          "How adapters are applied: unmerged (all requests run together), merged (only the "
          "requests of the merged adapter run), or mixture (all requests run together, with one "
          "adapter merged)")
      ->type_name("TEXT")
      ->expected(1, 2)
      ->allow_extra_args(false)
      ->default_str(name_of(policy));
}

void add_lengths(CLI::App& command, EngineOptions& o) {
  command.add_option("--max-model-len", o.max_model_len,
                     "Highest number of tokens per sequence, prompt and answer together");
  command.add_option("--max-num-seqs", o.max_num_seqs, "Highest number of sequences per step")
      ->capture_default_str();
  command
      .add_option("--max-num-batched-tokens", o.max_num_batched_tokens,
                  "Highest number of tokens per step")
      ->capture_default_str();
  command.add_option("--kv-cache-memory", o.kv_cache_memory, "Bytes for the KV cache");
  command.add_option("--max-lora-rank", o.max_lora_rank, "Highest accepted adapter rank")
      ->capture_default_str();
  command.add_flag("!--no-enable-prefix-caching", o.prefix_caching,
                   "Do not reuse the KV cache of common prompt prefixes");
}

}  // namespace

void add_engine_flags(CLI::App& command, EngineOptions& o) {
  command.add_option("--model", o.model_path, "Folder of a Hugging Face checkpoint")->required();
  command.add_option("--chat-template", o.chat_template,
                     "Jinja chat template file, instead of the model folder's template");
  add_named_option(
      command, "--dtype", o.dtype, parse_dtype,
      "Data type of weights: auto (the checkpoint's), float32, bfloat16 or float16 (GPUs only)");
  add_named_option(command, "--device", o.device, parse_device, "Device: cpu or cuda");
  add_named_option(command, "--kernels", o.kernels, parse_kernels,
                   "Kernels on CPUs: native, or reference (ATen, for comparisons)");
  add_policy(command, o.policy);
  add_named_option(command, "--merge", o.merge, parse_merge_place,
                   "Where merged weights are stored: shadow (a copy of the linears), or inplace "
                   "(in the base weights)");
  command.add_option("--tiles", o.tiles,
                     "Tile table for CPU matrix products (default: the one written by `valora "
                     "tune`, else the shipped one)");
  command.add_option("--threads", o.threads, "Compute threads; 0: one per core")
      ->capture_default_str();
  add_lengths(command, o);
}

}  // namespace valora::cli
