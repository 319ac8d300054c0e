// The scheduler's view of a sequence. The engine derives from it to add its own state (sampling,
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
#include "scheduler/ngram_index.h"

namespace valora::scheduler {

using RequestId = uint64_t;
using adapters::AdapterId;
inline constexpr AdapterId kBaseModel = -1;

// The user that a request belongs to. Waiting tenants are served in proportion to their shares
// (waiting_queue.h).
using TenantId = int32_t;

enum class RequestState { kWaiting, kRunning, kFinished };

// One of a request's adapters that change the decoder.
struct DecoderAdapter {
  AdapterId id = kBaseModel;
  int rank = 0;
  float scale = 1;
};

// How accurate the guesses of a request's next tokens have been.
struct DraftRecord {
  double right = -1;  // recent share of correct guesses; below 0: none verified yet
  int unused = 0;     // consecutive steps in which guessing was not worthwhile
};

struct Request : std::enable_shared_from_this<Request> {
  virtual ~Request() = default;

  RequestId id = 0;
  TimePoint arrival{};
  // Groups requests within the batch. With several adapters, the first one.
  AdapterId adapter = kBaseModel;
  // The adapter that may be merged for this request; kBaseModel: none.
  AdapterId merge = kBaseModel;
  // False: `merge` may be merged only in steps of requests that merge it.
  bool merges_among_others = true;
  memory::AdapterNeed merge_need;  // need of the adapter `merge`
  std::vector<DecoderAdapter> decoder_adapters;
  int priority = 0;  // lower runs first
  TenantId tenant = 0;
  double share = 1;  // weight of its tenant; above 0
  // Latency target: the time within which it must run, counted from its arrival and from each of
  // its steps (θ in VaLoRA's Algorithm 1). Zero: none.
  Duration tolerance{};
  TimePoint deadline{};  // for its first token; the epoch: none

  std::vector<int32_t> tokens;  // the prompt, then the generated tokens
  int prompt_tokens = 0;
  bool scores_prompt = false;  // the probabilities of the prompt's tokens are requested
  int most_tokens = 0;         // maximum final length; 0: takes no drafts
  memory::KvIdentity identity;
  // Ascending ranges of prompt tokens that attend to each other, so a step computes either all
  // remaining tokens of a range or none. Must outlive the request.
  std::span<const PositionRange> joint;

  // The fields below are written by the scheduler only.
  RequestState state = RequestState::kWaiting;
  int computed_tokens = 0;  // tokens whose KV is in the block table
  int cached_tokens = 0;    // prompt tokens found in the prefix cache at its first admission
  int cached_from = 0;      // tokens found in the prefix cache at its last admission
  int preemptions = 0;
  bool scheduled_once = false;
  bool follows = false;    // waits for the prefix that another request computes
  bool preparing = false;  // admitted, but its next tokens wait for the embeddings of media
  TimePoint first_scheduled{};
  TimePoint last_scheduled{};  // start of its last step, if any
  // It last ran, its media were encoded, or, before that, it could first run. However long it
  // waited for its turn, others may wait for its prefix from then on.
  TimePoint advanced{};
  Duration passed{};         // total time of the steps that the mode left it out of
  int expected_cached = -1;  // prompt tokens in the prefix cache on arrival; -1: not looked up
  DraftRecord drafts;
  NgramIndex ngrams;         // its proposer's
  double service = 0;        // seconds of steps since it was admitted
  double advance = 0;        // charge to its tenant when it was admitted
  uint64_t last_plan = 0;    // number of the last plan that includes it
  uint64_t last_window = 0;  // number of the last plan that considered it while waiting
  memory::BlockTable table;
  memory::Claim claim;
  // Time it spent waiting for its adapters and for its KV to reach the pool.
  Duration adapter_wait{}, kv_wait{};
  memory::Readiness readiness = memory::Readiness::kReady;  // result of its last claim
  TimePoint asked_at{};
  std::optional<TimePoint> full_since;  // since when there has been no room for its adapters
  std::vector<Digest> block_keys;

  int generated_tokens() const { return static_cast<int>(tokens.size()) - prompt_tokens; }
  // Known tokens without KV: one in decode, more in prefill, none between a step and the append of
  // its new token.
  int remaining_tokens() const { return static_cast<int>(tokens.size()) - computed_tokens; }
};

}  // namespace valora::scheduler
