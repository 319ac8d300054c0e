#include <algorithm>

#include "memory/identity.h"

namespace valora::memory {
namespace {

Digest block_key(const Digest& parent, std::span<const int32_t> block, int begin,
                 const KvIdentity& identity) {
  const std::vector<MediaSpan>& media = identity.media;
  const int end = begin + kBlockTokens;
  DigestBuilder builder;
  builder.add(parent).add(block);
  const auto first = std::ranges::partition_point(
      media, [&](const MediaSpan& span) { return span.token_begin + span.tokens <= begin; });
  for (auto span = first; span != media.end() && span->token_begin < end; ++span) {
    builder.add(span->digest).add(begin - span->token_begin).add(span->tokens);
  }
  if (identity.rope.variant(end - 1) != 0) {
    builder.add("rope");
    for (int token = begin; token < end; ++token) builder.add(identity.rope.variant(token));
  }
  if (identity.late != Digest{} && end > identity.late_from)
    builder.add("late").add(identity.late).add(std::max(0, identity.late_from - begin));
  return builder.finish();
}

}  // namespace

void extend_block_keys(const KvIdentity& identity, std::span<const int32_t> tokens,
                       std::vector<Digest>& known) {
  const size_t full = tokens.size() / kBlockTokens;
  Digest parent =
      known.empty() ? DigestBuilder().add("kv").add(identity.adapter).finish() : known.back();
  for (size_t i = known.size(); i < full; ++i) {
    const size_t begin = i * kBlockTokens;
    parent =
        block_key(parent, tokens.subspan(begin, kBlockTokens), static_cast<int>(begin), identity);
    known.push_back(parent);
  }
}

}  // namespace valora::memory
