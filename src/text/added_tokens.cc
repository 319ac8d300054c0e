#include "text/added_tokens.h"

#include <algorithm>

#include "base/text/unicode.h"
#include "text/json_fields.h"

namespace valora::text {
namespace {

constexpr size_t kMaxAddedTokens = size_t{1} << 17;
// The search takes at most this many steps per byte of text.
constexpr size_t kMaxContentBytes = 1024;
// The tries take tens of bytes per content byte.
constexpr size_t kMaxAllBytes = size_t{16} << 20;

char32_t first_character(std::string_view text) { return decode_utf8(text).code_point; }

// The offset of the last character.
size_t last_character(std::string_view text) {
  size_t begin = text.size() - 1;
  while (begin > 0 && (text[begin] & 0xC0) == 0x80) --begin;
  return begin;
}

bool ends_in_word(std::string_view text) {
  return !text.empty() && is_word(first_character(text.substr(last_character(text))));
}

bool begins_with_word(std::string_view text) {
  return !text.empty() && is_word(first_character(text));
}

// Finds the end of a run of white space. Repeated calls within one run do not scan it again.
class SpaceRun {
 public:
  size_t end_from(std::string_view text, size_t begin) {
    if (begin_ <= begin && begin < end_) return end_;
    begin_ = end_ = begin;
    while (end_ < text.size() && is_white_space(first_character(text.substr(end_))))
      end_ += decode_utf8(text.substr(end_)).length;
    return end_;
  }

 private:
  size_t begin_ = 0;
  size_t end_ = 0;
};

Result<AddedToken> read_token(const Json& json, const std::string& where) {
  VALORA_CHECK(check_fields(
      json, where, {"id", "content", "single_word", "lstrip", "rstrip", "normalized", "special"}));
  AddedToken token;
  VALORA_TRY(id, field<int32_t>(json, where, "id"));
  VALORA_TRY(content, field<std::string>(json, where, "content"));
  token.id = id;
  token.content = std::move(content);
  const std::pair<const char*, bool AddedToken::*> flags[] = {
      {"single_word", &AddedToken::single_word},
      {"lstrip", &AddedToken::lstrip},
      {"rstrip", &AddedToken::rstrip},
      {"normalized", &AddedToken::normalized},
      {"special", &AddedToken::special}};
  for (const auto& [name, member] : flags) {
    VALORA_TRY(value, field<bool>(json, where, name));
    token.*member = value;
  }
  return token;
}

}  // namespace

Result<AddedTokens> AddedTokens::read(const Json& json, const std::string& where,
                                      const Model& model, const Normalizer* normalizer,
                                      const std::vector<AddedToken>& more) {
  AddedTokens added;
  if (!json.is_null() && !json.is_array()) return refuse(where, "must be an array");
  if (json.size() + more.size() > kMaxAddedTokens)
    return refuse(where, "has more than " + std::to_string(kMaxAddedTokens) + " elements");
  for (size_t i = 0; i < json.size(); ++i) {
    const std::string token_where = where + "[" + std::to_string(i) + "]";
    VALORA_TRY(token, read_token(json[i], token_where));
    VALORA_CHECK(added.add(std::move(token), token_where, model));
  }
  for (const AddedToken& token : more)
    VALORA_CHECK(added.add(token, "the folder's added tokens", model));
  VALORA_CHECK(added.build_tries(where, normalizer));
  return added;
}

Status AddedTokens::add(AddedToken token, const std::string& where, const Model& model) {
  if (token.content.empty()) return {};
  if (token.content.size() > kMaxContentBytes)
    return refuse(where,
                  "\"content\" has more than " + std::to_string(kMaxContentBytes) + " bytes");
  const auto own = token_to_id(token.content);
  if (own && same_token(tokens_.at(*own), token)) return {};
  const auto known = own ? own : model.token_to_id(token.content);
  const int32_t id = known ? *known : std::max(model.token_count(), max_id() + 1);
  if (id > kMaxTokenId) return refuse(where, "id " + std::to_string(id) + " is too large");
  if (token.id >= 0 && token.id != id && renumbered_.empty())
    renumbered_ = in_quotes(token.content) + " is listed with the id " + std::to_string(token.id) +
                  ", but has " + std::to_string(id);
  const bool newly_special = token.special && special_.insert(token.content).second;
  if (newly_special || !special_.contains(token.content))
    forms_.push_back({id, token.normalized, newly_special});
  ids_.insert_or_assign(token.content, id);
  token.id = id;
  tokens_.insert_or_assign(id, std::move(token));
  return {};
}

Status AddedTokens::build_tries(const std::string& where, const Normalizer* normalizer) {
  size_t bytes = 0;
  // If two tokens have the same normalized form, the special one wins, otherwise the first one in
  // the file.
  for (const bool special : {true, false}) {
    for (const Form& entry : forms_) {
      if (entry.special != special) continue;
      const std::string& content = tokens_.at(entry.id).content;
      const std::string form =
          normalizer && entry.normalized ? normalizer->normalize(content) : content;
      if (form.empty()) return refuse(where, in_quotes(content) + " is empty after normalization");
      if ((bytes += form.size()) > kMaxAllBytes)
        return refuse(where, "has more than " + std::to_string(kMaxAllBytes) + " bytes of tokens");
      (entry.normalized ? normalized_ : raw_).insert(form, entry.id);
    }
  }
  return {};
}

std::vector<Segment> AddedTokens::split(std::string_view text, const TokenTrie& trie) const {
  std::vector<Segment> segments;
  size_t done = 0;
  size_t from = 0;
  SpaceRun space;
  while (const auto match = trie.find(text, from)) {
    from = match->end;
    const AddedToken& token = tokens_.at(match->id);
    if (token.single_word &&
        (ends_in_word(text.substr(0, match->begin)) || begins_with_word(text.substr(match->end))))
      continue;
    const size_t begin = token.lstrip ? trailing_white_space(text.substr(0, match->begin),
                                                             std::min(done, match->begin))
                                      : match->begin;
    const size_t end = token.rstrip ? space.end_from(text, match->end) : match->end;
    if (done < begin) segments.push_back({text.substr(done, begin - done), {}});
    segments.push_back({text.substr(begin, end - begin), match->id});
    done = end;
  }
  if (done < text.size()) segments.push_back({text.substr(done), {}});
  return segments;
}

const AddedToken* AddedTokens::find(int32_t id) const {
  const auto it = tokens_.find(id);
  return it == tokens_.end() ? nullptr : &it->second;
}

std::optional<int32_t> AddedTokens::token_to_id(std::string_view content) const {
  const auto it = ids_.find(content);
  return it == ids_.end() ? std::nullopt : std::optional(it->second);
}

bool AddedTokens::is_special(std::string_view content) const { return special_.contains(content); }

}  // namespace valora::text
