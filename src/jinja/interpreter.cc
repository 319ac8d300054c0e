#include "jinja/interpreter.h"

#include <algorithm>

#include "base/text/strings.h"
#include "jinja/builtins/arguments.h"
#include "jinja/builtins/builtins.h"
#include "jinja/evaluating.h"
#include "jinja/interpreter_state.h"
#include "jinja/loop.h"
#include "jinja/values/format.h"

namespace valora::jinja {
namespace {

struct MacroFunction final : Callable {
  MacroFunction(Interpreter& interpreter, const Macro& macro, std::weak_ptr<Scope> scope)
      : interpreter(interpreter), macro(macro), scope(std::move(scope)) {}
  Result<Value> call(Runtime&, CallArgs args) const override {
    return interpreter.call_macro(macro, scope, std::move(args));
  }

  Interpreter& interpreter;
  const Macro& macro;
  std::weak_ptr<Scope> scope;  // the scope that holds this macro
};

}  // namespace

class Interpreter::Entered {
 public:
  Entered(Interpreter& interpreter, std::shared_ptr<Scope> scope)
      : interpreter_(interpreter), before_(std::exchange(interpreter.scope_, std::move(scope))) {}
  ~Entered() { interpreter_.scope_ = std::move(before_); }
  Entered(const Entered&) = delete;
  Entered& operator=(const Entered&) = delete;

 private:
  Interpreter& interpreter_;
  std::shared_ptr<Scope> before_;
};

class Interpreter::Captured {
 public:
  explicit Captured(Interpreter& interpreter)
      : interpreter_(interpreter), before_(std::exchange(interpreter.out_, {})) {}
  ~Captured() { interpreter_.out_ = std::move(before_); }
  Captured(const Captured&) = delete;
  Captured& operator=(const Captured&) = delete;
  std::string take() { return std::exchange(interpreter_.out_, {}); }

