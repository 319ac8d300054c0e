#include "text/pretokenizers/pretokenizer.h"

#include "text/pretokenizers/byte_level.h"
#include "text/pretokenizers/digits.h"
#include "text/pretokenizers/metaspace.h"
#include "text/pretokenizers/split.h"
#include "text/row_reader.h"

namespace valora::text {
namespace {

constexpr size_t kMaxPreTokenizerGrowth = 256;

using PreTokenizerPtr = std::unique_ptr<const PreTokenizer>;

class PreTokenizerSequence final : public PreTokenizer {
 public:
  explicit PreTokenizerSequence(std::vector<PreTokenizerPtr> parts) : parts_(std::move(parts)) {}
  void apply(Pieces& pieces) const override {
    for (const PreTokenizerPtr& part : parts_) part->apply(pieces);
  }

 private:
  std::vector<PreTokenizerPtr> parts_;
};

Result<PreTokenizerPtr> make_pretokenizer_part(const Json& json, const std::string& type,
                                               const std::string& where) {
  if (type == "Split") return make_split(json, where);
  if (type == "ByteLevel") return make_byte_level_pretokenizer(json, where);
  if (type == "Digits") return make_digits(json, where);
  if (type == "Metaspace") return make_metaspace_pretokenizer(json, where);
  return refuse(where, "pre-tokenizer " + in_quotes(type) + " is not supported");
}

}  // namespace

Result<PreTokenizerPtr> make_pretokenizer(const Json& json, const std::string& where) {
  if (json.is_null()) return PreTokenizerPtr();
  VALORA_TRY(parts, RowReader<PreTokenizer>("pretokenizers", kMaxPreTokenizerGrowth,
                                            make_pretokenizer_part)
                        .read(json, where));
  return PreTokenizerPtr(new PreTokenizerSequence(std::move(parts)));
}

}  // namespace valora::text
