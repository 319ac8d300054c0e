#include "server/openai/copies.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace valora::server {
namespace {

constexpr size_t kMaxCopiedBytes = size_t{64} << 20;

struct Copied {
  std::string field;
  size_t bytes;
};

size_t text_bytes(const std::vector<std::string>& texts) {
  size_t bytes = texts.size() * sizeof(std::string);
  for (const std::string& text : texts) bytes += text.size();
  return bytes;
}

Copied form_of(const GenerationBody& body) {
  if (!body.constraint) return {"prompt", 0};
  const AnswerConstraint& form = *body.constraint;
  return {form.param, form.text.size() + form.fallback.size() + text_bytes(form.choices)};
}

}  // namespace

Status check_copies(const GenerationBody& body) {
  const SamplingParams& sampling = body.sampling;
  const std::array parts{
      form_of(body),
      Copied{"allowed_token_ids", sampling.allowed_token_ids.size() * sizeof(int32_t)},
      Copied{"bad_words", text_bytes(sampling.bad_words)},
      Copied{"stop", text_bytes(sampling.stop)},
  };
  size_t bytes = 0;
  for (const Copied& part : parts) bytes += part.bytes;
  if (body.prompts.size() <= 1 || bytes <= kMaxCopiedBytes / body.prompts.size()) return {};
  const Copied& largest = *std::ranges::max_element(parts, {}, &Copied::bytes);
  return invalid(fmt::format("\"{}\" is too large for {} prompts, each of which gets a copy; send "
                             "fewer prompts per request",
                             largest.field, body.prompts.size()),
                 largest.field);
}

}  // namespace valora::server
