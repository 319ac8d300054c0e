// Reads a normalizer, pre-tokenizer or decoder: a single part or a "Sequence" of parts. Nested
// Sequences are flattened.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "text/json_fields.h"

namespace valora::text {

// Part has max_growth(), the largest factor by which its text can grow.
template <typename Part>
class RowReader {
 public:
  using PartPtr = std::unique_ptr<const Part>;
  using Make = std::function<Result<PartPtr>(const Json& json, const std::string& type,
                                             const std::string& where)>;

  // key: the field of a Sequence that contains the parts.
  RowReader(std::string key, size_t max_growth, Make make)
      : key_(std::move(key)), max_growth_(max_growth), make_(std::move(make)) {}

  Result<std::vector<PartPtr>> read(const Json& json, const std::string& where) {
    VALORA_CHECK(read_any(json, where));
    return std::move(parts_);
  }

 private:
  static constexpr size_t kMaxParts = 64;

  Status read_any(const Json& json, const std::string& where) {
    VALORA_TRY(type, part_type(json, where));
    return type == "Sequence" ? read_sequence(json, where) : read_part(json, type, where);
  }

  Status read_sequence(const Json& json, const std::string& where) {
    VALORA_CHECK(check_fields(json, where, {"type", key_}));
    VALORA_TRY(array, array_field(json, where, key_, kMaxParts));
    for (size_t i = 0; i < array->size(); ++i)
      VALORA_CHECK(read_any((*array)[i], where + "." + key_ + "[" + std::to_string(i) + "]"));
    return {};
  }

  Status read_part(const Json& json, const std::string& type, const std::string& where) {
    if (parts_.size() == kMaxParts)
      return refuse(where, "there are more than " + std::to_string(kMaxParts) + " parts");
    VALORA_TRY(part, make_(json, type, where));
    growth_ *= part->max_growth();
    if (growth_ > max_growth_)
      return refuse(
          where, "texts could become more than " + std::to_string(max_growth_) + " times longer");
    parts_.push_back(std::move(part));
    return {};
  }

  std::string key_;
  size_t max_growth_;
  Make make_;
  std::vector<PartPtr> parts_;
  size_t growth_ = 1;
};

}  // namespace valora::text
