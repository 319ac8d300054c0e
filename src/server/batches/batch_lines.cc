#include "server/batches/batch_lines.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <unordered_set>
#include <utility>

#include "base/json/json.h"
#include "base/text/strings.h"
#include "server/openai/json_text.h"

namespace valora::server {
namespace {

constexpr std::array<std::string_view, 4> kBatchEndpoints = {
    "/v1/chat/completions", "/v1/completions", "/v1/embeddings", "/v1/responses"};

// The end of the string that begins at `at`, in JSON that is known to be valid.
size_t end_of_string(std::string_view text, size_t at) {
  for (++at; text[at] != '"'; ++at)
    if (text[at] == '\\') ++at;
  return at + 1;
}

// The text of an object's member, of the last if there are several; nullopt if its key is not
// spelt as it is. `text` is a valid JSON object.
std::optional<std::string_view> member_text(std::string_view text, std::string_view key) {
  std::optional<std::string_view> found;
  std::string_view name;
  size_t value = 0;
  const auto end_member = [&](size_t end) {
    if (value == 0 || name != key) return;
    std::string_view member = text.substr(value, end - value);
    while (!member.empty() && static_cast<unsigned char>(member.back()) <= ' ')
      member.remove_suffix(1);
    while (!member.empty() && static_cast<unsigned char>(member.front()) <= ' ')
      member.remove_prefix(1);
    found = member;
  };
  int depth = 0;
  for (size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (c == '"') {
      const size_t end = end_of_string(text, at);
      if (depth == 1 && value == 0) name = text.substr(at + 1, end - at - 2);
      at = end;
      continue;
    }
    if (c == '{' || c == '[') ++depth;
    if (depth == 1 && c == ':' && value == 0) value = at + 1;
    if ((c == ',' && depth == 1) || (c == '}' && depth == 1)) {
      end_member(at);
      value = 0;
    }
    if (c == '}' || c == ']') --depth;
    ++at;
  }
  return found;
}

LineFault missing(std::string key) {
  std::string message = fmt::format("the line lacks \"{}\"", key);
  return {"missing_required_parameter", std::move(message), std::move(key)};
}

LineFault wrong(std::string code, std::string key, std::string message) {
  return {std::move(code), std::move(message), std::move(key)};
}

std::optional<LineFault> fault_of_url(const std::string& url, std::string_view endpoint) {
  if (!endpoint.empty() && url != endpoint)
    return wrong(
        "invalid_url", "url",
        fmt::format("\"url\" is {}, but the batch's endpoint is {}", shortened(url, 60), endpoint));
  if (!is_batch_endpoint(url))
    return wrong("invalid_url", "url",
                 fmt::format("\"url\" is {}; batches may ask {}", shortened(url, 60),
                             fmt::join(kBatchEndpoints, ", ")));
  return std::nullopt;
}

// A text of this key; the fault if there is none.
std::variant<std::string, LineFault> text_of_key(const Json& line, const char* key) {
  const auto found = line.find(key);
  if (found == line.end() || found->is_null()) return missing(key);
  if (!found->is_string())
    return wrong("invalid_type", key, fmt::format("\"{}\" must be a string", key));
  return found->get<std::string>();
}

}  // namespace

std::span<const std::string_view> batch_endpoints() { return kBatchEndpoints; }

bool is_batch_endpoint(std::string_view url) {
  return std::ranges::find(kBatchEndpoints, url) != kBatchEndpoints.end();
}

std::variant<BatchLine, LineFault> parse_batch_line(std::string_view text,
                                                    std::string_view endpoint) {
  const auto line =
      parse_json(text, "the line",
                 {.max_bytes = kMostBatchLineBytes, .max_depth = JsonLimits().max_depth + 1});
  if (!line.ok()) return LineFault{"invalid_json_line", line.error().message, ""};
  if (!line->is_object())
    return LineFault{"invalid_json_line", "the line must be a JSON object", ""};
  std::array<std::string, 3> texts;
  for (size_t i = 0; const char* key : {"custom_id", "method", "url"}) {
    auto value = text_of_key(*line, key);
    if (auto* fault = std::get_if<LineFault>(&value)) return std::move(*fault);
    texts[i++] = std::get<std::string>(std::move(value));
  }
  auto& [custom_id, method, url] = texts;
  if (custom_id.empty() || custom_id.size() > kMostCustomIdBytes)
    return wrong("invalid_custom_id", "custom_id",
                 fmt::format("\"custom_id\" must have 1 to {} bytes", kMostCustomIdBytes));
  if (method != "POST") return wrong("invalid_method", "method", "\"method\" must be POST");
  if (auto fault = fault_of_url(url, endpoint)) return std::move(*fault);
  const auto body = line->find("body");
  if (body == line->end()) return missing("body");
  if (!body->is_object()) return wrong("invalid_type", "body", "\"body\" must be an object");
  if (const auto stream = body->find("stream");
      stream != body->end() && stream->is_boolean() && stream->get<bool>())
    return wrong("invalid_request", "body.stream",
                 "\"stream\" must not be true: rows are answered whole");
  const auto written = member_text(text, "body");
  return BatchLine{std::move(custom_id), std::move(url),
                   written ? std::string(*written) : body->dump()};
}

Status each_line(const InputFile& file, size_t max_bytes,
                 const std::function<Status(std::string_view, LinePlace, size_t)>& take) {
  constexpr size_t kReadBytes = size_t{1} << 20;
  std::string held;
  uint64_t at = 0, begin = 0;
  size_t number = 0;
  const auto give = [&](std::string_view line) -> Status {
    ++number;
    std::string_view kept = line;
    if (kept.ends_with('\r')) kept.remove_suffix(1);
    if (kept.find_first_not_of(" \t") == kept.npos) return {};
    return take(kept, {begin, static_cast<uint32_t>(kept.size())}, number);
  };
  for (bool more = true; more;) {
    const size_t had = held.size();
    held.resize(had + kReadBytes);
    VALORA_TRY(got, file.read(at, std::span(held).subspan(had)));
    held.resize(had + got);
    at += got;
    more = got > 0;
    size_t used = 0;
    for (size_t end; (end = held.find('\n', used)) != held.npos; used = end + 1) {
      VALORA_CHECK(give(std::string_view(held).substr(used, end - used)));
      begin += end + 1 - used;
    }
    held.erase(0, used);
    if (held.size() > max_bytes)
      return Error{ErrorCode::kPayloadTooLarge,
                   fmt::format("line {} is longer than {} bytes", number + 1, max_bytes),
                   {}};
  }
  return held.empty() ? Status() : give(held);
}

Result<std::string> line_at(const InputFile& file, LinePlace place) {
  std::string line(place.bytes, '\0');
  VALORA_TRY(got, file.read(place.begin, line));
  if (got != line.size()) return invalid(file.path() + " became shorter", file.path());
  return line;
}

Result<BatchInput> read_batch_input(const InputFile& file, std::string_view endpoint,
                                    size_t most_rows,
                                    const std::function<bool(const std::string&)>& is_done) {
  BatchInput input;
  std::unordered_set<std::string> ids;
  const auto add = [&](LineFault fault, size_t number) {
    fault.line = number;
    if (input.faults.size() < kMostLineFaults) input.faults.push_back(std::move(fault));
  };
  const Status read = each_line(
      file, kMostBatchLineBytes,
      [&](std::string_view text, LinePlace place, size_t number) -> Status {
        if (++input.total > most_rows) return {};
        auto line = parse_batch_line(text, endpoint);
        if (auto* fault = std::get_if<LineFault>(&line)) {
          add(std::move(*fault), number);
          return {};
        }
        std::string& id = std::get<BatchLine>(line).custom_id;
        const bool done = is_done(id);
        if (!ids.insert(std::move(id)).second)
          add({"duplicate_custom_id", "\"custom_id\" is that of an earlier line", "custom_id"},
              number);
        else if (!done)
          input.rows.push_back(place);
        return {};
      });
  if (!read.ok() && read.error().code != ErrorCode::kPayloadTooLarge) return read.error();
  if (!read.ok()) add({"line_too_long", read.error().message, ""}, 0);
  if (input.total > most_rows)
    add({"too_many_requests",
         fmt::format("the input has {} rows, and a batch may have {}", input.total, most_rows), ""},
        0);
  if (input.total == 0) add({"empty_file", "the input has no rows", ""}, 0);
  return input;
}

}  // namespace valora::server
