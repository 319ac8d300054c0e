// Constructors of models cannot return a Result; what they find wrong in a folder is thrown as this
// and caught in one place, load_model().
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
