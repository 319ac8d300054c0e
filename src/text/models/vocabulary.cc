#include "text/models/vocabulary.h"

#include <algorithm>

#include "text/json_fields.h"
#include "text/models/model.h"

namespace valora::text {
namespace {

Result<int32_t> read_id(const Json& value, std::string_view token, const std::string& where) {
  const int64_t id = value.is_number_integer() ? value.get<int64_t>() : -1;
  if (id < 0 || id > kMaxTokenId)
    return refuse(where, "the id of " + in_quotes(token) + " must be an integer from 0 to " +
                             std::to_string(kMaxTokenId));
  return static_cast<int32_t>(id);
}

}  // namespace

Result<Vocabulary> Vocabulary::read(const Json& json, const std::string& where) {
  if (!json.is_object()) return refuse(where, "must be an object of tokens and ids");
  int32_t max_id = -1;
  for (const auto& [token, value] : json.items()) {
    VALORA_TRY(id, read_id(value, token, where));
    max_id = std::max(max_id, id);
  }
  Vocabulary vocabulary;
  vocabulary.tokens_.resize(max_id + 1);
  vocabulary.present_.resize(max_id + 1);
  vocabulary.ids_.reserve(json.size());
  for (const auto& [token, value] : json.items()) {
    const auto id = value.get<int32_t>();
    if (vocabulary.present_[id])
      return refuse(where, in_quotes(vocabulary.tokens_[id]) + " and " + in_quotes(token) +
                               " both have the id " + std::to_string(id));
    vocabulary.tokens_[id] = token;
    vocabulary.present_[id] = true;
    vocabulary.ids_.emplace(vocabulary.tokens_[id], id);
  }
  return vocabulary;
}

Vocabulary Vocabulary::of(std::vector<std::string> tokens) {
  Vocabulary vocabulary;
  vocabulary.tokens_ = std::move(tokens);
  vocabulary.present_.assign(vocabulary.tokens_.size(), true);
  vocabulary.ids_.reserve(vocabulary.tokens_.size());
  for (size_t id = 0; id < vocabulary.tokens_.size(); ++id)
    vocabulary.ids_.emplace(vocabulary.tokens_[id], static_cast<int32_t>(id));
  return vocabulary;
}

}  // namespace valora::text
