// Identifies what a file of step costs applies to.
#pragma once

#include <string>

namespace valora::serving {

struct CostKey {
  std::string machine;  // including its number of compute threads
  std::string model;    // its sizes and dtype
};

}  // namespace valora::serving
