// Counts one level of the interpreter's recursion.
#pragma once

#include "jinja/interpreter_state.h"

namespace valora::jinja {

class Interpreter::Evaluating {
 public:
  explicit Evaluating(Runtime& runtime) : runtime_(runtime) { ++runtime_.evaluating; }
  ~Evaluating() { --runtime_.evaluating; }
  Evaluating(const Evaluating&) = delete;
  Evaluating& operator=(const Evaluating&) = delete;

  Status status() const {
    if (runtime_.evaluating > kMaxEvaluationDepth)
      return fault("the template's macros and blocks nest deeper than " +
                   std::to_string(kMaxEvaluationDepth) + " levels");
    return runtime_.budget.step();
  }

 private:
  Runtime& runtime_;
};

}  // namespace valora::jinja
