#include "ops/launch/separate_launches.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <sstream>
#include <string>
#include <string_view>

namespace valora::ops {
namespace {

struct Name {
  std::string_view text;
  bool SeparateLaunches::* flag;
};
constexpr Name kNames[] = {
    {"products", &SeparateLaunches::products},     {"rotation", &SeparateLaunches::rotation},
    {"merge", &SeparateLaunches::merge},           {"shrink", &SeparateLaunches::shrink},
    {"activation", &SeparateLaunches::activation}, {"overlap", &SeparateLaunches::overlap}};

SeparateLaunches read_names(const char* text) {
  SeparateLaunches separate;
  std::istringstream names(text != nullptr ? text : "");
  for (std::string name; std::getline(names, name, ',');) {
    const auto known = std::ranges::find(kNames, name, &Name::text);
    TORCH_CHECK(known != std::end(kNames), "VALORA_GPU_SEPARATE: \"", name,
                "\" is not one of products, rotation, merge, shrink, activation, overlap");
    separate.*known->flag = true;
  }
  return separate;
}

}  // namespace

const SeparateLaunches& separate_launches() {
  static const SeparateLaunches separate = read_names(std::getenv("VALORA_GPU_SEPARATE"));
  return separate;
}

}  // namespace valora::ops
