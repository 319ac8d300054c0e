#include "server/openai/logprob_fields.h"

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

}  // namespace valora::server
