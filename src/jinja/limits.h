// Limits on the cost of templates and their data. Templates come with third-party models, data from
// clients.
#pragma once

#include <cstddef>
#include <cstdint>

namespace valora::jinja {

inline constexpr size_t kMaxSourceBytes = size_t{1} << 20;
inline constexpr int kMaxExpressionDepth = 100;  // depth of one expression's tree
inline constexpr int kMaxStatementDepth = 50;    // nested blocks
// Active expressions, blocks and macro calls.
inline constexpr int kMaxEvaluationDepth = 300;
// Nodes evaluated, values visited and 64-byte units read.
inline constexpr size_t kMaxSteps = 4'000'000;
// Extra steps per byte of a conversation: some templates iterate over characters.
inline constexpr size_t kStepsPerByte = 16;
inline constexpr size_t kMaxMoreSteps = 36'000'000;
inline constexpr size_t kMaxBytes = size_t{512} << 20;       // all values of one rendering
inline constexpr size_t kMaxStringBytes = size_t{16} << 20;  // one string, or the output
inline constexpr int kMaxValueDepth = 100;                   // nested lists
inline constexpr int64_t kMaxRange = 100'000;                // as in jinja2's sandbox

}  // namespace valora::jinja
