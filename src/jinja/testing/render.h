// Renders templates in one call, for tests.
#pragma once

#include <string>

#include "jinja/interpreter.h"
#include "jinja/parser.h"
#include "jinja/value_json.h"

namespace valora::jinja::testing {

inline Result<std::string> render(std::string_view source, const Json& variables = Json::object()) {
  VALORA_TRY(parsed, parse(source));
  Runtime runtime;
  Variables values;
  for (const auto& [name, json] : variables.items()) {
    VALORA_TRY(value, from_json(runtime.budget, json));
    values[name] = std::move(value);
  }
  return jinja::render(parsed, runtime, values);
}

// The failure's message; empty if there is none.
inline std::string failure(std::string_view source, const Json& variables = Json::object()) {
  const auto rendered = render(source, variables);
  return rendered.ok() ? std::string() : rendered.error().message;
}

}  // namespace valora::jinja::testing
