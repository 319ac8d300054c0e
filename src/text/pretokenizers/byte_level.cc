#include "text/pretokenizers/byte_level.h"

#include <optional>

#include "text/byte_map.h"
#include "text/json_fields.h"
#include "text/pretokenizers/regex_syntax.h"
#include "text/pretokenizers/rewrite.h"
#include "text/pretokenizers/split.h"

namespace valora::text {
namespace {

constexpr std::string_view kGpt2Words =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

class ByteLevel final : public PreTokenizer {
 public:
  ByteLevel(bool add_prefix_space, std::optional<Regex> words)
      : add_prefix_space_(add_prefix_space), words_(std::move(words)) {}

  void apply(Pieces& pieces) const override {
    if (add_prefix_space_) prefix_spaces(pieces);
    if (words_) split_pieces(pieces, *words_, SplitBehavior::kIsolated, false);
    map_bytes(pieces);
  }
  size_t max_growth() const override {
    return add_prefix_space_ ? 4 : 2;
  }  // at most a space before every byte

 private:
  static void prefix_spaces(Pieces& pieces) {
    rewrite_pieces(
        pieces, [](size_t, std::string_view piece) { return piece.starts_with(' ') ? "" : " "; },
        [](std::string_view part, std::string& out) { out += part; });
  }

  static void map_bytes(Pieces& pieces) {
    rewrite_pieces(
        pieces, [](size_t, std::string_view) { return ""; },
        [](std::string_view part, std::string& out) {
          for (const char byte : part) out += byte_to_text(static_cast<uint8_t>(byte));
        });
  }

  bool add_prefix_space_;
  std::optional<Regex> words_;
};

}  // namespace

Result<std::unique_ptr<const PreTokenizer>> make_byte_level_pretokenizer(const Json& json,
                                                                         const std::string& where) {
  VALORA_CHECK(
      check_fields(json, where, {"type", "add_prefix_space", "trim_offsets", "use_regex"}));
  VALORA_TRY(add_prefix_space, field<bool>(json, where, "add_prefix_space"));
  VALORA_TRY(use_regex, field_or<bool>(json, where, "use_regex", true));
  std::optional<Regex> words;
  if (use_regex) {
    VALORA_TRY(pattern, translate_regex(kGpt2Words));
    VALORA_TRY(regex, Regex::compile(pattern));
    words = std::move(regex);
  }
  return std::unique_ptr<const PreTokenizer>(new ByteLevel(add_prefix_space, std::move(words)));
}

}  // namespace valora::text
