// Parses multipart/form-data bodies (RFC 7578), as sent by browsers and `curl -F`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace valora::server {

struct FormPart {
  std::string name;           // of the field
  std::string_view contents;  // within the body
  std::string filename = {};  // as the client says; empty: none
};

inline constexpr size_t kMostFormParts = 32;
inline constexpr size_t kMostPartHeaderBytes = 4096;

// The boundary in a Content-Type; empty if that is not multipart/form-data with a boundary of 1 to
// 70 characters.
std::string boundary_of(std::string_view content_type);

// The parts of a body, in order. kInvalidArgument if the body is incomplete, has too many parts or
// too long headers, or a part has no name. The parts point into `body`.
Result<std::vector<FormPart>> parse_form(std::string_view body, std::string_view boundary);

}  // namespace valora::server
