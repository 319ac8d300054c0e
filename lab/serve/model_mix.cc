#include "lab/serve/model_mix.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "lab/serve/random.h"

namespace valora::bench {
namespace {

// Parses the exponent s of k^-s; uniform means s = 0.
Result<double> exponent_of(const std::string& distribution) {
  if (distribution == "uniform") return 0.0;
  const Error wrong = invalid(
      "--adapter-distribution must be uniform, distinct or zipf:S with S from 0 to 100, not \"" +
      distribution + "\"");
  if (!distribution.starts_with("zipf:")) return wrong;
  const char* text = distribution.c_str() + 5;
  char* end = nullptr;
  const double exponent = std::strtod(text, &end);
  if (end == text || *end || !(exponent >= 0 && exponent <= 100)) return wrong;
  return exponent;
}

}  // namespace

Result<std::vector<int>> mix_models(const std::string& distribution, int models, int requests,
                                    uint64_t seed) {
  std::vector<int> mix;
  if (distribution == "distinct") {
    for (int i = 0; i < requests; ++i) mix.push_back(i % models);
    return mix;
  }
  VALORA_TRY(exponent, exponent_of(distribution));
  std::vector<double> cumulative;
  double total = 0;
  for (int k = 1; k <= models; ++k) cumulative.push_back(total += std::pow(k, -exponent));
  Random random(seed);
  for (int i = 0; i < requests; ++i) {
    const auto at =
        std::upper_bound(cumulative.begin(), cumulative.end(), random.uniform01() * total);
    mix.push_back(static_cast<int>(std::min<long>(at - cumulative.begin(), models - 1)));
  }
  return mix;
}

}  // namespace valora::bench
