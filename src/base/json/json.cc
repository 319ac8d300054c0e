#include "base/json/json.h"

#include <cmath>
#include <limits>

#include "base/files/file.h"
#include "base/files/lfs_pointer.h"
#include "base/json/json_tree.h"
#include "base/text/strings.h"

namespace valora {
namespace {

std::string reason_in(std::string_view reason) {
  if (const size_t end = reason.find("] "); reason.starts_with("[json.") && end != reason.npos)
    reason.remove_prefix(end + 2);
  return shortened(reason.substr(0, reason.find("; last read")));
}

Error not_json(const std::string& what, std::string_view reason) {
  return invalid(what + " is not valid JSON: " + reason_in(reason));
}

// Counts in the text, so that hostile input is refused before a tree is built.
Status check_size(std::string_view text, const std::string& what, const JsonLimits& limits) {
  int depth = 0;
  size_t values = 1;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\')
        ++i;
      else if (c == '"')
        in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      ++values;
      if (++depth > limits.max_depth)
        return invalid(what + " nests deeper than " + std::to_string(limits.max_depth) + " levels");
    } else if (c == '}' || c == ']') {
      --depth;
    } else if (c == ',') {
      ++values;
    }
  }
  if (values > limits.max_values)
    return invalid(what + " has more than " + std::to_string(limits.max_values) + " values");
  return {};
}

// As parse_json(), without limits.
Result<Json> parse_unique(std::string_view text, const std::string& what) {
  JsonTree<Json> tree;
  if (!Json::sax_parse(text, &tree)) return not_json(what, tree.error());
  if (tree.duplicate())
    return invalid(what + " has the key \"" + shortened(*tree.duplicate()) + "\" twice");
  return tree.take();
}

Error wrong_type(std::string_view key, std::string_view expected) {
  return invalid("\"" + std::string(key) + "\" must be " + std::string(expected), std::string(key));
}

template <typename T>
Result<T> convert(const Json& value, std::string_view key) {
  if constexpr (std::is_same_v<T, bool>) {
    if (!value.is_boolean()) return wrong_type(key, "true or false");
    return value.get<bool>();
  } else if constexpr (std::is_same_v<T, std::string>) {
    if (!value.is_string()) return wrong_type(key, "a string");
    return value.get<std::string>();
  } else if constexpr (std::is_same_v<T, double>) {
    if (!value.is_number()) return wrong_type(key, "a number");
    return value.get<double>();
  } else {
    if (value.is_number_float()) {
      const double d = value.get<double>();
      // Above 2^53 a double no longer identifies one integer.
      if (d != std::floor(d) || std::abs(d) > 9007199254740992.0)
        return wrong_type(key, "an integer");
      if (d < double(std::numeric_limits<T>::min()) || d > double(std::numeric_limits<T>::max()))
        return wrong_type(key, "an integer in range");
      return static_cast<T>(d);
    }
    if (value.is_number_unsigned()) {
      if (value.get<uint64_t>() > uint64_t(std::numeric_limits<T>::max()))
        return wrong_type(key, "an integer in range");
      return static_cast<T>(value.get<uint64_t>());
    }
    if (!value.is_number_integer()) return wrong_type(key, "an integer");
    const int64_t i = value.get<int64_t>();
    if (i < std::numeric_limits<T>::min() || i > std::numeric_limits<T>::max())
      return wrong_type(key, "an integer in range");
    return static_cast<T>(i);
  }
}

}  // namespace

std::string reason_of(const Json::exception& e) { return reason_in(e.what()); }

std::optional<int64_t> as_integer(const Json& value) {
  const bool fits =
      value.is_number_unsigned() ? value.get<uint64_t>() <= INT64_MAX : value.is_number_integer();
  return fits ? std::optional(value.get<int64_t>()) : std::nullopt;
}

Result<Json> parse_json(std::string_view text, std::string_view what, JsonLimits limits) {
  if (text.size() > limits.max_bytes)
    return Error{
        ErrorCode::kPayloadTooLarge,
        std::string(what) + " is larger than " + std::to_string(limits.max_bytes) + " bytes",
        {}};
  VALORA_CHECK(check_size(text, std::string(what), limits));
  if (limits.unique_keys) return parse_unique(text, std::string(what));
  try {
    return Json::parse(text);
  } catch (const Json::exception& e) {
    return not_json(std::string(what), e.what());
  }
}

Result<Json> read_json_file(const std::string& path, JsonLimits limits) {
  VALORA_TRY(text, read_file(path, limits.max_bytes));
  if (is_lfs_pointer(text)) return lfs_pointer(path);
  return parse_json(text, path, limits);
}

template <typename T>
Result<std::optional<T>> optional_field(const Json& object, std::string_view key) {
  if (!object.is_object()) return invalid("expected an object with \"" + std::string(key) + "\"");
  const auto it = object.find(std::string(key));
  if (it == object.end() || it->is_null()) return std::optional<T>{};
  VALORA_TRY(value, convert<T>(*it, key));
  return std::optional<T>{std::move(value)};
}

template Result<std::optional<bool>> optional_field(const Json&, std::string_view);
template Result<std::optional<int32_t>> optional_field(const Json&, std::string_view);
template Result<std::optional<int64_t>> optional_field(const Json&, std::string_view);
template Result<std::optional<double>> optional_field(const Json&, std::string_view);
template Result<std::optional<std::string>> optional_field(const Json&, std::string_view);

}  // namespace valora
