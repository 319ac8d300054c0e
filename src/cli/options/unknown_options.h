// Reports unknown options together with the nearest known ones.
#pragma once

#include <string>
#include <vector>

namespace valora::cli {

// One line per unknown argument, in the order given: for an option, with the nearest of the `known`
// ones ("--name"), if any; the value after it is part of it. given: all arguments.
std::vector<std::string> describe_unknown(const std::vector<std::string>& unknown,
                                          const std::vector<std::string>& given,
                                          const std::vector<std::string>& known);

}  // namespace valora::cli
