// The keys of rank_pattern or alpha_pattern in the file's order, of which the first that matches a
// module's name counts. Adapters of mixtures of experts may have a key for each of their linears:
// a look-up for each shape of key takes the place of a comparison with each key.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "adapters/targets/name_pattern.h"
#include "adapters/targets/regex.h"
#include "base/result.h"

namespace valora::adapters {

class PatternTable {
 public:
  // Appends a key. source: the option, for errors.
  Status add(const std::string& key, const std::string& source);
  // The place of the first matching key. Errors: kUnprocessable from regular expressions.
  Result<std::optional<size_t>> first_match(std::string_view name, RegexBudget& budget) const;
  size_t shapes() const { return shapes_.size(); }

 private:
  // Plain keys of one length whose dots, which match any character, are at the same places.
  struct Shape {
    size_t length = 0;
    bool whole_name = false;
    std::vector<size_t> dots;
    std::unordered_map<std::string, size_t> places;  // of keys
  };

  static std::optional<size_t> match(const Shape& shape, std::string_view name);

  std::vector<Shape> shapes_;
  std::unordered_map<std::string, size_t> shape_of_;  // by a key with its other characters masked
  std::vector<std::pair<size_t, NamePattern>> regexes_;
  size_t size_ = 0;
};

}  // namespace valora::adapters
