// Descriptions of the served model and its adapters.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/answer_form.h"
#include "api/media_limits.h"
#include "api/retrieval.h"
#include "base/digest.h"
#include "base/labels.h"
#include "base/tool_call_style.h"

namespace valora {

struct ModelCard {
  std::string name;  // served model name
  std::string path;
  std::string architecture;  // "Qwen2VLForConditionalGeneration"
  std::string dtype;
  std::string device;
  int64_t parameters = 0;
  int max_model_len = 0;
  int64_t created = 0;  // unix time
  bool images = false;
  bool videos = false;
  MediaLimits media_limits;    // limits per request
  int max_logprobs = 20;       // EngineOptions::max_logprobs
  int64_t embedding_size = 0;  // numbers of an embedding
  RetrievalCard retrieval;
  // The style in which prompts with tools ask for calls.
  ToolCallStyle tool_calls = ToolCallStyle::kHermes;
  bool template_takes_tools = false;  // otherwise the system message describes the tools
  int kv_block_tokens = 0;
  int kv_blocks = 0;
  size_t kv_bytes = 0;   // of the pool
  std::string kv_dtype;  // storage type of the KV cache: float32, bfloat16, float16, int8, fp8
  int64_t kv_token_bytes = 0;  // KV bytes per token
  size_t weight_bytes = 0;
};

// Where an adapter's weights are. kPool: in the memory that the model reads them from; kHost: in
// host memory, from which they can be loaded into the pool without reading the file.
enum class WeightsPlace { kNone, kPool, kHost, kFile };  // kNone: it only has heads

// The last load of an adapter's weights into the pool.
struct AdapterLoad {
  double seconds = 0;
  int64_t ended = 0;  // Unix time
};

// What an adapter changes in one part of the model.
struct ChangedPart {
  std::string name;           // "decoder", or "vision": tower and projector
  int linears = 0, of = 0;    // with an adaptation, and all that the part has
  std::vector<int> ranks;     // ascending, each once
  std::vector<float> scales;  // of the low-rank products: ascending, each once
};
// "decoder: 14 of 35 linears, rank 16, scale 2; vision: …". Empty if there is none.
std::string text_of(const std::vector<ChangedPart>& changes);

struct AdapterCard {
  std::string name;
  std::string path;
  uint64_t generation = 0;
  int rank = 0;
  size_t bytes = 0;
  bool pinned = false;
  WeightsPlace place = WeightsPlace::kPool;
  std::optional<AdapterLoad> last_load;
  Digest digest;  // of the adapter's content
  std::string task, description, question;
  std::vector<std::pair<std::string, Labels>> heads;  // name, labels
  std::optional<std::string> head;                    // LoadAdapter::head
  AnswerForm form;                                    // LoadAdapter::form
  bool on_decoder = true, on_visuals = false;  // what the weights change; neither: only heads
  bool activated = false;                      // acts from its invocation on (docs/adapters.md)
  std::string unmergeable;  // why the adapter can't be merged into the weights; empty: it can
  bool merges_among_others = false;  // false: only in steps of its requests
  int64_t created = 0;
  std::vector<std::string> warnings;
  std::vector<ChangedPart> changes;
};

}  // namespace valora
