#include "cli/options/vllm_flags.h"

#include <fmt/format.h>

#include <cstdlib>
#include <stdexcept>
#include <string_view>

#include "base/text/strings.h"
#include "cli/options/vllm_options.h"

namespace valora::cli {
namespace {

constexpr const char* kGroup = "Accepted for vLLM's command lines";
constexpr const char* kHidden = "";

bool is_listed(std::string_view values, std::string_view value) {
  while (true) {
    const size_t end = values.find('|');
    if (values.substr(0, end) == value) return true;
    if (end == std::string_view::npos) return false;
    values.remove_prefix(end + 1);
  }
}

bool is_number(const std::string& text) {
  char* end = nullptr;
  std::strtod(text.c_str(), &end);
  return !text.empty() && *end == '\0';
}

// Throws if this value ("" for none) is not supported.
void take(const VllmOption& option, const std::string& value, std::vector<std::string>& notes) {
  // A value that does not matter is not printed: it may be a secret.
  const bool plain = value.empty() || (*option.served == '\0' && !option.refused);
  const std::string given =
      plain ? option.name : fmt::format("{} {}", option.name, shortened(value, 60));
  const std::string_view served = option.served;
  if (option.refused || !(served.empty() || is_listed(served, value)))
    throw std::invalid_argument(fmt::format("{} is not served: {}", given, option.note));
  if (option.takes == VllmOption::Takes::kNumber && !is_number(value))
    throw std::invalid_argument(fmt::format("{} takes a number, not {}", option.name, value));
  notes.push_back(fmt::format("{}: {}", given, option.note));
}

// An unsupported flag set to false asks for nothing.
void take_flag(const VllmOption& option, bool on, std::vector<std::string>& notes) {
  if (on) return take(option, "", notes);
  if (!option.refused) notes.push_back(fmt::format("{} false: {}", option.name, option.note));
}

void add(Command command, const VllmOption& option, std::vector<std::string>& notes) {
  const char* const group = option.refused ? kHidden : kGroup;
  switch (option.takes) {
    case VllmOption::Takes::kNothing:
      command
          .add_flag_function(
              option.name, [&option, &notes](bool on) { take_flag(option, on, notes); },
              option.note)
          .group(group);
      return;
    case VllmOption::Takes::kTexts:
      command
          .add_option_function<std::vector<std::string>>(
              option.name,
              [&option, &notes](const std::vector<std::string>& values) {
                take(option, fmt::format("{}", fmt::join(values, " ")), notes);
              },
              option.note)
          .group(group);
      return;
    case VllmOption::Takes::kNumber:
    case VllmOption::Takes::kText:
      command
          .add_option_function<std::string>(
              option.name,
              [&option, &notes](const std::string& value) { take(option, value, notes); },
              option.note)
          .type_name(option.takes == VllmOption::Takes::kNumber ? "NUMBER" : "TEXT")
          .group(group);
  }
}

}  // namespace

void add_vllm_flags(Command command, std::vector<std::string>& notes) {
  for (const VllmOption& option : vllm_options()) add(command, option, notes);
}

}  // namespace valora::cli
