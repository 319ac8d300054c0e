#include "base/text/strings.h"
#include "jinja/builtins/arguments.h"
#include "jinja/builtins/builtins.h"
#include "jinja/evaluating.h"
#include "jinja/interpreter_state.h"
#include "jinja/values/access.h"
#include "jinja/values/format.h"
#include "jinja/values/operators.h"
#include "jinja/values/slices.h"

namespace valora::jinja {
namespace {

constexpr size_t kMaxNamedArguments = 1000;

}  // namespace

Result<Value> Interpreter::evaluate(const Expr& expr) {
  const Evaluating level(runtime_);
  VALORA_CHECK(level.status());
  line_ = expr.line;
  return std::visit([this](const auto& node) { return value_of(node); }, expr.node);
}

Result<Value> Interpreter::evaluate_or_none(const ExprPtr& expr) {
  if (!expr) return Value(None{});
  return evaluate(*expr);
}

Value Interpreter::resolve(const std::string& name) const {
  if (const Value* found = scope_->find(name)) return *found;
  if (const auto it = variables_.find(name); it != variables_.end()) return it->second;
  if (CallablePtr global = find_global(name)) return global;
  return Value::undefined("'" + name + "' is undefined");
}

Result<Value> Interpreter::value_of(const Name& node) { return resolve(node.name); }

Result<Value> Interpreter::value_of(const SequenceLiteral& node) {
  std::vector<Value> items;
  for (const ExprPtr& part : node.items) {
    VALORA_TRY(item, evaluate(*part));
    items.push_back(std::move(item));
  }
  return make_sequence(runtime_.budget, node.tuple ? Sequence::Kind::kTuple : Sequence::Kind::kList,
                       std::move(items));
}

Result<Value> Interpreter::value_of(const DictLiteral& node) {
  std::vector<Dict::Entry> entries;
  for (const auto& [key_part, value_part] : node.entries) {
    VALORA_TRY(key, evaluate(*key_part));
    VALORA_TRY(value, evaluate(*value_part));
    entries.emplace_back(std::move(key), std::move(value));
  }
  return make_dict(runtime_.budget, std::move(entries));
}

Result<Value> Interpreter::value_of(const Attribute& node) {
  VALORA_TRY(object, evaluate(*node.object));
  return get_attribute(runtime_, object, node.name);
}

Result<Value> Interpreter::value_of(const Item& node) {
  VALORA_TRY(object, evaluate(*node.object));
  VALORA_TRY(key, evaluate(*node.key));
  return get_item(runtime_, object, key);
}

Result<Value> Interpreter::value_of(const Slice& node) {
  VALORA_TRY(object, evaluate(*node.object));
  VALORA_TRY(start, evaluate_or_none(node.start));
  VALORA_TRY(stop, evaluate_or_none(node.stop));
  VALORA_TRY(step, evaluate_or_none(node.step));
  return slice(runtime_.budget, object, start, stop, step);
}

Result<CallArgs> Interpreter::evaluate(const Arguments& arguments) {
  CallArgs args;
  for (const ExprPtr& part : arguments.positional) {
    VALORA_TRY(value, evaluate(*part));
    args.positional.push_back(std::move(value));
  }
  for (const auto& [name, part] : arguments.named) {
    VALORA_TRY(value, evaluate(*part));
    args.named.emplace_back(name, std::move(value));
  }
  VALORA_CHECK(unpack(arguments, args));
  return args;
}

Status Interpreter::unpack(const Arguments& arguments, CallArgs& args) {
  if (arguments.unpacked) {
    VALORA_TRY(list, evaluate(*arguments.unpacked));
    VALORA_TRY(items, items_of(runtime_.budget, list));
    args.positional.insert(args.positional.end(), items.begin(), items.end());
  }
  if (!arguments.unpacked_named) return {};
  VALORA_TRY(named, evaluate(*arguments.unpacked_named));
  const auto* dict = named.as<DictPtr>();
  if (!dict)
    return fault("argument after ** must be a mapping, not " + std::string(type_name(named)));
  if ((*dict)->entries().size() > kMaxNamedArguments)
    return fault("more than " + std::to_string(kMaxNamedArguments) +
                 " arguments after ** are not supported");
  for (const auto& [key, value] : (*dict)->entries()) {
    VALORA_TRY(name, expect_string(key, "the name of an argument"));
    for (const auto& given : args.named)
      if (given.first == name)
        return fault("got multiple values for keyword argument '" + shortened(name, 80) + "'");
    args.named.emplace_back(std::string(name), value);
  }
  return {};
}

Result<Value> Interpreter::value_of(const Call& node) {
  const int line = line_;
  VALORA_TRY(function, evaluate(*node.function));
  VALORA_TRY(args, evaluate(node.arguments));
  line_ = line;
  if (function.is_undefined()) return undefined_fault(function);
  if (function.as<LoopPtr>())
    return fault("The loop must have the 'recursive' marker to be called recursively.");
  const auto* callable = function.as<CallablePtr>();
  if (!callable) return fault("'" + std::string(type_name(function)) + "' object is not callable");
  return (*callable)->call(runtime_, std::move(args));
}

Result<Value> Interpreter::value_of(const Filter& node) {
  const int line = line_;
  Value subject = block_text_;
  if (node.subject) {
    VALORA_TRY(value, evaluate(*node.subject));
    subject = std::move(value);
  }
  VALORA_TRY(args, evaluate(node.arguments));
  line_ = line;
  return apply_filter(runtime_, node.name, subject, std::move(args));
}

Result<Value> Interpreter::value_of(const Test& node) {
  VALORA_TRY(subject, evaluate(*node.subject));
  VALORA_TRY(args, evaluate(node.arguments));
  VALORA_TRY(answer, apply_test(runtime_, node.name, subject, args));
  return Value(answer);
}

Result<Value> Interpreter::value_of(const Unary& node) {
  VALORA_TRY(operand, evaluate(*node.operand));
  return apply(node.op, operand);
}

Result<Value> Interpreter::value_of(const Binary& node) {
  VALORA_TRY(left, evaluate(*node.left));
  if (node.op == Binary::Op::kAnd || node.op == Binary::Op::kOr) {
    if (truth(left) == (node.op == Binary::Op::kOr)) return left;
    return evaluate(*node.right);
  }
  VALORA_TRY(right, evaluate(*node.right));
  return apply(runtime_.budget, node.op, left, right);
}

Result<Value> Interpreter::value_of(const Concat& node) {
  std::string text;
  for (const ExprPtr& part : node.parts) {
    VALORA_TRY(value, evaluate(*part));
    VALORA_TRY(piece, to_text(runtime_.budget, value));
    text += piece;
    if (text.size() > kMaxStringBytes) break;
  }
  return make_string(runtime_.budget, std::move(text));
}

Result<bool> Interpreter::holds(Compare::Op op, const Value& left, const Value& right) {
  Budget& budget = runtime_.budget;
  switch (op) {
    case Compare::Op::kEqual: return equal(budget, left, right);
    case Compare::Op::kNotEqual: {
      VALORA_TRY(same, equal(budget, left, right));
      return !same;
    }
    case Compare::Op::kIn: return contains(budget, right, left);
    case Compare::Op::kNotIn: {
      VALORA_TRY(inside, contains(budget, right, left));
      return !inside;
    }
    case Compare::Op::kLess: {
      VALORA_TRY(sign, order(budget, left, right, "<"));
      return sign == -1;
    }
    case Compare::Op::kLessEqual: {
      VALORA_TRY(sign, order(budget, left, right, "<="));
      return sign == -1 || sign == 0;
    }
    case Compare::Op::kGreater: {
      VALORA_TRY(sign, order(budget, left, right, ">"));
      return sign == 1;
    }
    default: {
      VALORA_TRY(sign, order(budget, left, right, ">="));
      return sign == 1 || sign == 0;
    }
  }
}

Result<Value> Interpreter::value_of(const Compare& node) {
  VALORA_TRY(left, evaluate(*node.first));
  for (const auto& [op, operand] : node.rest) {
    VALORA_TRY(right, evaluate(*operand));
    VALORA_TRY(result, holds(op, left, right));
    if (!result) return Value(false);
    left = std::move(right);
  }
  return Value(true);
}

Result<Value> Interpreter::value_of(const Conditional& node) {
  const int line = line_;
  VALORA_TRY(condition, evaluate(*node.condition));
  if (truth(condition)) return evaluate(*node.then);
  if (node.otherwise) return evaluate(*node.otherwise);
  return Value::undefined("the inline if-expression on line " + std::to_string(line) +
                          " evaluated to false and no else section was defined.");
}

}  // namespace valora::jinja
