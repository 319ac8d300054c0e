#include "text/normalizers/replace.h"

#include "text/replacement.h"

namespace valora::text {
namespace {

class Replace final : public Normalizer {
 public:
  explicit Replace(Replacement replacement) : replacement_(std::move(replacement)) {}
  void apply(NormalizedText& text) const override {
    text.text = replacement_.apply(text.text, text.head);
  }
  size_t max_growth() const override { return replacement_.max_growth(); }

 private:
  Replacement replacement_;
};

}  // namespace

Result<std::unique_ptr<const Normalizer>> make_replace(const Json& json, const std::string& where) {
  VALORA_TRY(replacement, Replacement::read(json, where));
  return std::unique_ptr<const Normalizer>(new Replace(std::move(replacement)));
}

}  // namespace valora::text
