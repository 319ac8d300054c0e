// Builds JSON trees from the events of the library's parser, in linear time: the library's own
// builder visits the earlier members of an object after each nested value if it has a callback, and
// its ordered objects compare each key with all earlier ones.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/json/json.h"

namespace valora {

// A handler for Tree::sax_parse(). Of equal keys of an object the last value is kept.
template <typename Tree>
class JsonTree {
 public:
  using number_integer_t = typename Tree::number_integer_t;
  using number_unsigned_t = typename Tree::number_unsigned_t;
  using number_float_t = typename Tree::number_float_t;
  using string_t = typename Tree::string_t;
  using binary_t = typename Tree::binary_t;

  bool null() { return add(nullptr); }
  bool boolean(bool value) { return add(value); }
  bool number_integer(number_integer_t value) { return add(value); }
  bool number_unsigned(number_unsigned_t value) { return add(value); }
  bool number_float(number_float_t value, const string_t&) { return add(value); }
  bool string(string_t& value) { return add(std::move(value)); }
  bool binary(binary_t& value) { return add(std::move(value)); }
  bool start_object(size_t) { return open(Tree::value_t::object); }
  bool start_array(size_t) { return open(Tree::value_t::array); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }
  bool key(string_t& key) {
    Open& parent = open_.back();
    auto& object = parent.value->template get_ref<typename Tree::object_t&>();
    const auto [value, added] = member(object, parent, key);
    if (!added && !duplicate_) duplicate_ = key;
    member_ = value;
    return true;
  }
  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception& error) {
    error_ = error.what();
    return false;
  }

  Tree take() { return std::move(root_); }
  const std::string& error() const { return error_; }  // the library's message; empty: none
  // The first key that an object has twice.
  const std::optional<string_t>& duplicate() const { return duplicate_; }

 private:
  static constexpr bool kOrdered = std::is_same_v<Tree, nlohmann::ordered_json>;
  // Objects with fewer keys are searched.
  static constexpr size_t kIndexed = 16;

  // An object or array whose end has not been read. It stays where it is until then, because its
  // parent does not grow.
  struct Open {
    Tree* value;
    std::unordered_map<string_t, size_t> places = {};  // of a large ordered object
  };

  // The member of this key, and whether it is new. The key is moved from if it is.
  static std::pair<Tree*, bool> member(typename Tree::object_t& object, Open& parent,
                                       string_t& key) {
    if constexpr (!kOrdered) {
      const auto [at, added] = object.emplace(std::move(key), nullptr);
      if (!added) key = at->first;
      return {&at->second, added};
    } else {
      if (object.size() < kIndexed) {
        const auto [at, added] = object.emplace(key, nullptr);
        return {&at->second, added};
      }
      typename Tree::object_t::Container& members = object;
      if (parent.places.empty())
        for (size_t i = 0; i < members.size(); ++i) parent.places.emplace(members[i].first, i);
      const auto [place, added] = parent.places.emplace(key, members.size());
      if (added) members.emplace_back(std::move(key), nullptr);
      return {&members[place->second].second, added};
    }
  }

  template <typename Value>
  Tree* place(Value&& value) {
    if (open_.empty()) {
      root_ = std::forward<Value>(value);
      return &root_;
    }
    if (Tree& parent = *open_.back().value; parent.is_array()) {
      auto& array = parent.template get_ref<typename Tree::array_t&>();
      array.emplace_back(std::forward<Value>(value));
      return &array.back();
    }
    *member_ = std::forward<Value>(value);
    return member_;
  }
  template <typename Value>
  bool add(Value&& value) {
    place(std::forward<Value>(value));
    return true;
  }
  bool open(typename Tree::value_t kind) {
    open_.push_back({place(kind)});
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }

  Tree root_;
  std::vector<Open> open_;
  Tree* member_ = nullptr;  // of the key that was read last
  std::optional<string_t> duplicate_;
  std::string error_;
};

}  // namespace valora
