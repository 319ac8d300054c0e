#include "models/quantised/report.h"

#include <fmt/format.h>

#include <algorithm>

namespace valora::models {

std::string QuantisedReport::text(const std::string& dtype) const {
  constexpr size_t kNamed = 3;
  std::string text =
      fmt::format("{} linear{} of {} ({}), ", linears, linears == 1 ? "" : "s", encoding, format);
  if (integers == linears)
    text += "served in integers";
  else if (integers == 0)
    text += "decoded to " + dtype;
  else
    text +=
        fmt::format("{} served in integers, {} decoded to {}", integers, linears - integers, dtype);
  if (kept.empty()) return text;
  const size_t named = std::min(kNamed, kept.size());
  text += fmt::format("; {} not quantised: {}", kept.size(),
                      fmt::join(kept.begin(), kept.begin() + static_cast<int64_t>(named), ", "));
  return kept.size() > named ? text + " …" : text;
}

}  // namespace valora::models