 private:
  Interpreter& interpreter_;
  std::string before_;
};

Result<std::string> Interpreter::run(const Template& source) {
  scope_ = std::make_shared<Scope>(nullptr);
  const auto flow = execute(source.body);
  if (flow.ok()) return std::move(out_);
  Error error = flow.error();
  if (!runtime_.raised)
    error.message =
        "the chat template failed at line " + std::to_string(line_) + ": " + error.message;
  return error;
}

Status Interpreter::append(std::string_view text) {
  if (out_.size() + text.size() > kMaxStringBytes)
    return fault("the template writes more than " + std::to_string(kMaxStringBytes >> 20) + " MiB");
  VALORA_CHECK(runtime_.budget.take(text.size()));
  out_ += text;
  return {};
}

Result<std::shared_ptr<Scope>> Interpreter::new_scope(std::shared_ptr<Scope> parent) {
  VALORA_CHECK(runtime_.budget.take(2 * sizeof(Scope)));
  return std::make_shared<Scope>(std::move(parent));
}

Result<Interpreter::Flow> Interpreter::execute(const Body& body) {
  for (const Statement& statement : body) {
    VALORA_TRY(flow, execute(statement));
    if (flow != Flow::kNext) return flow;
  }
  return Flow::kNext;
}

Result<Interpreter::Flow> Interpreter::execute(const Statement& statement) {
  const Evaluating level(runtime_);
  VALORA_CHECK(level.status());
  line_ = statement.line;
  return std::visit([this](const auto& node) { return run_node(node); }, statement.node);
}

Result<Interpreter::Flow> Interpreter::run_node(const Text& node) {
  VALORA_CHECK(append(node.text));
  return Flow::kNext;
}

Result<Interpreter::Flow> Interpreter::run_node(const Output& node) {
  VALORA_TRY(value, evaluate(*node.value));
  if (value.is_string()) {
    VALORA_CHECK(append(value.text()));
  } else {
    VALORA_TRY(text, to_text(runtime_.budget, value));
    VALORA_CHECK(append(text));
  }
  return Flow::kNext;
}

Result<Interpreter::Flow> Interpreter::run_node(const If& node) {
  for (const auto& [condition, body] : node.branches) {
    VALORA_TRY(value, evaluate(*condition));
    if (truth(value)) return execute(body);
  }
  return execute(node.otherwise);
}

// The loop's condition sees the item, but none of the body's variables. As in jinja2, an item that
// is unpacked is from then on a tuple.
Result<std::optional<Value>> Interpreter::wanted(const For& node, const Value& item) {
  VALORA_TRY(scope, new_scope(scope_));
  const Entered entered(*this, std::move(scope));
  VALORA_CHECK(assign(node.target, item));
  VALORA_TRY(value, evaluate(*node.condition));
  if (!truth(value)) return std::optional<Value>{};
  if (!node.target.tuple) return std::optional<Value>(item);
  VALORA_TRY(parts, target_value(node.target));
  return std::optional<Value>(std::move(parts));
}

// Returns true if any iteration ran to its end. If none did, the else block runs.
Result<bool> Interpreter::run_iterations(const For& node, Loop& loop, const Value& loop_value) {
  bool completed = false;
  for (;;) {
    VALORA_TRY(item, loop.next(runtime_.budget));
    if (!item) return completed;
    VALORA_TRY(scope, new_scope(scope_));
    const Entered entered(*this, std::move(scope));
    scope_->set("loop", loop_value);
    VALORA_CHECK(assign(node.target, *item));
    VALORA_TRY(flow, execute(node.body));
    if (flow == Flow::kBreak) return completed;
    if (flow == Flow::kNext) completed = true;
  }
}

Result<Interpreter::Flow> Interpreter::run_node(const For& node) {
  VALORA_TRY(iterable, evaluate(*node.iterable));
  VALORA_TRY(iterator, Iterator::over(iterable));
  Loop::Condition condition;
  // The body may trigger it too, because loop.last looks ahead, but it is always evaluated in the
  // scope around the loop.
  if (node.condition)
    condition = [this, &node, around = scope_](const Value& item) -> Result<std::optional<Value>> {
      const Entered entered(*this, around);
      return wanted(node, item);
    };
  const auto loop = std::make_shared<Loop>(iterable, std::move(iterator), std::move(condition));
  const auto completed = run_iterations(node, *loop, loop);
  loop->finish();
  if (!completed.ok()) return completed.error();
  if (*completed || node.otherwise.empty()) return Flow::kNext;
  VALORA_TRY(scope, new_scope(scope_));
  const Entered entered(*this, std::move(scope));
  return execute(node.otherwise);
}

Result<Interpreter::Flow> Interpreter::run_node(const Set& node) {
  VALORA_TRY(value, evaluate(*node.value));
  VALORA_CHECK(assign(node.target, value));
  return Flow::kNext;
}

Result<Value> Interpreter::filtered(const Expr& filter, std::string text) {
  VALORA_TRY(subject, make_string(runtime_.budget, std::move(text)));
  const Value before = std::exchange(block_text_, std::move(subject));
  auto result = evaluate(filter);
  block_text_ = before;
  return result;
}

Result<Interpreter::Flow> Interpreter::run_node(const SetBlock& node) {
  std::string text;
  {
    VALORA_TRY(scope, new_scope(scope_));
    const Entered entered(*this, std::move(scope));
    Captured captured(*this);
    if (const auto flow = execute(node.body); !flow.ok()) return flow.error();
    text = captured.take();
  }
  VALORA_TRY(value, node.filter ? filtered(*node.filter, std::move(text))
                                : make_string(runtime_.budget, std::move(text)));
  VALORA_CHECK(assign(node.target, value));
  return Flow::kNext;
}

Result<Interpreter::Flow> Interpreter::run_node(const FilterBlock& node) {
  std::string text;
  auto flow = Flow::kNext;
  {
    VALORA_TRY(scope, new_scope(scope_));
    const Entered entered(*this, std::move(scope));
    Captured captured(*this);
    VALORA_TRY(ended, execute(node.body));
    flow = ended;
    text = captured.take();
  }
  if (flow != Flow::kNext) return flow;  // the collected text is dropped, as in jinja2
  VALORA_TRY(value, filtered(*node.filter, std::move(text)));
  VALORA_TRY(result, to_text(runtime_.budget, value));
  VALORA_CHECK(append(result));
  return Flow::kNext;
}

Result<Interpreter::Flow> Interpreter::run_node(const With& node) {
  VALORA_TRY(scope, new_scope(scope_));
  for (const auto& [name, expr] : node.variables) {
    VALORA_TRY(value, evaluate(*expr));
    scope->set(name, std::move(value));
  }
  const Entered entered(*this, std::move(scope));
  return execute(node.body);
}

Result<Interpreter::Flow> Interpreter::run_node(const Generation& node) {
  VALORA_TRY(scope, new_scope(scope_));
  const Entered entered(*this, std::move(scope));
  return execute(node.body);
}

Result<Interpreter::Flow> Interpreter::run_node(const Macro& node) {
  VALORA_CHECK(runtime_.budget.take(sizeof(MacroFunction)));
  scope_->set(node.name, CallablePtr(std::make_shared<MacroFunction>(*this, node, scope_)));
  return Flow::kNext;
}

Result<Value> Interpreter::call_macro(const Macro& macro, const std::weak_ptr<Scope>& defined_in,
                                      CallArgs args) {
  const std::string name = "macro '" + macro.name + "'";
  auto around = defined_in.lock();
  if (!around)
    return fault(name + " is called outside the block that defines it, which is not supported");
  if (args.positional.size() > macro.parameters.size())
    return fault(name + " takes not more than " + std::to_string(macro.parameters.size()) +
                 " argument(s)");
  VALORA_TRY(scope, new_scope(std::move(around)));
  const Entered entered(*this, std::move(scope));
  for (size_t i = 0; i < macro.parameters.size(); ++i) {
    const auto& [parameter, default_value] = macro.parameters[i];
    const auto named = std::ranges::find(
        args.named, parameter, [](const auto& arg) -> const std::string& { return arg.first; });
    Value value = Value::undefined("parameter '" + parameter + "' was not provided");
    if (i < args.positional.size()) {
      value = std::move(args.positional[i]);
    } else if (named != args.named.end()) {
      value = std::move(named->second);
      args.named.erase(named);
    } else if (default_value) {
      VALORA_TRY(evaluated, evaluate(*default_value));
      value = std::move(evaluated);
    }
    scope_->set(parameter, std::move(value));
  }
  if (!args.named.empty())
    return fault(name + " takes no keyword argument '" + shortened(args.named[0].first, 80) + "'");
  Captured captured(*this);
  if (const auto flow = execute(macro.body); !flow.ok()) return flow.error();
  return make_string(runtime_.budget, captured.take());
}

Result<std::string> render(const Template& source, Runtime& runtime, const Variables& variables) {
  return Interpreter(runtime, variables).run(source);
}

}  // namespace valora::jinja
