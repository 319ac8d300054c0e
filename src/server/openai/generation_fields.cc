#include "server/openai/generation_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "server/openai/fields.h"

namespace valora::server {
namespace {

Status parse_prompt_logprobs(const Json& body, const RequestLimits& limits, GenerationBody& out) {
  VALORA_TRY(prompt, integer_in(body, "prompt_logprobs", 0, limits.max_logprobs));
  if (prompt && out.stream)
    return invalid("\"prompt_logprobs\" is not allowed with \"stream\": true", "prompt_logprobs");
  out.prompt_logprobs = prompt.has_value();
  out.sampling.prompt_logprobs = prompt;
  return {};
}

}  // namespace

Status parse_chat_logprobs(const Json& body, const RequestLimits& limits, GenerationBody& out) {
  VALORA_TRY(logprobs, flag(body, "logprobs", false));
  VALORA_TRY(top, integer_in(body, "top_logprobs", 0, limits.max_logprobs));
  if (top.value_or(0) > 0 && !logprobs)
    return invalid("\"top_logprobs\" is only allowed with \"logprobs\": true", "top_logprobs");
  out.logprobs = logprobs;
  if (logprobs) out.sampling.logprobs = top.value_or(0);
  return parse_prompt_logprobs(body, limits, out);
}

Status parse_completion_logprobs(const Json& body, const RequestLimits& limits,
                                 GenerationBody& out) {
  VALORA_TRY(logprobs, integer_in(body, "logprobs", 0, limits.max_logprobs));
  out.logprobs = logprobs.has_value();
  out.sampling.logprobs = logprobs;
  VALORA_CHECK(parse_prompt_logprobs(body, limits, out));
  if (out.echo && logprobs && logprobs > out.sampling.prompt_logprobs.value_or(-1))
    out.sampling.prompt_logprobs = logprobs;
  return {};
}

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
