// A list of labels. Copies share it: a head may have half a million labels, and its list is part of
// every card and answer.
#pragma once

#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace valora {

class Labels {
 public:
  Labels() = default;
  Labels(std::vector<std::string> list)  // NOLINT: implicit by design
      : list_(std::make_shared<const std::vector<std::string>>(std::move(list))) {}
  Labels(std::initializer_list<std::string> list) : Labels(std::vector<std::string>(list)) {}

  const std::vector<std::string>& list() const {
    static const std::vector<std::string> kNone;
    return list_ ? *list_ : kNone;
  }
  size_t size() const { return list().size(); }
  bool empty() const { return list().empty(); }
  auto begin() const { return list().begin(); }
  auto end() const { return list().end(); }
  const std::string& operator[](size_t i) const { return list()[i]; }
  bool operator==(const Labels& other) const { return list() == other.list(); }

 private:
  std::shared_ptr<const std::vector<std::string>> list_;  // null: empty
};

}  // namespace valora
