#include "text/normalizers/normalizer.h"

#include <vector>

#include "text/json_fields.h"
#include "text/normalizers/nfc.h"

namespace valora::text {
namespace {

constexpr size_t kMaxParts = 64;

class NormalizerSequence final : public Normalizer {
 public:
  explicit NormalizerSequence(std::vector<std::unique_ptr<const Normalizer>> parts) : parts_(std::move(parts)) {}
  std::string normalize(std::string_view utf8) const override {
    std::string text(utf8);
    for (const auto& part : parts_) text = part->normalize(text);
    return text;
  }

 private:
  std::vector<std::unique_ptr<const Normalizer>> parts_;
};

Result<std::unique_ptr<const Normalizer>> make_sequence(const Json& json, const std::string& where) {
  VALORA_CHECK(check_fields(json, where, {"type", "normalizers"}));
  VALORA_TRY(array, array_field(json, where, "normalizers", kMaxParts));
  std::vector<std::unique_ptr<const Normalizer>> parts;
  for (const Json& element : *array) {
    const std::string part_where = where + ".normalizers[" + std::to_string(parts.size()) + "]";
    if (element.is_null()) return refuse(part_where, "must be an object");
    VALORA_TRY(part, make_normalizer(element, part_where));
    parts.push_back(std::move(part));
  }
  return std::unique_ptr<const Normalizer>(new NormalizerSequence(std::move(parts)));
}

}  // namespace

Result<std::unique_ptr<const Normalizer>> make_normalizer(const Json& json, const std::string& where) {
  if (json.is_null()) return std::unique_ptr<const Normalizer>();
  VALORA_TRY(type, part_type(json, where));
  if (type == "Sequence") return make_sequence(json, where);
  if (type == "NFC") {
    VALORA_CHECK(check_fields(json, where, {"type"}));
    return std::unique_ptr<const Normalizer>(new Nfc);
  }
  return refuse(where, "normalizer " + in_quotes(type) + " is not supported");
}

}  // namespace valora::text
