#include "generator/teachers/split.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include "base/digest.h"

namespace valora::generator {

SplitSamples split_samples(std::vector<Sample> samples, double share, uint64_t seed) {
  const auto total = static_cast<int64_t>(samples.size());
  auto count = static_cast<int64_t>(std::llround(share * static_cast<double>(total)));
  if (total >= 2 && share > 0 && share < 1) count = std::clamp<int64_t>(count, 1, total - 1);

  std::vector<std::pair<Digest, size_t>> order;
  for (size_t i = 0; i < samples.size(); ++i)
    order.emplace_back(DigestBuilder().add(seed).add(std::string_view(samples[i].origin)).finish(),
                       i);
  std::ranges::sort(order);
  std::vector<bool> validates(samples.size());
  for (int64_t i = 0; i < count; ++i) validates[order[static_cast<size_t>(i)].second] = true;

  SplitSamples split;
  for (size_t i = 0; i < samples.size(); ++i)
    (validates[i] ? split.validation : split.train).push_back(std::move(samples[i]));
  return split;
}

}  // namespace valora::generator
