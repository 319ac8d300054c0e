// How an engine is set up; the command line fills it in.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "media/fetch.h"
#include "media/image.h"

namespace valora {

struct EngineOptions {
  std::string model_path;
  std::string
      chat_template;  // file of a Jinja template; empty: the folder's, else the family's own format
  std::string served_name;     // empty: the folder as given
  std::string dtype = "auto";  // auto, float32, bfloat16, float16
  std::string device = "cpu";  // cpu, cuda
  int threads = 0;             // compute threads; 0: one a core
  bool shares_cores = false;   // another thread of this process computes in turn with the engine,
                               // which ends its helpers when it has nothing to do
  std::string kernels = "native";  // of CPUs: native, or reference (ATen)
  std::string tiles;  // of CPU products: a file of `valora tune`; empty: the user's own, else the
                      // shipped one
  std::string policy = "unmerged";
  std::string mode;  // unmerged, merged or mixture: takes the policy that serves in this mode;
                     // empty: as `policy` has it
  std::string merge = "shadow";  // where merged weights lie: shadow (beside the base's), inplace
  std::optional<int> max_model_len;
  int max_num_seqs = 64;
  int max_num_batched_tokens = 2048;
  int max_waiting = 1024;                  // requests not yet running; more get kQueueFull
  std::optional<int64_t> kv_cache_memory;  // bytes
  bool prefix_caching = true;
  int max_lora_rank = 256;
  int max_loras = 4096;  // adapters loaded at once
  int max_logprobs = 20;
  int max_images = 16;  // a prompt
  int max_videos = 4;
  int media_workers = 2;
  size_t media_cache_bytes = size_t{512} << 20;   // prepared pixels
  size_t visual_cache_bytes = size_t{512} << 20;  // visual embeddings
  media::FetchPolicy fetch;
  media::Limits media_limits;
};

}  // namespace valora
