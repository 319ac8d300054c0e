#include "lab/sim/azure_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <optional>
#include <string_view>

#include "base/files/file.h"
#include "base/text/strings.h"

namespace valora::sim {
namespace {

constexpr size_t kMaxBytes = size_t{256} << 20;
constexpr std::string_view kHeader = "TIMESTAMP,ContextTokens,GeneratedTokens";
// A 64-bit Duration in nanoseconds spans 292 years.
constexpr int kFirstYear = 1970, kLastYear = 2261;

// Digits only: from_chars alone would accept a minus sign and ignore trailing text.
template <typename T>
std::optional<T> number(std::string_view text) {
  T value = 0;
  const char* const begin = text.data();
  const char* const end = begin + text.size();
  if (text.empty() || text.front() < '0' || text.front() > '9') return std::nullopt;
  const auto [rest, error] = std::from_chars(begin, end, value);
  if (error != std::errc() || rest != end) return std::nullopt;
  return value;
}

// The nanoseconds in `.9799600`; zero for an empty text.
std::optional<Duration> fraction(std::string_view text) {
  constexpr size_t kDigits = 9;
  if (text.empty()) return Duration{};
  if (text.front() != '.' || text.size() < 2 || text.size() > kDigits + 1) return std::nullopt;
  std::string digits(text.substr(1));
  digits.resize(kDigits, '0');
  const auto value = number<int64_t>(digits);
  if (!value) return std::nullopt;
  return Duration(*value);
}

// Time since 1970, from `2023-11-16 18:17:03.9799600`.
std::optional<Duration> timestamp(std::string_view text) {
  constexpr std::string_view kShape = "dddd-dd-dd dd:dd:dd";
  if (text.size() < kShape.size()) return std::nullopt;
  for (size_t i = 0; i < kShape.size(); ++i) {
    const bool digit = text[i] >= '0' && text[i] <= '9';
    if (kShape[i] == 'd' ? !digit : text[i] != kShape[i]) return std::nullopt;
  }
  const auto part = [&](size_t begin, size_t size) {
    return *number<unsigned>(text.substr(begin, size));
  };
  const std::chrono::year_month_day day{std::chrono::year(static_cast<int>(part(0, 4))),
                                        std::chrono::month(part(5, 2)),
                                        std::chrono::day(part(8, 2))};
  const int year = static_cast<int>(day.year());
  if (!day.ok() || year < kFirstYear || year > kLastYear) return std::nullopt;
  const unsigned hours = part(11, 2), minutes = part(14, 2), seconds = part(17, 2);
  const auto rest = fraction(text.substr(kShape.size()));
  if (hours > 23 || minutes > 59 || seconds > 59 || !rest) return std::nullopt;
  return std::chrono::sys_days(day).time_since_epoch() + std::chrono::hours(hours) +
         std::chrono::minutes(minutes) + std::chrono::seconds(seconds) + *rest;
}

// The row's time still counts from 1970. The error does not yet name the file and line.
Result<TraceRow> parse_row(std::string_view line) {
  if (std::ranges::count(line, ',') != 2)
    return invalid(fmt::format("\"{}\" does not have 3 fields", shortened(line, 80)));
  const size_t first = line.find(','), second = line.rfind(',');
  const auto tokens = [](const char* name, std::string_view text) -> Result<int> {
    const auto value = number<int>(text);
    if (value && *value >= 1) return *value;
    return invalid(fmt::format("{} is \"{}\", which is not a whole number of at least 1", name,
                               shortened(text, 80)));
  };
  const std::string_view time = line.substr(0, first);
  const auto at = timestamp(time);
  if (!at)
    return invalid(
        fmt::format("TIMESTAMP is \"{}\", which is not of the form "
                    "2023-11-16 18:17:03.9799600",
                    shortened(time, 80)));
  VALORA_TRY(prompt, tokens("ContextTokens", line.substr(first + 1, second - first - 1)));
  VALORA_TRY(answer, tokens("GeneratedTokens", line.substr(second + 1)));
  return TraceRow{*at, prompt, answer};
}

// Removes the first line from the text and returns it without its line end.
std::string_view take_line(std::string_view& text) {
  const size_t end = std::min(text.find('\n'), text.size());
  std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

}  // namespace

Result<std::vector<TraceRow>> read_azure_trace(const std::string& path) {
  VALORA_TRY(content, read_file(path, kMaxBytes));
  const auto wrong = [&](size_t line, const std::string& why) {
    return invalid(fmt::format("{}:{}: {}", path, line, why), path);
  };
  std::string_view text = content;
  if (take_line(text) != kHeader) return wrong(1, fmt::format("the header is not {}", kHeader));
  std::vector<TraceRow> rows;
  for (size_t line = 2; !text.empty(); ++line) {
    const auto row = parse_row(take_line(text));
    if (!row) return wrong(line, row.error().message);
    rows.push_back(*row);
  }
  if (rows.empty()) return wrong(2, "there is no row after the header");
  std::ranges::stable_sort(rows, {}, &TraceRow::at);
  const Duration start = rows.front().at;
  for (TraceRow& row : rows) row.at -= start;
  return rows;
}

}  // namespace valora::sim
