// Pre-tokenizer "Split": splits at the matches of a pattern.
#pragma once

#include "text/pretokenizers/pretokenizer.h"
#include "text/pretokenizers/regex.h"

namespace valora::text {

enum class SplitBehavior : uint8_t {
  kRemoved,
  kIsolated,
  kMergedWithPrevious,
  kMergedWithNext,
  kContiguous
};

// A match, or the text between two matches.
struct SplitPart {
  Span span;
  bool is_match;
};

// Appends the pieces formed from the parts according to `behavior`.
void merge_parts(const std::vector<SplitPart>& parts, SplitBehavior behavior,
                 std::vector<Span>& pieces);
// Splits every piece at the regex's matches (with `invert`, at the text between them).
void split_pieces(Pieces& pieces, const Regex& regex, SplitBehavior behavior, bool invert);

Result<std::unique_ptr<const PreTokenizer>> make_split(const Json& json, const std::string& where);

}  // namespace valora::text
