#include "text/normalizers/prepend.h"

#include "text/json_fields.h"

namespace valora::text {
namespace {

constexpr size_t kMaxBytes = 1024;

class Prepend final : public Normalizer {
 public:
  explicit Prepend(std::string prefix) : prefix_(std::move(prefix)) {}
  void apply(NormalizedText& text) const override {
    if (text.text.empty()) return;
    text.text.insert(0, prefix_);
    if (text.head > 0) text.head += prefix_.size();
  }

 private:
  std::string prefix_;
};

}  // namespace

Result<std::unique_ptr<const Normalizer>> make_prepend(const Json& json, const std::string& where) {
  VALORA_CHECK(check_fields(json, where, {"type", "prepend"}));
  VALORA_TRY(prefix, field<std::string>(json, where, "prepend"));
  if (prefix.size() > kMaxBytes)
    return refuse(where, "\"prepend\" is longer than " + std::to_string(kMaxBytes) + " bytes");
  return std::unique_ptr<const Normalizer>(new Prepend(std::move(prefix)));
}

}  // namespace valora::text
