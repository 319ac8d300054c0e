// The answers of a FakeEngine, and what its scripts read of a prompt.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/answer.h"
#include "api/request.h"

namespace valora::testing {

// What one request is answered with.
struct Reply {
  std::vector<OutputChunk> chunks;  // one per step, each said for every one of the n sequences
  std::optional<Classification> classification = {};  // instead of chunks
  std::optional<Error> error = {};                    // after the chunks, instead of an end
  std::optional<Error> refusal = {};                  // of submit(), instead of everything
  FinalInfo info = {};                                // at the end; completion tokens are counted
  size_t hangs_after = SIZE_MAX;  // chunks: then it waits for release_hanging() or cancel()
  bool endless = false;           // the last chunk again and again, until cancelled
};

// The whole answer in one chunk, with a token for each of the logprobs.
Reply say(std::string text, const std::vector<float>& logprobs = {});
// The text of a prompt: of a conversation that of the last message, of token ids their numbers.
std::string text_of(const Prompt& prompt);
// Words, each with the space before it.
std::vector<std::string> split_tokens(const std::string& text);
int32_t token_id(const std::string& token);

}  // namespace valora::testing
