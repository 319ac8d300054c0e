#include "text/pretokenizers/pretokenizer.h"

#include <optional>

#include "base/text/unicode.h"
#include "text/byte_map.h"
#include "text/json_fields.h"
#include "text/metaspace.h"
#include "text/pretokenizers/regex_syntax.h"
#include "text/pretokenizers/rewrite.h"
#include "text/pretokenizers/split.h"
#include "text/row_reader.h"

namespace valora::text {
namespace {

// Pre-tokenizer "Metaspace": replaces spaces by a visible character with which words begin.
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

Result<std::unique_ptr<const PreTokenizer>> make_metaspace_pretokenizer(const Json& json,
                                                                        const std::string& where) {
  VALORA_TRY(settings, Metaspace::read(json, where));
  return std::unique_ptr<const PreTokenizer>(new MetaspacePreTokenizer(std::move(settings)));
}

// Pre-tokenizer "Digits": separates numeric characters, individually or in runs.
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

Result<std::unique_ptr<const PreTokenizer>> make_digits(const Json& json,
                                                        const std::string& where) {
  VALORA_CHECK(check_fields(json, where, {"type", "individual_digits"}));
  VALORA_TRY(individual, field<bool>(json, where, "individual_digits"));
  return std::unique_ptr<const PreTokenizer>(new Digits(individual));
}

// Pre-tokenizer "ByteLevel": an optional leading space, GPT-2's word pattern, then one character
// per byte.
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
