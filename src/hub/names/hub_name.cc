#include "hub/names/hub_name.h"

#include <algorithm>

#include "base/text/visible_text.h"

namespace valora::hub {
namespace {

constexpr size_t kMostIdBytes = 96;  // of owner and name, as the hub limits them
constexpr size_t kMostPathBytes = 255;

bool is_letter_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

// The hub's rules for owners and names: no dashes or dots at the ends, none of them doubled.
bool is_part_of_id(std::string_view text) {
  const auto plain = [](char c) {
    return is_letter_or_digit(c) || c == '-' || c == '_' || c == '.';
  };
  const auto at_end = [](char c) { return c != '-' && c != '.'; };
  return !text.empty() && std::ranges::all_of(text, plain) && at_end(text.front()) &&
         at_end(text.back()) && text.find("--") == std::string_view::npos &&
         text.find("..") == std::string_view::npos;
}

bool is_hex(std::string_view text, size_t digits) {
  return text.size() == digits && std::ranges::all_of(text, [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

}  // namespace

std::string HubName::text() const {
  return id() + (file.empty() ? "" : "/" + file) + (revision.empty() ? "" : "@" + revision);
}

bool is_commit(std::string_view text) { return is_hex(text, 40); }

bool is_digest(std::string_view text) { return is_hex(text, 40) || is_hex(text, 64); }

bool is_file_name(std::string_view text) {
  return !text.empty() && text.size() <= kMostPathBytes && text != "." && text != ".." &&
         text.find('/') == std::string_view::npos && text.find('\\') == std::string_view::npos &&
         !has_hidden_characters(text);
}

bool is_module_file(std::string_view text) {
  const size_t slash = std::min(text.find('/'), text.size());
  const std::string_view folder = text.substr(0, slash),
                         file = text.substr(std::min(slash + 1, text.size()));
  if (!is_file_name(folder) || !is_file_name(file)) return false;
  if (folder == "additional_chat_templates") return file.ends_with(".jinja");
  return folder.front() >= '0' && folder.front() <= '9' && file == "config.json";
}

bool is_revision(std::string_view text) {
  if (text.empty() || text.size() > kMostPathBytes || text.back() == '/') return false;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('/', begin), text.size());
    const std::string_view part = text.substr(begin, end - begin);
    const auto plain = [](char c) {
      return is_letter_or_digit(c) || c == '-' || c == '_' || c == '.' || c == '+';
    };
    if (part.empty() || part.front() == '.' || part.find("..") != std::string_view::npos ||
        !std::ranges::all_of(part, plain))
      return false;
    begin = end + 1;
  }
  return true;
}

std::optional<HubName> parse_hub_name(std::string_view text) {
  HubName name;
  if (const size_t at = text.find('@'); at != std::string_view::npos) {
    name.revision = text.substr(at + 1);
    if (!is_revision(name.revision)) return {};
    text = text.substr(0, at);
  }
  const size_t slash = text.find('/');
  if (slash == std::string_view::npos) return {};
  name.owner = text.substr(0, slash);
  text.remove_prefix(slash + 1);
  if (const size_t next = text.find('/'); next != std::string_view::npos) {
    name.file = text.substr(next + 1);
    if (!name.file.ends_with(".gguf") || !is_file_name(name.file)) return {};
    text = text.substr(0, next);
  }
  name.name = text;
  if (!is_part_of_id(name.owner) || !is_part_of_id(name.name) || name.name.ends_with(".git") ||
      name.id().size() > kMostIdBytes)
    return {};
  return name;
}

}  // namespace valora::hub
