// Rewrites the text of pieces, one after another.
#pragma once

#include <algorithm>
#include <utility>

#include "text/pretokenizers/pretokenizer.h"

namespace valora::text {

// prefix(i, piece): returns a text to put before piece i. append(part, out): writes the new text of
// a part of a piece.
template <typename Prefix, typename Append>
void rewrite_pieces(Pieces& pieces, Prefix prefix, Append append) {
  Pieces result;
  result.text.reserve(pieces.text.size() + pieces.text.size() / 2);
  result.spans.reserve(pieces.spans.size());
  for (size_t i = 0; i < pieces.spans.size(); ++i) {
    const std::string_view piece = pieces[i];
    const size_t head =
        std::min(pieces.head - std::min(pieces.head, pieces.spans[i].begin), piece.size());
    const size_t begin = result.text.size();
    result.text += prefix(i, piece);
    append(piece.substr(0, head), result.text);
    if (head > 0) result.head = result.text.size();
    append(piece.substr(head), result.text);
    result.spans.push_back({begin, result.text.size()});
  }
  pieces = std::move(result);
}

}  // namespace valora::text
