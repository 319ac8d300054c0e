#include "serving/prompts/visual_parts.h"

namespace valora::serving {

void cut_spans(std::vector<models::VisualSpan>& visual) {
  std::vector<models::VisualSpan> cut;
  for (const models::VisualSpan& span : visual) {
    const auto parts = static_cast<int>(span.input->parts.size());
    const int rows = parts == 0 ? 0 : span.input->tokens / parts;
    if (parts == 0 || span.first_row % rows != 0 || span.rows % rows != 0) {
      cut.push_back(span);
      continue;
    }
    for (int row = 0; row < span.rows; row += rows)
      cut.push_back({span.token_begin + row, rows, span.input, span.first_row + row,
                     (span.first_row + row) / rows});
  }
  visual = std::move(cut);
}

std::vector<memory::MediaSpan> media_spans(const std::vector<models::VisualSpan>& visual) {
  std::vector<memory::MediaSpan> media;
  for (const models::VisualSpan& span : visual) {
    if (span.part >= 0)
      media.push_back({span.token_begin, span.rows,
                       DigestBuilder()
                           .add(span.encoded()->digest)
                           .add(span.part)
                           .add(span.input->seconds_per_grid)
                           .finish()});
    else if (span.first_row == 0)
      media.push_back({span.token_begin, span.rows, span.input->digest});
    else
      media.back().tokens = span.token_begin + span.rows - media.back().token_begin;
  }
  return media;
}

}  // namespace valora::serving
