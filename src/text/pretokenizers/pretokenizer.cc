#include "text/pretokenizers/pretokenizer.h"

#include "text/json_fields.h"
#include "text/pretokenizers/byte_level.h"
#include "text/pretokenizers/digits.h"
#include "text/pretokenizers/split.h"

namespace valora::text {
namespace {

constexpr size_t kMaxParts = 64;

class PreTokenizerSequence final : public PreTokenizer {
 public:
  explicit PreTokenizerSequence(std::vector<std::unique_ptr<const PreTokenizer>> parts) : parts_(std::move(parts)) {}
  void apply(Pieces& pieces) const override {
    for (const auto& part : parts_) part->apply(pieces);
  }

 private:
  std::vector<std::unique_ptr<const PreTokenizer>> parts_;
};

Result<std::unique_ptr<const PreTokenizer>> make_sequence(const Json& json, const std::string& where) {
  VALORA_CHECK(check_fields(json, where, {"type", "pretokenizers"}));
  VALORA_TRY(array, array_field(json, where, "pretokenizers", kMaxParts));
  std::vector<std::unique_ptr<const PreTokenizer>> parts;
  for (const Json& element : *array) {
    const std::string part_where = where + ".pretokenizers[" + std::to_string(parts.size()) + "]";
    if (element.is_null()) return refuse(part_where, "must be an object");
    VALORA_TRY(part, make_pretokenizer(element, part_where));
    parts.push_back(std::move(part));
  }
  return std::unique_ptr<const PreTokenizer>(new PreTokenizerSequence(std::move(parts)));
}

}  // namespace

Result<std::unique_ptr<const PreTokenizer>> make_pretokenizer(const Json& json, const std::string& where) {
  if (json.is_null()) return std::unique_ptr<const PreTokenizer>();
  VALORA_TRY(type, part_type(json, where));
  if (type == "Sequence") return make_sequence(json, where);
  if (type == "Split") return make_split(json, where);
  if (type == "ByteLevel") return make_byte_level_pretokenizer(json, where);
  if (type == "Digits") return make_digits(json, where);
  return refuse(where, "pre-tokenizer " + in_quotes(type) + " is not supported");
}

}  // namespace valora::text
