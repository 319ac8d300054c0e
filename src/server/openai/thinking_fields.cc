#include "server/openai/requests.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "server/openai/fields.h"

namespace valora::server {
namespace {

constexpr const char *kEnable = "enable_thinking", *kEffort = "reasoning_effort";
constexpr std::array<std::string_view, 7> kEfforts = {"none", "minimal", "low", "medium",
                                                      "high", "xhigh",   "max"};

// As in vLLM, an effort is a variable of the template and switches thinking on, or, if it is
// "none", off.
Status read_effort(const Json& body, Json& hints) {
  const Json& effort = member(body, kEffort);
  if (effort.is_null()) return {};
  if (!effort.is_string() ||
      std::ranges::find(kEfforts, effort.get_ref<const std::string&>()) == kEfforts.end())
    return invalid(fmt::format("\"{}\" must be one of {}", kEffort, fmt::join(kEfforts, ", ")),
                   kEffort);
  hints[kEffort] = effort;
  hints[kEnable] = effort != "none";
  return {};
}

Status read_switch(const Json& body, const Json& variables, Json& hints) {
  const Json& enable = member(body, kEnable);
  if (enable.is_null()) return {};
  if (!enable.is_boolean())
    return invalid(fmt::format("\"{}\" must be true or false", kEnable), kEnable);
  if (variables.is_object() && variables.contains(kEnable) && variables.at(kEnable) != enable)
    return invalid(
        fmt::format("\"{0}\" and \"chat_template_kwargs.{0}\" differ; send one", kEnable), kEnable);
  hints[kEnable] = enable;
  return {};
}

}  // namespace

Result<Thinking> parse_thinking(const Json& body, ChatPrompt& prompt) {
  Json hints = Json::object();
  VALORA_CHECK(read_effort(body, hints));
  VALORA_CHECK(read_switch(body, prompt.template_variables, hints));
  prompt.template_hints = std::move(hints);
  Thinking out;
  VALORA_TRY(budget, integer_in(body, "thinking_token_budget", -1, INT32_MAX));
  VALORA_TRY(apart, flag(body, "separate_reasoning", true));
  VALORA_TRY(shown, flag(body, "include_reasoning", true));
  if (budget && *budget >= 0) out.params.budget = budget;
  out.params.apart = apart;
  out.shown = shown;
  return out;
}

}  // namespace valora::server
