// How an engine is set up: typed values, which the command line reads by the names below.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/media_limits.h"
#include "base/result.h"

namespace valora {

enum class ComputeDtype : uint8_t { kAuto, kFloat32, kBFloat16, kFloat16 };  // auto: the model's
enum class DeviceKind : uint8_t { kCpu, kCuda };
// What computes on CPUs: native kernels, or ATen, which the tests compare them with.
enum class KernelBackend : uint8_t { kNative, kReference };
// Where merged weights are kept. In a shadow of all the decoder's linears, one allocation,
// switching to and from them is a change of pointer, and base weights are never written. In place
// they take no memory, but going back reads the layers again from the checkpoint.
enum class MergePlace : uint8_t { kShadow, kInPlace };
// Which requests a step runs, and in which mode: all of them unmerged, first come, first served;
// one adapter's at a time, merged; or all of them with one adapter merged.
enum class SchedulingPolicy : uint8_t { kUnmerged, kMerged, kMixture };

// Unknown names: kInvalidArgument that lists the known ones.
Result<ComputeDtype> parse_dtype(const std::string& name);      // auto, float32, bfloat16, float16
Result<DeviceKind> parse_device(const std::string& name);       // cpu, cuda
Result<KernelBackend> parse_kernels(const std::string& name);   // native, reference
Result<MergePlace> parse_merge_place(const std::string& name);  // shadow, inplace
Result<SchedulingPolicy> parse_scheduling_policy(const std::string& name);  // unmerged, …

// The name that the parser of the same type takes.
std::string name_of(ComputeDtype dtype);
std::string name_of(DeviceKind device);
std::string name_of(KernelBackend kernels);
std::string name_of(MergePlace place);
std::string name_of(SchedulingPolicy policy);

// Where media may come from; data: URLs are always allowed.
struct MediaAccess {
  std::string allowed_local_path;  // file:// below this folder; empty: no file access
  bool allow_http = false;
  std::vector<std::string> allowed_hosts;  // with allow_http: only from these; empty: from any
};

struct EngineOptions {
  std::string model_path;
  std::string
      chat_template;  // file of a Jinja template; empty: the folder's, else the family's own format
  std::string served_name;  // empty: the folder as given
  ComputeDtype dtype = ComputeDtype::kAuto;
  DeviceKind device = DeviceKind::kCpu;
  int threads = 0;            // compute threads; 0: one per core
  bool shares_cores = false;  // another thread of this process computes in turn with the engine,
                              // which ends its helpers when it has nothing to do
  KernelBackend kernels = KernelBackend::kNative;
  std::string tiles;  // of CPU products: a file of `valora tune`; empty: the user's own, else the
                      // shipped one
  SchedulingPolicy policy = SchedulingPolicy::kUnmerged;
  MergePlace merge = MergePlace::kShadow;
  std::optional<int> max_model_len;
  int max_num_seqs = 64;
  int max_num_batched_tokens = 2048;
  int max_waiting = 1024;                  // requests not yet running; more get kQueueFull
  std::optional<int64_t> kv_cache_memory;  // bytes
  bool prefix_caching = true;
  int max_lora_rank = 256;
  int max_loras = 4096;  // adapters loaded at once
  int max_logprobs = 20;
  MediaLimits media_limits;
  MediaAccess fetch;
  int media_workers = 2;
  size_t media_cache_bytes = size_t{512} << 20;   // prepared pixels
  size_t visual_cache_bytes = size_t{512} << 20;  // visual embeddings
};

}  // namespace valora
