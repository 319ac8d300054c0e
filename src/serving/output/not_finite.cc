#include "serving/output/not_finite.h"

#include <new>

#include "base/fault.h"

namespace valora::serving {
namespace {

constexpr const char* kMark = "not_finite";  // Error::param within the engine

}  // namespace

Error not_finite(const std::string& what) {
  return {ErrorCode::kInternal, what + " are NaN or infinite", kMark};
}

Error error_for_client(const Error& error, std::span<const AppliedAdapter> adapters) {
  if (error.code != ErrorCode::kInternal || error.param != kMark) return error;
  try {
    if (adapters.empty()) return internal(error.message);
    std::string names;
    for (const AppliedAdapter& use : adapters)
      names += (names.empty() ? "`" : ", `") + use.adapter->name + "`";
    return unprocessable(error.message + " with " +
                             (adapters.size() == 1 ? "the adapter " : "the adapters ") + names +
                             ", whose values are too large to be computed with",
                         "model");
  } catch (const std::bad_alloc&) {
    return out_of_memory();
  }
}

}  // namespace valora::serving
