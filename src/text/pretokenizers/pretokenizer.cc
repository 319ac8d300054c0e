#include "text/pretokenizers/pretokenizer.h"

#include "text/pretokenizers/byte_level.h"
#include "text/pretokenizers/digits.h"
#include "text/pretokenizers/metaspace.h"
#include "text/pretokenizers/split.h"
#include "text/row_reader.h"

namespace valora::text {
namespace {

constexpr size_t kMaxGrowth = 256;

using Part = std::unique_ptr<const PreTokenizer>;

class PreTokenizerSequence final : public PreTokenizer {
 public:
  explicit PreTokenizerSequence(std::vector<Part> parts) : parts_(std::move(parts)) {}
  void apply(Pieces& pieces) const override {
    for (const Part& part : parts_) part->apply(pieces);
  }

 private:
  std::vector<Part> parts_;
};

Result<Part> make_part(const Json& json, const std::string& type, const std::string& where) {
  if (type == "Split") return make_split(json, where);
  if (type == "ByteLevel") return make_byte_level_pretokenizer(json, where);
  if (type == "Digits") return make_digits(json, where);
  if (type == "Metaspace") return make_metaspace_pretokenizer(json, where);
  return refuse(where, "pre-tokenizer " + in_quotes(type) + " is not supported");
}

}  // namespace

Result<Part> make_pretokenizer(const Json& json, const std::string& where) {
  if (json.is_null()) return Part();
  VALORA_TRY(parts,
             RowReader<PreTokenizer>("pretokenizers", kMaxGrowth, make_part).read(json, where));
  return Part(new PreTokenizerSequence(std::move(parts)));
}

}  // namespace valora::text
