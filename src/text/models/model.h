// "model" of tokenizer.json: the vocabulary, and the conversion of text pieces to ids.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json/json.h"
#include "base/result.h"

namespace valora::text {

// Bounds the id table, whose size is the largest id.
inline constexpr int32_t kMaxTokenId = (1 << 22) - 1;

class Model {
 public:
  virtual ~Model() = default;
  // Appends the ids of one piece of valid UTF-8.
  virtual void tokenize(std::string_view piece, std::vector<int32_t>& ids) const = 0;

  virtual int32_t token_count() const = 0;  // excluding added tokens
  virtual int32_t max_id() const = 0;       // −1 if the vocabulary is empty
  virtual std::optional<int32_t> token_to_id(std::string_view token) const = 0;
  virtual const std::string* id_to_token(
      int32_t id) const = 0;  // null if the id is not in the vocabulary
};

Result<std::unique_ptr<const Model>> make_model(const Json& json, const std::string& where);

}  // namespace valora::text
