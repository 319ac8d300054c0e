// Bodies of type multipart/form-data (RFC 7578), as forms of browsers and `curl -F` send them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace valora::server {

struct FormPart {
  std::string name;           // of the field; the name of a file is not read
  std::string_view contents;  // within the body
};

inline constexpr size_t kMostFormParts = 32;
inline constexpr size_t kMostPartHeaderBytes = 4096;

// The boundary of a Content-Type; empty if that is not multipart/form-data with one of 1 to 70
// characters.
std::string boundary_of(std::string_view content_type);

// The parts of a body, in their order. kInvalidArgument for a body that is not whole, has too many
// parts, too long headers, or a part without a name. The parts refer to `body`.
Result<std::vector<FormPart>> parse_form(std::string_view body, std::string_view boundary);

}  // namespace valora::server
