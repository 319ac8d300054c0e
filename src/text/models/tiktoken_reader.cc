// Reads tiktoken vocabulary files.
#include <algorithm>
#include <charconv>
#include <cstdint>

#include "base/text/base64.h"
#include "text/byte_map.h"
#include "text/json_fields.h"
#include "text/models/bpe.h"

namespace valora::text {
namespace {

constexpr size_t kMaxRankedToken = 1 << 12;  // in bytes; bounds the pairs of one token

struct RankedToken {
  std::string bytes;
  size_t rank = 0;
};

Result<RankedToken> read_line(std::string_view line, const std::string& where) {
  const size_t space = line.find(' ');
  RankedToken token;
  const std::string_view rank = space == line.npos ? std::string_view() : line.substr(space + 1);
  const char *const begin = rank.data(), *const end = begin + rank.size();
  const auto number = std::from_chars(begin, end, token.rank);
  if (number.ec != std::errc() || number.ptr != end || token.rank > kMaxTokenId)
    return refuse(where, "must be a token in base64, a space and its rank");
  const auto bytes = decode_base64(line.substr(0, space));
  if (!bytes.ok() || bytes->empty() || bytes->size() > kMaxRankedToken)
    return refuse(where, "the token is not base64 of 1 to 4096 bytes");
  token.bytes.assign(bytes->begin(), bytes->end());
  return token;
}

// The bytes of each token, by rank.
Result<std::vector<std::string>> read_ranks(std::string_view file, const std::string& where) {
  std::vector<std::string> tokens;
  size_t count = 0;
  for (size_t line = 1; !file.empty(); ++line) {
    const size_t end = std::min(file.find('\n'), file.size());
    std::string_view text = file.substr(0, end);
    file.remove_prefix(std::min(end + 1, file.size()));
    if (text.ends_with('\r')) text.remove_suffix(1);
    if (text.empty()) continue;
    const std::string at = where + ", line " + std::to_string(line);
    VALORA_TRY(token, read_line(text, at));
    if (token.rank >= tokens.size()) tokens.resize(token.rank + 1);
    if (!tokens[token.rank].empty())
      return refuse(at, "the rank " + std::to_string(token.rank) + " occurs twice");
    tokens[token.rank] = std::move(token.bytes);
    ++count;
  }
  if (count != tokens.size()) return refuse(where, "the ranks are not 0, 1, 2, … without gaps");
  return tokens;
}

std::string mapped(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) text += byte_to_text(static_cast<uint8_t>(byte));
  return text;
}

}  // namespace

Result<std::unique_ptr<const Model>> make_tiktoken_bpe(std::string_view file,
                                                       const std::string& where) {
  VALORA_TRY(ranks, read_ranks(file, where));
  std::vector<std::string> texts;
  texts.reserve(ranks.size());
  for (const std::string& bytes : ranks) texts.push_back(mapped(bytes));
  Vocabulary vocabulary = Vocabulary::of(std::move(texts));
  if (static_cast<size_t>(vocabulary.size()) != ranks.size())
    return refuse(where, "a token occurs twice");
  for (int byte = 0; byte < 256; ++byte)
    if (!vocabulary.find(byte_to_text(static_cast<uint8_t>(byte))))
      return refuse(where, "the byte " + std::to_string(byte) + " has no token");

  struct Pair {
    int32_t left, right, result;
  };
  std::vector<Pair> pairs;
  for (size_t id = 0; id < ranks.size(); ++id)
    for (size_t cut = 1; cut < ranks[id].size(); ++cut) {
      const std::string_view bytes = ranks[id];
      const auto left = vocabulary.find(mapped(bytes.substr(0, cut))),
                 right = vocabulary.find(mapped(bytes.substr(cut)));
      if (left && right) pairs.push_back({*left, *right, static_cast<int32_t>(id)});
    }
  MergeTable merges(pairs.size());
  for (const Pair& pair : pairs) merges.insert(pair.left, pair.right, {pair.result, pair.result});
  return std::unique_ptr<const Model>(
      new Bpe(std::move(vocabulary), std::move(merges), {.ignore_merges = true}));
}

}  // namespace valora::text
