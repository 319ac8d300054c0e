#include "server/uploads/multipart.h"

#include <cstring>
#include <optional>

#include "server/http/http.h"

namespace valora::server {
namespace {

constexpr std::string_view kLine = "\r\n";

// Faster than find() on data without repeating patterns.
size_t find_bytes(std::string_view text, std::string_view sought) {
  const void* at = memmem(text.data(), text.size(), sought.data(), sought.size());
  return at == nullptr ? text.npos
                       : static_cast<size_t>(static_cast<const char*>(at) - text.data());
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// Removes a token, or a quoted string with backslash escapes, from the front of `text`.
std::string take_value(std::string_view& text) {
  std::string value;
  if (!text.starts_with('"')) {
    const size_t end = std::min(text.find_first_of("; \t"), text.size());
    value = text.substr(0, end);
    text.remove_prefix(end);
    return value;
  }
  for (text.remove_prefix(1); !text.empty() && text.front() != '"'; text.remove_prefix(1)) {
    if (text.starts_with("\\\"") || text.starts_with("\\\\")) text.remove_prefix(1);
    value += text.front();
  }
  if (!text.empty()) text.remove_prefix(1);
  return value;
}

// The type in "type; a=b; c=\"d\"", and the value of one parameter.
struct HeaderValue {
  std::string_view type;
  std::optional<std::string> parameter;
};

HeaderValue read_value(std::string_view text, std::string_view parameter) {
  const size_t end = std::min(text.find(';'), text.size());
  HeaderValue out{trimmed(text.substr(0, end)), {}};
  text.remove_prefix(end);
  while (text.starts_with(';')) {
    text = trimmed(text.substr(1));
    const size_t equals = std::min(text.find_first_of("=;"), text.size());
    const std::string_view name = trimmed(text.substr(0, equals));
    text.remove_prefix(equals);
    std::string value;
    if (text.starts_with('=')) {
      text = trimmed(text.substr(1));
      value = take_value(text);
    }
    if (same_header_name(name, parameter) && !out.parameter) out.parameter = std::move(value);
    text = text.substr(std::min(text.find(';'), text.size()));
  }
  return out;
}

// A parameter of Content-Disposition.
std::optional<std::string> disposition(std::string_view headers, std::string_view parameter) {
  while (!headers.empty()) {
    const size_t end = std::min(headers.find(kLine), headers.size());
    const std::string_view line = headers.substr(0, end);
    headers.remove_prefix(std::min(end + kLine.size(), headers.size()));
    const size_t colon = line.find(':');
    if (colon == line.npos || !same_header_name(line.substr(0, colon), "content-disposition"))
      continue;
    HeaderValue value = read_value(line.substr(colon + 1), parameter);
    if (same_header_name(value.type, "form-data")) return value.parameter;
  }
  return std::nullopt;
}

Error cut_off() { return invalid("the form ends before its last boundary"); }

}  // namespace

std::string boundary_of(std::string_view content_type) {
  HeaderValue value = read_value(content_type, "boundary");
  if (!same_header_name(value.type, "multipart/form-data")) return {};
  std::string boundary = std::move(value.parameter).value_or("");
  const bool fits = boundary.size() <= 70 && boundary.find_first_of("\r\n") == boundary.npos;
  return fits ? boundary : std::string();
}

Result<std::vector<FormPart>> parse_form(std::string_view body, std::string_view boundary) {
  const std::string between = "\r\n--" + std::string(boundary);
  const std::string_view first = std::string_view(between).substr(kLine.size());
  if (!body.starts_with(first)) return invalid("the form does not begin with its boundary");
  body.remove_prefix(first.size());
  std::vector<FormPart> parts;
  while (!body.starts_with("--")) {
    if (!body.starts_with(kLine)) return cut_off();
    if (parts.size() == kMostFormParts)
      return invalid("the form has more than " + std::to_string(kMostFormParts) + " parts");
    body.remove_prefix(kLine.size());
    const size_t headers = body.substr(0, kMostPartHeaderBytes).find("\r\n\r\n");
    if (headers == body.npos)
      return invalid("the headers of a part of the form do not end within " +
                     std::to_string(kMostPartHeaderBytes) + " bytes");
    auto name = disposition(body.substr(0, headers), "name");
    auto filename = disposition(body.substr(0, headers), "filename");
    if (!name || name->empty()) return invalid("a part of the form has no name");
    body.remove_prefix(headers + 2 * kLine.size());
    const size_t end = find_bytes(body, between);
    if (end == body.npos) return cut_off();
    parts.push_back({std::move(*name), body.substr(0, end), std::move(filename).value_or("")});
    body.remove_prefix(end + between.size());
  }
  return parts;
}

}  // namespace valora::server
