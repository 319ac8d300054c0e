// The values of templates: Python's types as templates use them. Immutable except for namespaces.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "base/result.h"
#include "jinja/budget.h"

namespace valora::jinja {

class Dict;
class Loop;
struct Callable;
struct Namespace;
struct Sequence;
struct Str;

// A Python int above 2^63 - 1, such as an unsigned identifier of 64 bits. It is printed, compared
// and turned into a float; integer arithmetic with it is a fault.
struct Large {
  uint64_t value = 0;
  bool operator==(const Large&) const = default;
};

struct None {};
// Prints nothing and iterates over nothing. Other uses are faults with the message `why`.
struct Undefined {
  std::shared_ptr<const std::string> why;
};

using StrPtr = std::shared_ptr<const Str>;
using SequencePtr = std::shared_ptr<const Sequence>;
using DictPtr = std::shared_ptr<const Dict>;
using NamespacePtr = std::shared_ptr<Namespace>;
using LoopPtr = std::shared_ptr<Loop>;
using CallablePtr = std::shared_ptr<const Callable>;

class Value {
 public:
  using Data = std::variant<None, Undefined, bool, int64_t, Large, double, StrPtr, SequencePtr,
                            DictPtr, NamespacePtr, LoopPtr, CallablePtr>;
  Value() = default;
  template <typename T>
    requires(!std::is_same_v<std::remove_cvref_t<T>, Value> && std::is_constructible_v<Data, T>)
  Value(T&& data) : data_(std::forward<T>(data)) {}  // NOLINT: implicit by design
  static Value undefined(std::string why);

  template <typename T>
  const T* as() const {
    return std::get_if<T>(&data_);
  }
  bool is_none() const { return std::holds_alternative<None>(data_); }
  bool is_undefined() const { return std::holds_alternative<Undefined>(data_); }
  bool is_string() const { return std::holds_alternative<StrPtr>(data_); }
  const std::string& text() const;  // for strings only
  const Data& data() const { return data_; }

 private:
  Data data_;
};

struct Str {
  std::string text;     // valid UTF-8
  bool ascii = false;   // if true, an index is a byte offset
  bool markup = false;  // marked as safe or escaped
};

struct Sequence {
  // Iterators (of map, select, reverse …) can be used once. Views belong to a dict.
  enum class Kind : uint8_t { kList, kTuple, kRange, kKeys, kValues, kItems, kIterator };
  Kind kind = Kind::kList;
  std::vector<Value> items;
  int depth = 1;
  int64_t start = 0, stop = 0, step = 1;  // for a range
  mutable size_t consumed = 0;            // for an iterator

  bool has_length() const { return kind != Kind::kIterator; }
  bool indexable() const {
    return kind == Kind::kList || kind == Kind::kTuple || kind == Kind::kRange;
  }
};

struct KeyHash {
  size_t operator()(const Value& key) const;
};
struct KeyEqual {
  bool operator()(const Value& a, const Value& b) const;
};

class Dict {
 public:
  using Entry = std::pair<Value, Value>;
  const std::vector<Entry>& entries() const { return entries_; }
  const Value* find(const Value& key) const;  // key must be hashable
  const Value* find(std::string_view key) const;
  int depth() const { return depth_; }

 private:
  friend Result<Value> make_dict(Budget& budget, std::vector<Entry> entries);
  std::vector<Entry> entries_;
  std::unordered_map<Value, size_t, KeyHash, KeyEqual> index_;
  int depth_ = 1;
};

struct Namespace {
  std::vector<std::pair<std::string, Value>> attributes;
  const Value* find(std::string_view name) const;
  void set(const std::string& name, Value value);
};

struct CallArgs {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;
};

struct Runtime;

struct Callable {
  virtual ~Callable() = default;
  virtual Result<Value> call(Runtime& runtime, CallArgs args) const = 0;
  virtual int depth() const { return 1; }
};

Result<Value> make_string(Budget& budget, std::string text, bool markup = false);
// Exempt from any budget: for literals and short texts. The text must be valid UTF-8.
Value literal_string(std::string text);
Result<Value> make_sequence(Budget& budget, Sequence::Kind kind, std::vector<Value> items);
inline Result<Value> make_list(Budget& budget, std::vector<Value> items) {
  return make_sequence(budget, Sequence::Kind::kList, std::move(items));
}
// A repeated key keeps its first position and its last value, as in Python. Unhashable keys are
// faults.
Result<Value> make_dict(Budget& budget, std::vector<Dict::Entry> entries);

bool truth(const Value& value);
int depth_of(const Value& value);
// Python's name of the type: "str", "dict", …
std::string_view type_name(const Value& value);
// The value of an int of 64 bits or a bool.
std::optional<int64_t> as_integer(const Value& value);
// The value of an int, a bool or a float.
std::optional<double> as_number(const Value& value);
bool hashable(const Value& value);
// Python's len(); a fault for values without a length.
Result<int64_t> length_of(const Value& value);

}  // namespace valora::jinja
