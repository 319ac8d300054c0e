// Results that are NaN or infinite.
#pragma once

#include <span>
#include <string>

#include "base/result.h"
#include "serving/adapters/loaded_adapter.h"

namespace valora::serving {

// kInternal. what: "the model's logits", "the embedding".
Error not_finite(const std::string& what);

// The error that a request's client is told. If the result of a request with adapters is not
// finite, kUnprocessable with the adapters' names: their values overflow, which others do not
// notice. Otherwise the error as it is. Does not throw.
Error error_for_client(const Error& error, std::span<const AppliedAdapter> adapters);

}  // namespace valora::serving
