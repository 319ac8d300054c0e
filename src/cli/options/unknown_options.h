// Reports unknown options together with the nearest known ones.
#pragma once

#include <string>
#include <vector>

namespace valora::cli {

// One line per unknown argument, in the order given, with the nearest of the `known` options
// ("--name"), if any.
std::vector<std::string> describe_unknown(const std::vector<std::string>& arguments,
                                          const std::vector<std::string>& known);

}  // namespace valora::cli
