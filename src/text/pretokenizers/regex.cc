#include "text/pretokenizers/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>

#include "base/log/log.h"
#include "base/text/unicode.h"

namespace valora::text {
namespace {

constexpr size_t kMaxPatternBytes = size_t{256} << 10;
// Backtracking steps per match, far above the one or two per byte of real patterns.
constexpr uint32_t kMatchSteps = 10'000'000;
constexpr uint32_t kMatchStepsPerByte = 16;
constexpr uint32_t kHeapKiB = 256 << 10;

template <auto Free>
struct Deleter {
  template <typename T>
  void operator()(T* pointer) const {
    Free(pointer);
  }
};
using Code = std::unique_ptr<pcre2_code, Deleter<pcre2_code_free>>;
using CompileContext = std::unique_ptr<pcre2_compile_context, Deleter<pcre2_compile_context_free>>;
using MatchContext = std::unique_ptr<pcre2_match_context, Deleter<pcre2_match_context_free>>;
using MatchData = std::unique_ptr<pcre2_match_data, Deleter<pcre2_match_data_free>>;

std::string pcre2_message(int code) {
  PCRE2_UCHAR buffer[256] = {};
  pcre2_get_error_message(code, buffer, sizeof buffer);
  return reinterpret_cast<const char*>(buffer);
}

// Searches a text: first with the JIT's small stack, then with the interpreter, which uses the
// heap.
class Matcher {
 public:
  Matcher(const pcre2_code* code, std::string_view text)
      : code_(code),
        text_(text),
        data_(pcre2_match_data_create(1, nullptr)),
        context_(pcre2_match_context_create(nullptr)) {
    const uint64_t steps = kMatchSteps + uint64_t{kMatchStepsPerByte} * text.size();
    pcre2_set_match_limit(context_.get(),
                          static_cast<uint32_t>(std::min<uint64_t>(steps, UINT32_MAX)));
    pcre2_set_heap_limit(context_.get(), kHeapKiB);
  }

  // Stores the first match at or after `offset` in span(); if there is none, returns PCRE2's
  // negative code.
  int search(size_t offset) {
    const int result = match(offset, PCRE2_NO_UTF_CHECK);
    return result == PCRE2_ERROR_JIT_STACKLIMIT ? match(offset, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT)
                                                : result;
  }

  Span span() const {
    const PCRE2_SIZE* offsets = pcre2_get_ovector_pointer(data_.get());
    return {offsets[0], offsets[1]};
  }

 private:
  int match(size_t offset, uint32_t options) {
    return pcre2_match(code_, reinterpret_cast<PCRE2_SPTR>(text_.data()), text_.size(), offset,
                       options, data_.get(), context_.get());
  }

  const pcre2_code* code_;
  std::string_view text_;
  MatchData data_;
  MatchContext context_;
};

}  // namespace

struct Regex::Compiled {
  Code code;
};

Result<Regex> Regex::compile(const std::string& pattern) {
  if (pattern.size() > kMaxPatternBytes) return unprocessable("the regular expression is too long");
  const CompileContext context(pcre2_compile_context_create(nullptr));
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  int error = 0;
  PCRE2_SIZE offset = 0;
  constexpr uint32_t kOptions = PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C;
  Code code(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(), kOptions,
                          &error, &offset, context.get()));
  if (!code) return unprocessable("the regular expression is not valid: " + pcre2_message(error));
  pcre2_jit_compile(code.get(), PCRE2_JIT_COMPLETE);  // without a JIT, the interpreter runs
  return Regex(std::make_shared<const Compiled>(std::move(code)));
}

std::vector<Span> Regex::find_all(std::string_view text) const {
  std::vector<Span> matches;
  Matcher matcher(compiled_->code.get(), text);
  size_t offset = 0;
  while (offset <= text.size()) {
    const int result = matcher.search(offset);
    if (result == PCRE2_ERROR_NOMATCH) break;
    if (result < 0) {
      spdlog::warn("tokenizer: a regular expression reached its limits at byte {} of {}: {}",
                   offset, text.size(), pcre2_message(result));
      break;
    }
    const Span span = matcher.span();
    const bool empty_again =
        span.begin == span.end && !matches.empty() && matches.back().end == span.end;
    if (empty_again) {
      offset = span.end == text.size() ? text.size() + 1
                                       : span.end + decode_utf8(text.substr(span.end)).length;
      continue;
    }
    matches.push_back(span);
    offset = span.end;
  }
  return matches;
}

}  // namespace valora::text
