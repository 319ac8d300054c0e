// Renders templates in one call, for tests.
#pragma once

#include <string>

#include "jinja/interpreter.h"
#include "jinja/values/value_json.h"

namespace valora::jinja::testing {

// steps: limit of the rendering; fewer steps end a test sooner.
inline Result<std::string> render(std::string_view source, const Json& variables = Json::object(),
                                  size_t steps = kMaxSteps) {
  VALORA_TRY(parsed, parse(source));
  Runtime runtime;
  VALORA_CHECK(runtime.budget.step(kMaxSteps - steps));
  Variables values;
  for (const auto& [name, json] : variables.items()) {
    VALORA_TRY(value, from_json(runtime.budget, json));
    values[name] = std::move(value);
  }
  return jinja::render(parsed, runtime, values);
}

// The failure's message; empty if there is none.
inline std::string failure(std::string_view source, const Json& variables = Json::object(),
                           size_t steps = kMaxSteps) {
  const auto rendered = render(source, variables, steps);
  return rendered.ok() ? std::string() : rendered.error().message;
}

}  // namespace valora::jinja::testing
