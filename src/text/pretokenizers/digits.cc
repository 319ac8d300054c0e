#include "text/pretokenizers/digits.h"

#include "base/text/unicode.h"
#include "text/json_fields.h"

namespace valora::text {
namespace {

class Digits final : public PreTokenizer {
 public:
  explicit Digits(bool individual) : individual_(individual) {}

  void apply(Pieces& pieces) const override {
    std::vector<Span> result;
    for (size_t i = 0; i < pieces.spans.size(); ++i)
      split(pieces[i], pieces.spans[i].begin, result);
    pieces.spans = std::move(result);
  }

 private:
  void split(std::string_view piece, size_t begin, std::vector<Span>& result) const {
    bool previous_numeric = false;
    for (size_t at = 0; at < piece.size();) {
      const Utf8Step step = decode_utf8(piece.substr(at));
      const bool numeric = is_numeric(step.code_point);
      const bool joins = at > 0 && numeric == previous_numeric && !(numeric && individual_);
      if (joins)
        result.back().end += step.length;
      else
        result.push_back({begin + at, begin + at + step.length});
      previous_numeric = numeric;
      at += step.length;
    }
  }

  bool individual_;
};

}  // namespace

Result<std::unique_ptr<const PreTokenizer>> make_digits(const Json& json,
                                                        const std::string& where) {
  VALORA_CHECK(check_fields(json, where, {"type", "individual_digits"}));
  VALORA_TRY(individual, field<bool>(json, where, "individual_digits"));
  return std::unique_ptr<const PreTokenizer>(new Digits(individual));
}

}  // namespace valora::text
