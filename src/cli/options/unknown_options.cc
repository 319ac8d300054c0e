#include "cli/options/unknown_options.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace valora::cli {
namespace {

// Levenshtein distance: insertions, deletions and replacements.
size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row[b.size()];
}

}  // namespace

std::vector<std::string> describe_unknown(const std::vector<std::string>& arguments,
                                          const std::vector<std::string>& known) {
  std::vector<std::string> lines;
  for (const std::string& argument : arguments) {
    if (!argument.starts_with("--")) {
      lines.push_back("unexpected argument " + argument);
      continue;
    }
    const std::string name = argument.substr(0, argument.find('='));
    std::string dashed = name;
    std::ranges::replace(dashed, '_', '-');
    const auto distance = [&](const std::string& other) { return edit_distance(dashed, other); };
    const auto nearest = std::ranges::min_element(known, {}, distance);
    const bool near = nearest != known.end() && distance(*nearest) <= name.size() / 3;
    lines.push_back("unknown option " + name + (near ? "; did you mean " + *nearest + "?" : ""));
  }
  return lines;
}

}  // namespace valora::cli
