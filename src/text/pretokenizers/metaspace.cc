#include "text/pretokenizers/metaspace.h"

#include "text/metaspace.h"
#include "text/pretokenizers/rewrite.h"

namespace valora::text {
namespace {

class MetaspacePreTokenizer final : public PreTokenizer {
 public:
  explicit MetaspacePreTokenizer(Metaspace settings) : settings_(std::move(settings)) {}

  void apply(Pieces& pieces) const override {
    replace_spaces(pieces);
    if (settings_.split) split(pieces);
  }
  size_t max_growth() const override {
    return 2 * settings_.replacement.size();
  }  // at most one before every byte

 private:
  void replace_spaces(Pieces& pieces) const {
    const std::string_view replacement = settings_.replacement;
    const auto prefix = [&](size_t i, std::string_view piece) {
      const bool wanted = settings_.scheme == PrependScheme::kAlways ||
                          (settings_.scheme == PrependScheme::kFirst && pieces.begins_sequence(i));
      return wanted && !piece.starts_with(' ') && !piece.starts_with(replacement) ? replacement
                                                                                  : "";
    };
    rewrite_pieces(pieces, prefix, [&](std::string_view part, std::string& out) {
      for (size_t at; (at = part.find(' ')) != part.npos; part.remove_prefix(at + 1)) {
        out += part.substr(0, at);
        out += replacement;
      }
      out += part;
    });
  }

  // Every replacement character starts a new piece.
  void split(Pieces& pieces) const {
    std::vector<Span> result;
    for (const Span& span : pieces.spans) {
      const std::string_view text = std::string_view(pieces.text).substr(0, span.end);
      for (size_t begin = span.begin; begin < span.end;) {
        const size_t end = std::min(text.find(settings_.replacement, begin + 1), span.end);
        result.push_back({begin, end});
        begin = end;
      }
    }
    pieces.spans = std::move(result);
  }

  Metaspace settings_;
};

}  // namespace

Result<std::unique_ptr<const PreTokenizer>> make_metaspace_pretokenizer(const Json& json,
                                                                        const std::string& where) {
  VALORA_TRY(settings, Metaspace::read(json, where));
  return std::unique_ptr<const PreTokenizer>(new MetaspacePreTokenizer(std::move(settings)));
}

}  // namespace valora::text
