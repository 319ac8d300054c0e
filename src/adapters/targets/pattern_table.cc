#include "adapters/targets/pattern_table.h"

namespace valora::adapters {

Status PatternTable::add(const std::string& key, const std::string& source) {
  const size_t place = size_++;
  if (!NamePattern::is_plain(key)) {
    VALORA_TRY(pattern, NamePattern::compile(key, source));
    regexes_.emplace_back(place, std::move(pattern));
    return {};
  }
  const bool whole_name = key.starts_with('^');
  const std::string plain = key.substr(whole_name ? 1 : 0);
  std::string mask = key;
  for (char& c : mask)
    if (c != '.' && c != '^') c = 'x';
  const auto [known, is_new] = shape_of_.emplace(mask, shapes_.size());
  if (is_new) {
    shapes_.push_back({plain.size(), whole_name, {}, {}});
    for (size_t i = 0; i < plain.size(); ++i)
      if (plain[i] == '.') shapes_.back().dots.push_back(i);
  }
  shapes_[known->second].places.emplace(plain, place);
  return {};
}

std::optional<size_t> PatternTable::match(const Shape& shape, std::string_view name) {
  if (name.size() < shape.length) return std::nullopt;
  const size_t begin = name.size() - shape.length;
  if (begin > 0 && (shape.whole_name || name[begin - 1] != '.')) return std::nullopt;
  std::string key(name.substr(begin));
  for (const size_t dot : shape.dots) {
    if (key[dot] == '\n') return std::nullopt;  // which a dot does not match
    key[dot] = '.';
  }
  const auto found = shape.places.find(key);
  return found == shape.places.end() ? std::nullopt : std::optional(found->second);
}

Result<std::optional<size_t>> PatternTable::first_match(std::string_view name,
                                                        RegexBudget& budget) const {
  std::optional<size_t> first;
  for (const Shape& shape : shapes_)
    if (const auto place = match(shape, name); place && (!first || *place < *first)) first = place;
  for (const auto& [place, pattern] : regexes_) {
    if (first && *first < place) break;
    VALORA_TRY(hit, pattern.matches(name, budget));
    if (hit) return std::optional(place);
  }
  return first;
}

}  // namespace valora::adapters
