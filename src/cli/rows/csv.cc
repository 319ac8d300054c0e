#include "cli/rows/csv.h"

namespace valora::cli {
namespace {

// Removes a field in quotes from the front of `row`.
Result<std::string> take_quoted(std::string_view& row) {
  std::string field;
  for (row.remove_prefix(1); !row.empty(); row.remove_prefix(1)) {
    if (row.front() != '"') {
      field += row.front();
      continue;
    }
    row.remove_prefix(1);
    if (row.empty() || row.front() != '"') return field;
    field += '"';
  }
  return invalid("a quote is not closed");
}

std::string quoted_field(const std::string& field) {
  if (field.find_first_of(",\"\r\n") == field.npos) return field;
  std::string out = "\"";
  for (const char c : field) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + "\"";
}

}  // namespace

Result<std::vector<std::string>> csv_fields(std::string_view row) {
  std::vector<std::string> fields;
  while (true) {
    if (row.starts_with('"')) {
      VALORA_TRY(field, take_quoted(row));
      fields.push_back(std::move(field));
      if (!row.empty() && row.front() != ',') return invalid("a text follows a closing quote");
    } else {
      const std::string_view field = row.substr(0, row.find(','));
      if (field.find('"') != field.npos)
        return invalid("a quote is within a field that is not in quotes");
      fields.emplace_back(field);
      row.remove_prefix(field.size());
    }
    if (row.empty()) return fields;
    row.remove_prefix(1);
  }
}

std::string csv_row(const std::vector<std::string>& fields) {
  std::string row;
  for (size_t i = 0; i < fields.size(); ++i) row += (i ? "," : "") + quoted_field(fields[i]);
  return row + "\n";
}

}  // namespace valora::cli
