// What a file of step costs holds for.
#pragma once

#include <string>

namespace valora::serving {

struct CostKey {
  std::string machine;  // with its number of compute threads
  std::string model;    // its sizes and its dtype
};

}  // namespace valora::serving
