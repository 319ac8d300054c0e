#include "cli/options/spellings.h"

#include <algorithm>
#include <cctype>
#include <iterator>
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

bool is_option(const std::string& argument) {
  return argument.size() > 1 && argument[0] == '-' &&
         std::isdigit(static_cast<unsigned char>(argument[1])) == 0;
}

// "unknown option --name", with the nearest known one if it is near.
std::string described(const std::string& argument, const std::vector<std::string>& known) {
  const std::string name = argument.substr(0, argument.find('='));
  std::string dashed = name;
  std::ranges::replace(dashed, '_', '-');
  const auto distance = [&](const std::string& other) { return edit_distance(dashed, other); };
  const auto nearest = std::ranges::min_element(known, {}, distance);
  const bool near = nearest != known.end() && distance(*nearest) <= name.size() / 3;
  return "unknown option " + name + (near ? "; did you mean " + *nearest + "?" : "");
}

}  // namespace

std::vector<std::string> describe_unknown(const std::vector<std::string>& unknown,
                                          const std::vector<std::string>& given,
                                          const std::vector<std::string>& known) {
  std::vector<std::string> lines;
  auto place = given.begin();           // of the unknown argument; end: it was spelled differently
  const std::string* option = nullptr;  // the unknown one just before `place`
  for (const std::string& argument : unknown) {
    const auto found = std::find(place, given.end(), argument);
    const bool is_value = option && found == place;
    place = found == given.end() ? place : std::next(found);
    option = nullptr;
    if (is_option(argument)) {
      lines.push_back(described(argument, known));
      if (argument.find('=') == argument.npos && found != given.end()) option = &argument;
    } else if (!is_value) {
      lines.push_back("unexpected argument " + argument);
    }
  }
  return lines;
}

}  // namespace valora::cli
