#include "cli/command.h"

namespace valora::cli {

void add_engine_flags(CLI::App& command, EngineOptions& o) {
  command.add_option("--model", o.model_path, "Folder of a Hugging Face checkpoint")->required();
  command.add_option("--chat-template", o.chat_template,
                     "Jinja chat template file, in the place of the model folder's own");
  command.add_option("--dtype", o.dtype, "auto, float32, bfloat16 or float16 (GPUs only)")
      ->capture_default_str();
  command.add_option("--device", o.device, "cpu or cuda")->capture_default_str();
  command
      .add_option("--kernels", o.kernels, "On CPUs: native, or reference (ATen, to compare with)")
      ->capture_default_str();
  command.add_option("--mode", o.mode,
                     "How adapters are applied: unmerged, merged (one adapter a step) or mixture");
  command
      .add_option("--merge", o.merge,
                  "Where merged weights lie: shadow (beside the base's), or inplace")
      ->capture_default_str();
  command.add_option("--tiles", o.tiles,
                     "Table of tiles for CPU products, in the place of the one `valora tune` left "
                     "or the one that came along");
  command.add_option("--threads", o.threads, "Compute threads; 0: one a core")
      ->capture_default_str();
  command.add_option("--max-model-len", o.max_model_len,
                     "Longest sequence, prompt and answer together");
  command.add_option("--max-num-seqs", o.max_num_seqs, "Sequences in one step")
      ->capture_default_str();
  command.add_option("--max-num-batched-tokens", o.max_num_batched_tokens, "Tokens in one step")
      ->capture_default_str();
  command.add_option("--kv-cache-memory", o.kv_cache_memory, "Bytes for the KV cache");
  command
      .add_option("--max-lora-rank", o.max_lora_rank, "Highest rank of an adapter that is accepted")
      ->capture_default_str();
  command.add_flag("!--no-enable-prefix-caching", o.prefix_caching,
                   "Do not reuse the KV cache of equal prompt beginnings");
}

}  // namespace valora::cli
