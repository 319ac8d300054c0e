#include "ops/separate_launches.h"

#include <ATen/ATen.h>

#include <cstdlib>
#include <sstream>
#include <string>

namespace valora::ops {
namespace {

SeparateLaunches read_names(const char* text) {
  SeparateLaunches separate;
  std::istringstream names(text != nullptr ? text : "");
  for (std::string name; std::getline(names, name, ',');) {
    TORCH_CHECK(name == "products" || name == "rotation" || name == "merge",
                "VALORA_GPU_SEPARATE: \"", name, "\" is none of products, rotation, merge");
    separate.products |= name == "products";
    separate.rotation |= name == "rotation";
    separate.merge |= name == "merge";
  }
  return separate;
}

}  // namespace

const SeparateLaunches& separate_launches() {
  static const SeparateLaunches separate = read_names(std::getenv("VALORA_GPU_SEPARATE"));
  return separate;
}

}  // namespace valora::ops
