#include "yaml/fields.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>
#include <set>

#include <fmt/format.h>

#include "base/text/strings.h"

namespace valora::yaml {
namespace {

constexpr size_t kLongestWord = 64;  // longer words get no suggestion

// The Levenshtein distance.
size_t edits(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t replaced = diagonal + (a[i] != b[j]);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

std::string quoted(const Node& node) {
  switch (node.kind) {
    case Node::Kind::kNull: return "nothing";
    case Node::Kind::kList: return "a list";
    case Node::Kind::kMap: return "a map";
    case Node::Kind::kText: break;
  }
  return "\"" + shortened(node.text, 60) + "\"";
}

// A plain text as a number. Quoted texts are not numbers.
template <typename T>
std::optional<T> parse_number(const Node& node) {
  if (node.kind != Node::Kind::kText || node.quoted) return {};
  T value{};
  const char* const end = node.text.data() + node.text.size();
  const auto [stop, fault] = std::from_chars(node.text.data(), end, value);
  if (fault != std::errc() || stop != end) return {};
  return value;
}

}  // namespace

std::string suggestion(std::string_view word, const std::vector<std::string_view>& known) {
  if (known.empty()) return "";
  const std::string_view start = word.substr(0, kLongestWord);
  const auto nearest = std::min_element(
      known.begin(), known.end(),
      [&](std::string_view a, std::string_view b) { return edits(start, a) < edits(start, b); });
  if (edits(start, *nearest) <= 1 + nearest->size() / 4)
    return fmt::format(", did you mean \"{}\"?", *nearest);
  return fmt::format("; known: {}", fmt::join(known, ", "));
}

Result<Fields> Fields::open(const std::string& file, const Node& node, const std::string& within,
                            std::initializer_list<std::string_view> known) {
  const Fields fields(file, node, within);
  if (node.kind != Node::Kind::kMap) {
    const std::string name =
        within.empty() ? "" : "\"" + within.substr(0, within.size() - 1) + "\": ";
    return invalid(fmt::format("{}:{}: {}expected keys with values ({}), not {}", file, node.line,
                               name, fmt::join(known, ", "), quoted(node)),
                   within);
  }
  for (const Node& child : node.children)
    if (std::find(known.begin(), known.end(), child.key) == known.end())
      return invalid(fmt::format("{}:{}: unknown key \"{}{}\"{}", file, child.key_line, within,
                                 shortened(child.key, 60), suggestion(child.key, known)),
                     within + child.key);
  return fields;
}

const Node* Fields::find(std::string_view key) const {
  for (const Node& child : node_->children)
    if (child.key == key) return &child;
  return nullptr;
}

Error Fields::error(std::string_view key, const std::string& what) const {
  const Node* node = find(key);
  return invalid(
      fmt::format("{}:{}: \"{}\" {}", *file_, node ? node->key_line : node_->line, name(key), what),
      name(key));
}

Result<std::optional<std::string>> Fields::scalar(std::string_view key,
                                                  const std::string& expected) const {
  const Node* node = find(key);
  if (!node) return std::optional<std::string>{};
  if (node->kind != Node::Kind::kText)
    return error(key, "must be " + expected + ", not " + quoted(*node));
  return std::optional(node->text);
}

Result<std::optional<std::string>> Fields::text(std::string_view key) const {
  VALORA_TRY(value, scalar(key, "text"));
  if (value && value->empty()) return error(key, "must not be empty");
  if (value && value->find('\0') != value->npos) return error(key, "has a zero byte in it");
  return value;
}

Result<std::string> Fields::required_text(std::string_view key) const {
  VALORA_TRY(value, text(key));
  if (!value) return error(key, "is missing");
  return std::move(*value);
}

Result<std::optional<bool>> Fields::flag(std::string_view key) const {
  const Node* node = find(key);
  if (!node) return std::optional<bool>{};
  if (node->kind == Node::Kind::kText && !node->quoted) {
    if (node->text == "true") return std::optional(true);
    if (node->text == "false") return std::optional(false);
  }
  return error(key, "must be true or false, not " + quoted(*node));
}

Result<std::optional<double>> Fields::number(std::string_view key, double least,
                                             double most) const {
  const Node* node = find(key);
  if (!node) return std::optional<double>{};
  const auto value = parse_number<double>(*node);
  // Written so that NaN is refused, too.
  if (!value || !(*value >= least && *value <= most))
    return error(key,
                 fmt::format("must be a number from {} to {}, not {}", least, most, quoted(*node)));
  return value;
}

Result<std::optional<int64_t>> Fields::integer(std::string_view key, int64_t least,
                                               int64_t most) const {
  const Node* node = find(key);
  if (!node) return std::optional<int64_t>{};
  const auto value = parse_number<int64_t>(*node);
  if (!value || *value < least || *value > most)
    return error(
        key, fmt::format("must be an integer from {} to {}, not {}", least, most, quoted(*node)));
  return value;
}

Result<std::vector<std::string>> Fields::texts(std::string_view key) const {
  std::vector<std::string> values;
  const Node* node = find(key);
  if (!node) return values;
  if (node->kind != Node::Kind::kList)
    return error(key, "must be a list of texts, not " + quoted(*node));
  if (node->children.empty()) return error(key, "must not be empty");
  std::set<std::string_view> seen;
  for (const Node& child : node->children) {
    if (child.kind != Node::Kind::kText || child.text.empty())
      return invalid(fmt::format("{}:{}: \"{}\" must be a list of texts; one of them is {}", *file_,
                                 child.line, name(key), quoted(child)),
                     name(key));
    if (!seen.insert(child.text).second)
      return invalid(
          fmt::format("{}:{}: \"{}\" has {} twice", *file_, child.line, name(key), quoted(child)),
          name(key));
    values.push_back(child.text);
  }
  return values;
}

Result<std::vector<double>> Fields::numbers(std::string_view key) const {
  std::vector<double> values;
  const Node* node = find(key);
  if (!node) return values;
  if (node->kind != Node::Kind::kList)
    return error(key, "must be a list of numbers, not " + quoted(*node));
  for (const Node& child : node->children) {
    const auto value = parse_number<double>(child);
    if (!value || !std::isfinite(*value))
      return error(key, "must be a list of numbers; one of them is " + quoted(child));
    values.push_back(*value);
  }
  return values;
}

}  // namespace valora::yaml
