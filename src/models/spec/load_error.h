// The exception for a model folder that cannot be loaded. Constructors cannot return a Result, so
// they throw it; the functions of registry.h convert it to one.
#pragma once

#include <exception>
#include <string>
#include <utility>

#include "base/result.h"

namespace valora::models {

class LoadError : public std::exception {
 public:
  explicit LoadError(Error error) : error_(std::move(error)) {}
  const Error& error() const { return error_; }
  const char* what() const noexcept override { return error_.message.c_str(); }

 private:
  Error error_;
};

}  // namespace valora::models
