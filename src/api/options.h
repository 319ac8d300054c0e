// The options of an engine, and the names of their values on the command line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/media_limits.h"
#include "base/json/json_spacing.h"
#include "base/result.h"

namespace valora {

// Speculative decoding: draft tokens that a step verifies along with a request's last token
// (scheduler/proposer.h). Answers do not change.
struct SpeculationOptions {
  static constexpr int kMostTokens = 32, kLongest = 64;

  int tokens = 0;  // drafted at a time; 0: none
  // The last `longest` to `least` tokens of a sequence are searched for earlier in it.
  int longest = 5, least = 5;
  std::string ignored;  // an unsupported method, which changes no answer
};

// Parses vLLM's --speculative-config: {"method": "ngram", "num_speculative_tokens": 4,
// "prompt_lookup_max": 5, "prompt_lookup_min": 2}. Other methods only set `ignored`.
// kInvalidArgument names the key.
Result<SpeculationOptions> parse_speculation(const std::string& text);

// kAuto: as in the checkpoint
enum class ComputeDtype : uint8_t { kAuto, kFloat32, kBFloat16, kFloat16 };
// Format to which the decoder's linears are converted at load time (models/weights/weights.h).
enum class Quantization : uint8_t { kNone, kInt8, kInt4 };
// Inputs of integer linears. kAuto: kept in the data type; kInt8: rounded to 8 bits in each
// product.
enum class Activations : uint8_t { kAuto, kInt8 };
// Storage type of the KV cache. kAuto: the data type of the activations.
enum class KvCacheDtype : uint8_t { kAuto, kInt8, kFp8 };
enum class DeviceKind : uint8_t { kCpu, kCuda };
// The implementation of CPU operations: native kernels, or ATen as the reference for tests.
enum class KernelBackend : uint8_t { kNative, kReference };
// Where merged weights are stored. kShadow: in a copy of all the decoder's linears; switching
// changes a pointer, and the base weights are never written. kInPlace: in the base weights; this
// takes no extra memory, but restoring them reads the layers from the checkpoint again.
enum class MergePlace : uint8_t { kShadow, kInPlace };

// Which requests a step runs, and in which mode.
struct SchedulingOptions {
  std::string policy = "unmerged";  // a name of scheduler::policies()
  double tolerance = 0.2;           // seconds that a mode may delay a request: θ of Algorithm 1
  int max_adapters = 0;             // per step, for unmerged; 0: no limit
  // Reject a waiting request (kUnavailable) once its first token can no longer meet its target.
  bool early_abort = false;
  // File of step costs from `valora tune --cost`; empty: the user's file for this model, else an
  // estimate from the model's sizes.
  std::string costs;
};

// The memory pool shared by adapters and KV cache.
struct MemoryOptions {
  std::optional<int64_t> pool_bytes;  // absent: derived from the free memory
  // bytes of the second tier for KV (a file; with a GPU, pinned host memory); 0: none
  int64_t swap_bytes = 0;
  std::string swap_dir = "/var/tmp";
  // with a GPU: host memory for packed adapters that are not in the pool; absent: 4 GiB, but at
  // most a quarter of the free memory
  std::optional<int64_t> adapter_cache_bytes;
};

// kInvalidArgument for an unknown name; the message lists the known ones.
Result<ComputeDtype> parse_dtype(const std::string& name);  // auto, float32, bfloat16, float16
Result<Quantization> parse_quantization(const std::string& name);    // none, int8, int4
Result<Activations> parse_activations(const std::string& name);      // auto, int8
Result<KvCacheDtype> parse_kv_cache_dtype(const std::string& name);  // auto, int8, fp8
Result<DeviceKind> parse_device(const std::string& name);            // cpu, cuda
Result<KernelBackend> parse_kernels(const std::string& name);        // native, reference
Result<MergePlace> parse_merge_place(const std::string& name);       // shadow, inplace
Result<JsonSpacing> parse_json_spacing(const std::string& name);     // bounded, compact, free

// The inverse of the parsers above.
std::string name_of(ComputeDtype dtype);
std::string name_of(Quantization quantization);
std::string name_of(Activations activations);
std::string name_of(KvCacheDtype dtype);
std::string name_of(DeviceKind device);
std::string name_of(KernelBackend kernels);
std::string name_of(MergePlace place);
std::string name_of(JsonSpacing spacing);

// Which URLs media may be read from. data: URLs are always allowed.
struct MediaAccess {
  std::string allowed_local_path;  // folder whose files may be read by file:// URLs; empty: none
  std::vector<std::string> video_devices;  // that streams may read by v4l2:// URLs
  bool allow_http = false;
  // With allow_http: the allowed hosts, whatever their addresses. Empty: any host with public
  // addresses.
  std::vector<std::string> allowed_hosts;
  bool private_addresses = false;  // unlisted hosts may have any address
  bool use_proxy = false;          // from the environment's http_proxy and https_proxy
};

// Defaults of EngineOptions::max_decode_gap, in seconds: for text-only prompts, and for prompts
// with pictures or videos.
inline constexpr double kTextGap = 0.5, kMediaGap = 0.03;

// How models mark the thoughts that precede their answers. kAuto: as the chat template has it.
// kQwen3: <think> … </think>, opened by the template or by the model. kDeepseekR1: the same, and an
// answer begins with a thought even if nothing opens it. kMistral: [THINK] … [/THINK].
enum class ReasoningParser : uint8_t { kAuto, kNone, kQwen3, kDeepseekR1, kMistral };
Result<ReasoningParser> parse_reasoning_parser(const std::string& name);  // auto, none, qwen3, …
std::string name_of(ReasoningParser parser);

// CPU time limits for constrained answers, in seconds.
struct FormLimits {
  double step = 0.1;        // all choices of a step; the rest wait for the next step
  double request = 1;       // all choices of a request: its initial and largest budget
  double token = 0.01;      // added to that budget by its first token in a step
  double further = 0.0025;  // added by its further tokens in the step
  double quick = 0.2;       // a compilation before it has to queue with slow ones
  double compilation = 15;  // one compilation
};

struct EngineOptions {
  std::string model_path;
  // The vision part of a model in a GGUF file; "none": none; empty: the one in the file's folder
  std::string mmproj;
  // Jinja template file; empty: the model folder's template, else the family's format
  std::string chat_template;
  // JSON object: variables of chat templates that requests do not set; empty: none
  std::string template_variables;
  ReasoningParser reasoning_parser = ReasoningParser::kAuto;
  std::string served_name;  // empty: model_path
  ComputeDtype dtype = ComputeDtype::kAuto;
  Quantization quantization = Quantization::kNone;
  Activations activations = Activations::kAuto;
  KvCacheDtype kv_cache_dtype = KvCacheDtype::kAuto;
  DeviceKind device = DeviceKind::kCpu;
  int threads = 0;  // compute threads; 0: one per core, fewer while other programs keep cores busy
  // Ranks that share the model (docs/ranks.md); on CPUs each is a thread with its part of
  // `threads`.
  int tensor_parallel_size = 1;
  // The CPUs of each rank, "0-3|4-7"; auto: the NUMA nodes, if there are several and they divide
  // evenly among the ranks; none: any.
  std::string rank_cores = "auto";
  // Another thread of this process computes too, alternating with the engine. The engine then ends
  // its helper threads while it is idle.
  bool shares_cores = false;
  KernelBackend kernels = KernelBackend::kNative;
  // Tile sizes of CPU matrix products, a file from `valora tune`; empty: the user's table, else the
  // shipped one.
  std::string tiles;
  SchedulingOptions scheduling;
  SpeculationOptions speculation;
  MergePlace merge = MergePlace::kShadow;
  std::optional<int> max_model_len;
  int max_num_seqs = 64;
  int max_num_batched_tokens = 2048;
  // While requests decode, a step takes only as many prompt tokens as fit into this time, or into
  // three decode-only steps if that is longer; 0: no limit. Absent: kTextGap and kMediaGap
  std::optional<double> max_decode_gap;  // seconds
  // highest number of waiting requests; more get kQueueFull. The only bound on the queue, except in
  // `valora serve`, whose server has its own (server/handlers/generation/waiting_choices.h)
  int max_waiting = 1024;
  MemoryOptions memory;
  bool prefix_caching = true;
  int max_lora_rank = 256;
  int max_loras = 4096;  // highest number of loaded adapter names
  int max_logprobs = 20;
  JsonSpacing json_whitespace = JsonSpacing::kBounded;  // unless a request says otherwise
  FormLimits form_limits;
  // JSON object whose values override generation_config.json; empty: none
  std::string generation_overrides;
  MediaLimits media_limits;
  MediaSettings media_defaults;  // settings for media whose request does not set them
  // Requests without a seed get one derived from this value and their position in the sequence of
  // such requests; absent: random.
  std::optional<int64_t> seed;
  MediaAccess fetch;
  int media_workers = 2;
  size_t media_cache_bytes = size_t{512} << 20;   // prepared pixels
  size_t visual_cache_bytes = size_t{512} << 20;  // visual embeddings
};

}  // namespace valora
