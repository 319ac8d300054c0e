// Builds the prompts of arrivals as sent to an engine, including the answers it gave earlier.
#pragma once

#include <span>
#include <vector>

#include "lab/live/live_run.h"

namespace valora::bench {

// Prompts must be built in the order of a conversation's turns.
class LivePrompts {
 public:
  LivePrompts(std::span<const sim::Arrival> arrivals, const LiveOptions& options)
      : arrivals_(arrivals), options_(options), histories_(arrivals.size()) {}

  // before: the answer to the previous turn, or null. Returns token ids, or a chat if any turn so
  // far has pictures.
  Prompt make(size_t index, const LiveAnswer* before);

 private:
  // The conversation so far; at most one of the two is filled.
  struct Said {
    std::vector<int32_t> tokens;
    std::vector<ChatMessage> messages;
  };

  ChatMessage question(size_t index, std::span<const int32_t> tokens) const;

  const std::span<const sim::Arrival> arrivals_;
  const LiveOptions& options_;
  std::vector<Said> histories_;
};

}  // namespace valora::bench
