#include "api/cards.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace valora {

std::string text_of(const std::vector<ChangedPart>& changes) {
  std::string text;
  for (const ChangedPart& part : changes) {
    text += fmt::format("{}{}: {} of {} linears", text.empty() ? "" : "; ", part.name, part.linears,
                        part.of);
    if (!part.ranks.empty())
      text += fmt::format(", rank {}, scale {:.4g}", fmt::join(part.ranks, " and "),
                          fmt::join(part.scales, " and "));
  }
  return text;
}

}  // namespace valora
