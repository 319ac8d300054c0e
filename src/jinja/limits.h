// What a template and its data may cost. Templates come with models from strangers, data from
// clients.
#pragma once

#include <cstddef>
#include <cstdint>

namespace valora::jinja {

inline constexpr size_t kMaxSourceBytes = size_t{1} << 20;
inline constexpr int kMaxExpressionDepth = 100;  // of one expression's tree
inline constexpr int kMaxStatementDepth = 50;    // blocks within blocks
inline constexpr int kMaxEvaluationDepth =
    300;  // expressions, blocks and macro calls under way at once
inline constexpr size_t kMaxSteps =
    4'000'000;  // nodes evaluated, values visited, 64 bytes looked at
inline constexpr size_t kStepsPerByte =
    16;  // more for each byte of a conversation: some templates go through characters
inline constexpr size_t kMaxMoreSteps = 36'000'000;
inline constexpr size_t kMaxBytes = size_t{512}
                                    << 20;  // of all values together that one rendering makes
inline constexpr size_t kMaxStringBytes = size_t{16} << 20;  // of one string, the output included
inline constexpr int kMaxValueDepth = 100;                   // lists within lists
inline constexpr int64_t kMaxRange = 100'000;                // as in jinja2's sandbox

}  // namespace valora::jinja
