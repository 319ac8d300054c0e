// The prompts of arrivals, as an engine gets them: with the answers that it gave before.
#pragma once

#include <span>
#include <vector>

#include "bench/live/live_run.h"

namespace valora::bench {

// Prompts are made in the order in which turns follow each other.
class LivePrompts {
 public:
  LivePrompts(std::span<const sim::Arrival> arrivals, const LiveOptions& options)
      : arrivals_(arrivals), options_(options), said_(arrivals.size()) {}

  // before: the answer to the turn before, if there is one. Token ids, or a chat if a turn so far
  // has pictures.
  Prompt make(size_t index, const LiveAnswer* before);

 private:
  // What a conversation has said so far, the one or the other.
  struct Said {
    std::vector<int32_t> tokens;
    std::vector<ChatMessage> messages;
  };

  ChatMessage question(size_t index, std::span<const int32_t> tokens) const;

  const std::span<const sim::Arrival> arrivals_;
  const LiveOptions& options_;
  std::vector<Said> said_;
};

}  // namespace valora::bench
