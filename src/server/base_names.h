// The base model's served names, and names of the form "base:adapter".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace valora::server {

bool is_base_name(const std::vector<std::string>& base_names, std::string_view model);
// "adapter" of "base:adapter"; any other name unchanged.
std::string_view without_base_prefix(const std::vector<std::string>& base_names,
                                     std::string_view model);
// kInvalidArgument if the adapter's name could be confused with the base model or with another
// adapter: it equals a base model name or begins with one as a prefix.
Status check_not_base_name(const std::vector<std::string>& base_names, std::string_view adapter);

}  // namespace valora::server
