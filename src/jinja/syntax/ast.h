// The syntax tree of a template.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "jinja/values/value.h"

namespace valora::jinja {

struct Expr;
using ExprPtr = std::unique_ptr<Expr>;

struct Literal {
  Value value;
};
struct Name {
  std::string name;
};
struct SequenceLiteral {
  bool tuple = false;
  std::vector<ExprPtr> items;
};
struct DictLiteral {
  std::vector<std::pair<ExprPtr, ExprPtr>> entries;
};
struct Attribute {
  ExprPtr object;
  std::string name;
};
struct Item {
  ExprPtr object, key;
};
struct Slice {
  ExprPtr object, start, stop, step;  // null if absent
};
struct Arguments {
  std::vector<ExprPtr> positional;
  std::vector<std::pair<std::string, ExprPtr>> named;
  ExprPtr unpacked, unpacked_named;  // for *list and **dict; may be null
};
struct Call {
  ExprPtr function;
  Arguments arguments;
};
struct Filter {
  ExprPtr subject;  // null in a filter block, which filters its own text
  std::string name;
  Arguments arguments;
};
struct Test {
  ExprPtr subject;
  std::string name;
  Arguments arguments;
};
struct Unary {
  enum class Op : uint8_t { kNot, kMinus, kPlus };
  Op op;
  ExprPtr operand;
};
struct Binary {
  enum class Op : uint8_t {
    kAdd,
    kSubtract,
    kMultiply,
    kDivide,
    kFloorDivide,
    kModulo,
    kPower,
    kAnd,
    kOr
  };
  Op op;
  ExprPtr left, right;
};
struct Concat {
  std::vector<ExprPtr> parts;
};
struct Compare {
  enum class Op : uint8_t {
    kEqual,
    kNotEqual,
    kLess,
    kLessEqual,
    kGreater,
    kGreaterEqual,
    kIn,
    kNotIn
  };
  ExprPtr first;
  std::vector<std::pair<Op, ExprPtr>> rest;
};
struct Conditional {
  ExprPtr condition, then, otherwise;  // otherwise may be null
};

struct Expr {
  using Node = std::variant<Literal, Name, SequenceLiteral, DictLiteral, Attribute, Item, Slice,
                            Call, Filter, Test, Unary, Binary, Concat, Compare, Conditional>;
  int line;
  Node node;
  int depth = 1;
};

struct Statement;
using Body = std::vector<Statement>;

// What is assigned to: a name, a namespace's attribute, or a tuple of targets.
struct Target {
  std::string name, attribute;  // attribute may be empty
  std::vector<Target> parts;    // for a tuple, whose name is empty
  bool tuple = false;
};

struct Text {
  std::string text;
};
struct Output {
  ExprPtr value;
};
struct If {
  std::vector<std::pair<ExprPtr, Body>> branches;
  Body otherwise;
};
struct For {
  Target target;
  ExprPtr iterable, condition;  // condition may be null
  Body body, otherwise;
};
struct Set {
  Target target;
  ExprPtr value;
};
struct SetBlock {
  Target target;
  ExprPtr filter;  // may be null
  Body body;
};
struct Macro {
  std::string name;
  std::vector<std::pair<std::string, ExprPtr>> parameters;  // with the default value, or null
  Body body;
};
struct FilterBlock {
  ExprPtr filter;
  Body body;
};
struct With {
  std::vector<std::pair<std::string, ExprPtr>> variables;
  Body body;
};
struct Generation {
  Body body;
};
struct Break {};
struct Continue {};

struct Statement {
  using Node = std::variant<Text, Output, If, For, Set, SetBlock, Macro, FilterBlock, With,
                            Generation, Break, Continue>;
  int line;
  Node node;
};

struct Template {
  Body body;
};

template <typename... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};
template <typename... Cases>
Overloaded(Cases...) -> Overloaded<Cases...>;  // clang 16 does not deduce it for the aggregate

// Calls visit(const Expr&) for each part that exists, in source order.
template <typename Visit>
void each_part(const Expr& expr, Visit visit) {
  const auto one = [&](const ExprPtr& part) {
    if (part) visit(*part);
  };
  const auto all = [&](const std::vector<ExprPtr>& parts) { std::ranges::for_each(parts, one); };
  const auto arguments = [&](const Arguments& args) {
    all(args.positional);
    for (const auto& named : args.named) one(named.second);
    one(args.unpacked), one(args.unpacked_named);
  };
  std::visit(
      Overloaded{[](const Literal&) {}, [](const Name&) {},
                 [&](const SequenceLiteral& e) { all(e.items); },
                 [&](const DictLiteral& e) {
                   for (const auto& [key, value] : e.entries) one(key), one(value);
                 },
                 [&](const Attribute& e) { one(e.object); },
                 [&](const Item& e) { one(e.object), one(e.key); },
                 [&](const Slice& e) { one(e.object), one(e.start), one(e.stop), one(e.step); },
                 [&](const Call& e) { one(e.function), arguments(e.arguments); },
                 [&](const Filter& e) { one(e.subject), arguments(e.arguments); },
                 [&](const Test& e) { one(e.subject), arguments(e.arguments); },
                 [&](const Unary& e) { one(e.operand); },
                 [&](const Binary& e) { one(e.left), one(e.right); },
                 [&](const Concat& e) { all(e.parts); },
                 [&](const Compare& e) {
                   one(e.first);
                   for (const auto& operand : e.rest) one(operand.second);
                 },
                 [&](const Conditional& e) { one(e.condition), one(e.then), one(e.otherwise); }},
      expr.node);
}

}  // namespace valora::jinja
