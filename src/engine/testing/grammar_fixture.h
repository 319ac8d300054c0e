// Test fixture: requests that require a form of answer.
#pragma once

#include <string>
#include <vector>

#include "engine/testing/engine_fixture.h"

namespace valora::testing {

inline constexpr int32_t kEos = 260;

class GrammarTest : public EngineTest {
 protected:
  static GenerateRequest under(GenerateRequest request, AnswerConstraint constraint) {
    constraint.param = "field";
    request.constraint = std::move(constraint);
    request.sampling.ignore_eos = false;
    return request;
  }
  static AnswerConstraint regex(const std::string& text) {
    return {AnswerConstraint::Kind::kRegex, text, {}, true, {}};
  }
  static AnswerConstraint choice(std::vector<std::string> choices) {
    return {AnswerConstraint::Kind::kChoice, {}, std::move(choices), true, {}};
  }
  static GenerateRequest sampled(GenerateRequest request, int64_t seed) {
    request.sampling.temperature = 1;
    request.sampling.seed = seed;
    return request;
  }
  const GenerateRequest ask_ = ask(numbered_prompt(30, 3), 60);
};

}  // namespace valora::testing
