#include "text/pretokenizers/split.h"

#include <algorithm>

#include "text/json_fields.h"
#include "text/replacement.h"

namespace valora::text {
namespace {

class Split final : public PreTokenizer {
 public:
  Split(Regex regex, SplitBehavior behavior, bool invert)
      : regex_(std::move(regex)), behavior_(behavior), invert_(invert) {}
  void apply(Pieces& pieces) const override { split_pieces(pieces, regex_, behavior_, invert_); }

 private:
  Regex regex_;
  SplitBehavior behavior_;
  bool invert_;
};

std::vector<SplitPart> parts_of(std::string_view text, const std::vector<Span>& matches,
                                bool invert) {
  std::vector<SplitPart> parts;
  size_t end = 0;
  for (const Span& match : matches) {
    if (end != match.begin) parts.push_back({{end, match.begin}, invert});
    parts.push_back({match, !invert});
    end = match.end;
  }
  if (end != text.size()) parts.push_back({{end, text.size()}, invert});
  return parts;
}

// Each match joins the preceding part, unless that is a match, too.
std::vector<Span> joined_to_previous(const std::vector<SplitPart>& parts) {
  std::vector<Span> spans;
  bool previous_match = false;
  for (const SplitPart& part : parts) {
    if (part.is_match && !previous_match && !spans.empty())
      spans.back().end = part.span.end;
    else
      spans.push_back(part.span);
    previous_match = part.is_match;
  }
  return spans;
}

std::vector<Span> joined_to_next(const std::vector<SplitPart>& parts) {
  std::vector<Span> spans;
  bool next_match = false;
  for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
    if (part->is_match && !next_match && !spans.empty())
      spans.back().begin = part->span.begin;
    else
      spans.push_back(part->span);
    next_match = part->is_match;
  }
  std::ranges::reverse(spans);
  return spans;
}

std::vector<Span> joined_runs(const std::vector<SplitPart>& parts) {
  std::vector<Span> spans;
  bool previous_match = false;
  for (const SplitPart& part : parts) {
    if (part.is_match == previous_match && !spans.empty())
      spans.back().end = part.span.end;
    else
      spans.push_back(part.span);
    previous_match = part.is_match;
  }
  return spans;
}

std::vector<Span> spans_of(const std::vector<SplitPart>& parts, bool with_matches) {
  std::vector<Span> spans;
  for (const SplitPart& part : parts)
    if (with_matches || !part.is_match) spans.push_back(part.span);
  return spans;
}

Result<SplitBehavior> read_behavior(const Json& json, const std::string& where) {
  VALORA_TRY(name, field<std::string>(json, where, "behavior"));
  if (name == "Removed") return SplitBehavior::kRemoved;
  if (name == "Isolated") return SplitBehavior::kIsolated;
  if (name == "MergedWithPrevious") return SplitBehavior::kMergedWithPrevious;
  if (name == "MergedWithNext") return SplitBehavior::kMergedWithNext;
  if (name == "Contiguous") return SplitBehavior::kContiguous;
  return refuse(where, "unknown behavior " + in_quotes(name));
}

}  // namespace

void merge_parts(const std::vector<SplitPart>& parts, SplitBehavior behavior,
                 std::vector<Span>& pieces) {
  std::vector<Span> spans;
  switch (behavior) {
    case SplitBehavior::kRemoved: spans = spans_of(parts, false); break;
    case SplitBehavior::kIsolated: spans = spans_of(parts, true); break;
    case SplitBehavior::kMergedWithPrevious: spans = joined_to_previous(parts); break;
    case SplitBehavior::kMergedWithNext: spans = joined_to_next(parts); break;
    case SplitBehavior::kContiguous: spans = joined_runs(parts); break;
  }
  for (const Span& span : spans)
    if (span.begin != span.end) pieces.push_back(span);
}

void split_pieces(Pieces& pieces, const Regex& regex, SplitBehavior behavior, bool invert) {
  std::vector<Span> result;
  for (size_t i = 0; i < pieces.spans.size(); ++i) {
    std::vector<SplitPart> parts = parts_of(pieces[i], regex.find_all(pieces[i]), invert);
    for (SplitPart& part : parts) {
      part.span.begin += pieces.spans[i].begin;
      part.span.end += pieces.spans[i].begin;
    }
    merge_parts(parts, behavior, result);
  }
  pieces.spans = std::move(result);
}

Result<std::unique_ptr<const PreTokenizer>> make_split(const Json& json, const std::string& where) {
  VALORA_CHECK(check_fields(json, where, {"type", "pattern", "behavior", "invert"}));
  VALORA_TRY(regex, read_pattern(json, where));
  VALORA_TRY(behavior, read_behavior(json, where));
  VALORA_TRY(invert, field<bool>(json, where, "invert"));
  return std::unique_ptr<const PreTokenizer>(new Split(std::move(regex), behavior, invert));
}

}  // namespace valora::text
