// The interpreter: expressions in evaluate.cc, statements in interpreter.cc.
#pragma once

#include "jinja/interpreter.h"
#include "jinja/scope.h"

namespace valora::jinja {

class Interpreter {
 public:
  Interpreter(Runtime& runtime, const Variables& variables)
      : runtime_(runtime), variables_(variables) {}

  Result<std::string> run(const Template& source);
  Result<Value> call_macro(const Macro& macro, const std::weak_ptr<Scope>& defined_in,
                           CallArgs args);

 private:
  enum class Flow : uint8_t { kNext, kBreak, kContinue };
  class Entered;     // makes a scope current within a C++ scope
  class Captured;    // collects the output within a C++ scope
  class Evaluating;  // one level of recursion within a C++ scope

  Result<Flow> execute(const Body& body);
  Result<Flow> execute(const Statement& statement);
  Result<Flow> run_node(const Text& node);
  Result<Flow> run_node(const Output& node);
  Result<Flow> run_node(const If& node);
  Result<Flow> run_node(const For& node);
  Result<Flow> run_node(const Set& node);
  Result<Flow> run_node(const SetBlock& node);
  Result<Flow> run_node(const Macro& node);
  Result<Flow> run_node(const FilterBlock& node);
  Result<Flow> run_node(const With& node);
  Result<Flow> run_node(const Generation& node);
  Result<Flow> run_node(const Break&) { return Flow::kBreak; }
  Result<Flow> run_node(const Continue&) { return Flow::kContinue; }

  Result<Value> evaluate(const Expr& expr);
  Result<Value> value_of(const Literal& node) { return node.value; }
  Result<Value> value_of(const Name& node);
  Result<Value> value_of(const SequenceLiteral& node);
  Result<Value> value_of(const DictLiteral& node);
  Result<Value> value_of(const Attribute& node);
  Result<Value> value_of(const Item& node);
  Result<Value> value_of(const Slice& node);
  Result<Value> value_of(const Call& node);
  Result<Value> value_of(const Filter& node);
  Result<Value> value_of(const Test& node);
  Result<Value> value_of(const Unary& node);
  Result<Value> value_of(const Binary& node);
  Result<Value> value_of(const Concat& node);
  Result<Value> value_of(const Compare& node);
  Result<Value> value_of(const Conditional& node);
  Result<CallArgs> evaluate(const Arguments& arguments);
  Status unpack(const Arguments& arguments, CallArgs& args);
  Result<Value> evaluate_or_none(const ExprPtr& expr);
  Result<bool> holds(Compare::Op op, const Value& left, const Value& right);

  Status append(std::string_view text);
  Status assign(const Target& target, const Value& value);
  Status assign_parts(const std::vector<Target>& targets, const Value& value);
  Result<std::shared_ptr<Scope>> new_scope(std::shared_ptr<Scope> parent);
  Result<std::optional<Value>> wanted(const For& node, const Value& item);
  Result<Value> target_value(const Target& target);
  Result<bool> run_iterations(const For& node, Loop& loop, const Value& loop_value);
  Result<Value> filtered(const Expr& filter, std::string text);
  Value resolve(const std::string& name) const;

  Runtime& runtime_;
  const Variables& variables_;
  std::shared_ptr<Scope> scope_;
  std::string out_;
  Value block_text_;  // the subject of a filter block's filters
  int line_ = 1;
};

}  // namespace valora::jinja
