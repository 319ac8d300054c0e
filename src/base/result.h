// Errors as values. Failures that depend on input, files or load are returned as Result<T>.
// Exceptions are for bugs and for libraries that throw; they do not leave the engine.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>

namespace valora {

// What a failure means to the caller. The server maps it to an HTTP status.
enum class ErrorCode : uint8_t {
  kInvalidArgument,  // 400: the request or file is wrong
  kUnauthorized,     // 401
  kNotFound,         // 404: unknown model, adapter or file
  kConflict,         // 409: the current state forbids it
  kPayloadTooLarge,  // 413
  kUnprocessable,    // 422: well-formed, but not servable (wrong shapes, unsupported target)
  kQueueFull,        // 429
  kCancelled,        // 499: the client disconnected or the server is stopping
  kInternal,         // a bug in this program
  kNotImplemented,   // 400: a part of the API that this program lacks
  kUnavailable,      // 503: draining, or temporarily out of memory
};

struct Error {
  ErrorCode code = ErrorCode::kInternal;
  std::string message;  // one clause that names the culprit, and the remedy if there is one
  std::string param;    // the request field or file at fault; may be empty
};

inline Error invalid(std::string message, std::string param = {}) {
  return {ErrorCode::kInvalidArgument, std::move(message), std::move(param)};
}
inline Error not_found(std::string message, std::string param = {}) {
  return {ErrorCode::kNotFound, std::move(message), std::move(param)};
}
inline Error unprocessable(std::string message, std::string param = {}) {
  return {ErrorCode::kUnprocessable, std::move(message), std::move(param)};
}
inline Error not_implemented(std::string message, std::string param = {}) {
  return {ErrorCode::kNotImplemented, std::move(message), std::move(param)};
}
inline Error internal(std::string message) {
  return {ErrorCode::kInternal, std::move(message), {}};
}

// A T or an Error. Constructible from either; check ok() before value().
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value)
      : state_(std::in_place_index<0>, std::move(value)) {}  // NOLINT: implicit by design
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }
  T& value() & { return std::get<0>(state_); }
  const T& value() const& { return std::get<0>(state_); }
  T&& value() && { return std::get<0>(std::move(state_)); }
  const Error& error() const { return std::get<1>(state_); }
  T* operator->() { return &std::get<0>(state_); }
  const T* operator->() const { return &std::get<0>(state_); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }

 private:
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)), ok_(false) {}  // NOLINT
  bool ok() const { return ok_; }
  explicit operator bool() const { return ok_; }
  const Error& error() const { return error_; }

 private:
  Error error_;
  bool ok_ = true;
};

using Status = Result<void>;

}  // namespace valora

// Unwraps a Result into `name`, or returns its error from the enclosing function.
#define VALORA_TRY_CAT2(a, b) a##b
#define VALORA_TRY_CAT(a, b) VALORA_TRY_CAT2(a, b)
#define VALORA_TRY(name, expr)                            \
  auto VALORA_TRY_CAT(try_result_, __LINE__) = (expr);    \
  if (!VALORA_TRY_CAT(try_result_, __LINE__).ok())        \
    return VALORA_TRY_CAT(try_result_, __LINE__).error(); \
  auto name = std::move(VALORA_TRY_CAT(try_result_, __LINE__)).value()
#define VALORA_CHECK(expr)                           \
  do {                                               \
    auto try_status = (expr);                        \
    if (!try_status.ok()) return try_status.error(); \
  } while (0)
