#include "ops/launch/compared_launches.h"

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

bool prompts_by_flashinfer() {
  static const bool asked = [] {
    const char* const given = std::getenv("VALORA_GPU_PREFILL");
    const std::string_view name = given ? given : "own";
    TORCH_CHECK(name == "own" || name == "flashinfer", "VALORA_GPU_PREFILL: \"", given,
                "\" is not own or flashinfer");
    return name == "flashinfer";
  }();
  return asked;
}

}  // namespace valora::ops
