// A sequence as the scheduler sees it. The engine derives from it to add its own state (sampling,
// the client's sink). Used by the engine thread only.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "adapters/adapter_id.h"
#include "base/clock.h"
#include "base/digest.h"
#include "base/position_range.h"
#include "memory/claim.h"
#include "memory/identity.h"

namespace valora::scheduler {

using RequestId = uint64_t;
using adapters::AdapterId;
inline constexpr AdapterId kBaseModel = -1;

// Whose request it is. Tenants that wait are served in proportion to their shares
// (waiting_queue.h).
using TenantId = int32_t;

enum class RequestState { kWaiting, kRunning, kFinished };

// An adapter of a request that changes the decoder.
struct DecoderAdapter {
  AdapterId id = kBaseModel;
  int rank = 0;
  float scale = 1;
};

// How good the guesses of a request's next tokens have been.
struct DraftRecord {
  double right = -1;  // the share of right ones, of late; below 0: none was verified yet
  int unused = 0;     // steps in a row whose guesses were not worth their time
};

struct Request : std::enable_shared_from_this<Request> {
  virtual ~Request() = default;

  RequestId id = 0;
  TimePoint arrival{};
  // Groups requests in the batch. If several adapters are summed, the first one.
  AdapterId adapter = kBaseModel;
  // The adapter that may be merged for this request; kBaseModel: none.
  AdapterId merge = kBaseModel;
  memory::AdapterNeed merge_need;  // of that adapter
  std::vector<DecoderAdapter> decoder_adapters;
  int priority = 0;  // lower runs first
  TenantId tenant = 0;
  double share = 1;  // weight of its tenant; above 0
  // The time within which it must run, from its arrival and from each of its steps (θ of VaLoRA's
  // Algorithm 1). Zero: it has no latency target.
  Duration tolerance{};
  TimePoint deadline{};  // of its first token; the epoch: none

  std::vector<int32_t> tokens;  // the prompt, then the generated tokens
  int prompt_tokens = 0;
  bool scores_prompt = false;  // the probabilities of the prompt's tokens are wanted
  int most_tokens = 0;         // when it ends at the latest; 0: it takes no drafts
  memory::KvIdentity identity;
  // Ascending ranges of the prompt's tokens, of which a step computes all that are left or none:
  // they attend to one another. Must outlive the request.
  std::span<const PositionRange> joint;

  // Written by the scheduler only.
  RequestState state = RequestState::kWaiting;
  int computed_tokens = 0;  // tokens whose KV is in the block table
  int cached_tokens = 0;    // prompt tokens found in the prefix cache when it first ran
  int cached_from = 0;      // tokens found in the prefix cache when it was admitted last
  int preemptions = 0;
  bool scheduled_once = false;
  bool preparing = false;  // admitted, but its next tokens wait for the embeddings of media
  TimePoint first_scheduled{};
  TimePoint last_scheduled{};  // begin of its last step, if any
  Duration passed{};           // time of the steps that the mode left it out of
  int expected_cached = -1;    // prompt tokens in the prefix cache when it came; -1: not looked up
  DraftRecord drafts;
  double service = 0;        // of steps, in seconds, since it was admitted
  double advance = 0;        // what its tenant was charged when it was admitted
  uint64_t last_plan = 0;    // number of the last plan that includes it
  uint64_t last_window = 0;  // number of the last plan that looked at it while it waited
  memory::BlockTable table;
  memory::Claim claim;
  // Time that it waited for its adapters, and for its KV, on their way to the pool.
  Duration adapter_wait{}, kv_wait{};
  memory::Readiness readiness = memory::Readiness::kReady;  // when it last asked for them
  TimePoint asked_at{};
  std::optional<TimePoint> full_since;  // there is no room for its adapters since then
  std::vector<Digest> block_keys;

  int generated_tokens() const { return static_cast<int>(tokens.size()) - prompt_tokens; }
  // Known tokens without KV: one in decode, more in prefill, none between a step and the append of
  // its new token.
  int remaining_tokens() const { return static_cast<int>(tokens.size()) - computed_tokens; }
};

}  // namespace valora::scheduler
