// CSV as spreadsheets write it (RFC 4180): fields in quotes may hold commas, quotes and line
// breaks.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace valora::cli {

// The fields of one row, which ends at the text's end. kInvalidArgument for quotes that do not
// fit.
Result<std::vector<std::string>> csv_fields(std::string_view row);
// With a line break.
std::string csv_row(const std::vector<std::string>& fields);

}  // namespace valora::cli
