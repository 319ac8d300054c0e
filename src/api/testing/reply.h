// Answers of a FakeEngine, and helpers for writing scripts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/answer.h"
#include "api/request.h"

namespace valora::testing {

// The answer to one request.
struct Reply {
  std::vector<OutputChunk> chunks;  // one per step, sent for each of the n sequences
  std::optional<Classification> classification = {};  // instead of chunks
  std::optional<std::vector<float>> embedding = {};   // instead of chunks
  std::optional<Error> error = {};                    // sent after the chunks, instead of on_done
  std::optional<Error> refusal = {};                  // returned by submit()
  FinalInfo info = {};                                // at the end; completion tokens are counted
  size_t hangs_after = SIZE_MAX;  // chunks before it waits for release_hanging() or cancel()
  bool endless = false;           // repeats the last chunk until cancelled
};

// The whole answer in one chunk, with one token per logprob.
Reply say(std::string text, const std::vector<float>& logprobs = {});
// The text of a prompt: a conversation's last message, or token ids as numbers.
std::string text_of(const Prompt& prompt);
// Splits text into words, each with its leading space.
std::vector<std::string> split_tokens(const std::string& text);
int32_t token_id(const std::string& token);

}  // namespace valora::testing
