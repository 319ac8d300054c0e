#include "text/post_processor.h"

#include "text/json_fields.h"

namespace valora::text {
namespace {

constexpr size_t kMaxPieces = 64;
constexpr size_t kMaxIds = 1024;

// The ids of {"SpecialToken": {"id": name}} in a template.
Result<std::vector<int32_t>> special_ids(const Json& specials, const std::string& name,
                                         const std::string& where, int32_t max_id) {
  const auto special = specials.find(name);
  if (special == specials.end() || !special->is_object())
    return refuse(where, "\"special_tokens\" has no " + in_quotes(name));
  VALORA_TRY(array, array_field(*special, where, "ids", kMaxPieces));
  std::vector<int32_t> ids;
  for (const Json& element : *array) {
    const int64_t id = element.is_number_integer() ? element.get<int64_t>() : -1;
    if (id < 0 || id > max_id)
      return refuse(where, in_quotes(name) + " has an id outside the vocabulary");
    ids.push_back(static_cast<int32_t>(id));
  }
  return ids;
}

Result<PostProcessor> read_template(const Json& json, const std::string& where, int32_t max_id) {
  VALORA_CHECK(check_fields(json, where, {"type", "single", "pair", "special_tokens"}));
  VALORA_TRY(single, array_field(json, where, "single", kMaxPieces));
  const Json specials = json.value("special_tokens", Json::object());
  if (!specials.is_object()) return refuse(where, "\"special_tokens\" must be an object");
  PostProcessor result;
  bool after_sequence = false;
  for (const Json& piece : *single) {
    if (!piece.is_object() || piece.size() != 1)
      return refuse(where, "\"single\" has a malformed piece");
    const std::string kind = piece.begin().key();
    VALORA_TRY(id, field<std::string>(*piece.begin(), where + ".single", "id"));
    if (kind == "Sequence" && id == "A" && !after_sequence) {
      after_sequence = true;
    } else if (kind == "SpecialToken") {
      VALORA_TRY(ids, special_ids(specials, id, where, max_id));
      auto& side = after_sequence ? result.suffix : result.prefix;
      side.insert(side.end(), ids.begin(), ids.end());
    } else {
      return refuse(where, "\"single\" must hold sequence A once and special tokens");
    }
  }
  if (!after_sequence)
    return refuse(where, "\"single\" must hold sequence A once and special tokens");
  return result;
}

// Each processor wraps the result of the preceding ones.
Result<PostProcessor> read_sequence(const Json& json, const std::string& where, int32_t max_id) {
  VALORA_CHECK(check_fields(json, where, {"type", "processors"}));
  VALORA_TRY(array, array_field(json, where, "processors", kMaxPieces));
  PostProcessor result;
  for (size_t i = 0; i < array->size(); ++i) {
    const std::string part_where = where + ".processors[" + std::to_string(i) + "]";
    VALORA_TRY(part, PostProcessor::read((*array)[i], part_where, max_id));
    result.prefix.insert(result.prefix.begin(), part.prefix.begin(), part.prefix.end());
    result.suffix.insert(result.suffix.end(), part.suffix.begin(), part.suffix.end());
    if (result.prefix.size() + result.suffix.size() > kMaxIds)
      return refuse(part_where, "more than " + std::to_string(kMaxIds) + " tokens are added");
  }
  return result;
}

}  // namespace

Result<PostProcessor> PostProcessor::read(const Json& json, const std::string& where,
                                          int32_t max_id) {
  if (json.is_null()) return PostProcessor{};
  VALORA_TRY(type, part_type(json, where));
  if (type == "TemplateProcessing") return read_template(json, where, max_id);
  if (type == "Sequence") return read_sequence(json, where, max_id);
  if (type == "ByteLevel") {  // affects offsets only
    VALORA_CHECK(
        check_fields(json, where, {"type", "add_prefix_space", "trim_offsets", "use_regex"}));
    return PostProcessor{};
  }
  return refuse(where, "post-processor " + in_quotes(type) + " is not supported");
}

}  // namespace valora::text
