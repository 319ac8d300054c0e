// Command-line options whose value is one of a set of names.
#pragma once

#include <stdexcept>
#include <string>

#include "api/options.h"
#include "base/result.h"
#include "cli/options/parser.h"

namespace valora::cli {

// Option callbacks can only report errors by throwing; Program::run() prints them.
template <typename T>
T value_or_throw(Result<T> result) {
  if (!result.ok()) throw std::invalid_argument(result.error().message);
  return std::move(result).value();
}

// Parses the option into `value` with a parser of api/options.h. The initial `value` is shown as
// the default.
template <typename T>
Option add_named_option(Command command, const std::string& flag, T& value,
                        Result<T> (*parse)(const std::string&), const std::string& help) {
  return command
      .add_option_function<std::string>(
          flag, [&value, parse](const std::string& name) { value = value_or_throw(parse(name)); },
          help)
      .default_str(name_of(value));
}

}  // namespace valora::cli
