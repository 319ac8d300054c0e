// A request as the scheduler sees it. The engine derives from it for what only it needs (sampling
// state, the client's sink). Owned by the engine thread.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "adapters/adapter_id.h"
#include "base/clock.h"
#include "memory/kv_cache.h"

namespace valora::scheduler {

using RequestId = uint64_t;
using adapters::AdapterId;
inline constexpr AdapterId kBaseModel = -1;

enum class RequestState { kWaiting, kRunning, kFinished };

struct Request : std::enable_shared_from_this<Request> {
  virtual ~Request() = default;

  RequestId id = 0;
  TimePoint arrival{};
  AdapterId adapter =
      kBaseModel;  // groups requests in the batch; the first one where several are summed
  AdapterId merge =
      kBaseModel;    // whose merged weights serve it best; kBaseModel: the base model's own
  int priority = 0;  // lower runs first

  std::vector<int32_t> tokens;  // the prompt, then what was generated
  int prompt_tokens = 0;
  memory::KvIdentity identity;

  // The scheduler's own.
  RequestState state = RequestState::kWaiting;
  int computed_tokens = 0;  // tokens whose KV lies in the block table
  int cached_tokens = 0;    // prompt tokens found in the prefix cache when it first ran
  int preemptions = 0;
  bool scheduled_once = false;
  TimePoint first_scheduled{};
  uint64_t last_plan = 0;  // number of the last plan it was part of
  memory::BlockTable table;
  std::vector<Digest> block_keys;

  int generated_tokens() const { return static_cast<int>(tokens.size()) - prompt_tokens; }
  // Known tokens without KV: one in decode, more in prefill, none between a step and its new token.
  int remaining_tokens() const { return static_cast<int>(tokens.size()) - computed_tokens; }
};

}  // namespace valora::scheduler
