// Finds what makes the answers of a JSON schema long.
#pragma once

#include <string>

namespace valora::grammar {

// The keyword that demands the largest number of characters, items or properties, and its place:
// "minLength" at #/properties/a. Empty if there is none. For errors.
std::string largest_minimum(const std::string& schema);

}  // namespace valora::grammar
