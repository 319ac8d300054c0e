#include "grammar/matcher.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "grammar/parts.h"

namespace valora::grammar {
namespace {

// Limits for the mask of one token.
constexpr BudgetLimits kTokenLimits{int64_t{256} << 20, 0.25};

DLTensor view_of(std::vector<uint32_t>& words, int64_t& size) {
  size = static_cast<int64_t>(words.size());
  DLTensor tensor{};
  tensor.data = words.data();
  tensor.device = {kDLCPU, 0};
  tensor.ndim = 1;
  tensor.dtype = {kDLInt, 32, 1};
  tensor.shape = &size;
  return tensor;
}

}  // namespace

struct GrammarMatcher::State {
  State(std::shared_ptr<const CompiledGrammar> grammar_, xgrammar::GrammarMatcher matcher_)
      : grammar(std::move(grammar_)),
        matcher(std::move(matcher_)),
        mask(grammar->parts().tokens->surrogates.size()) {}

  std::shared_ptr<const CompiledGrammar> grammar;
  xgrammar::GrammarMatcher matcher;
  std::vector<uint32_t> mask;
  std::optional<Status> filled;  // status of the mask since the last token
  bool may_end = false;
  bool can_go_on = false;  // valid once the mask is filled
  bool after_ed = false;   // the answer ends with the byte 0xED
  Spent spent;
};

GrammarMatcher::GrammarMatcher(std::unique_ptr<State> state) : state_(std::move(state)) {}
GrammarMatcher::GrammarMatcher(const GrammarMatcher& other)
    : state_(std::make_unique<State>(*other.state_)) {
  state_->matcher =
      other.state_->matcher.Fork();  // plain copies of xgrammar's matchers share state
}
GrammarMatcher& GrammarMatcher::operator=(const GrammarMatcher& other) {
  return *this = GrammarMatcher(other);
}
GrammarMatcher::GrammarMatcher(GrammarMatcher&&) noexcept = default;
GrammarMatcher& GrammarMatcher::operator=(GrammarMatcher&&) noexcept = default;
GrammarMatcher::~GrammarMatcher() = default;

Result<GrammarMatcher> GrammarMatcher::start(std::shared_ptr<const CompiledGrammar> grammar) {
  std::unique_ptr<State> state;
  Spent spent;
  VALORA_CHECK(guarded(kTokenLimits, "the grammar", spent, [&] {
    state = std::make_unique<State>(grammar, xgrammar::GrammarMatcher(grammar->parts().grammar));
    state->may_end = state->matcher.IsCompleted();
  }));
  state->spent = spent;
  GrammarMatcher matcher(std::move(state));
  VALORA_CHECK(matcher.mask());
  return matcher;
}

Result<MaskView> GrammarMatcher::mask() {
  if (!state_->filled) state_->filled = fill();
  VALORA_CHECK(*state_->filled);
  return MaskView(state_->mask);
}

std::optional<MaskView> GrammarMatcher::known_mask() const {
  if (!state_->filled || !state_->filled->ok()) return std::nullopt;
  return MaskView(state_->mask);
}

double GrammarMatcher::cpu_seconds() const { return state_->spent.seconds; }
int64_t GrammarMatcher::bytes() const { return state_->spent.bytes; }
int64_t GrammarMatcher::shortest_answer() const { return state_->grammar->parts().shortest; }
bool GrammarMatcher::may_end() const { return state_->may_end; }
bool GrammarMatcher::must_end() const { return state_->may_end && !state_->can_go_on; }

Status GrammarMatcher::fill() {
  State& s = *state_;
  VALORA_CHECK(guarded(kTokenLimits, "the grammar", s.spent, [&] {
    int64_t size = 0;
    DLTensor view = view_of(s.mask, size);
    // If no mask is needed, xgrammar does not write all of its words.
    if (!s.matcher.FillNextTokenBitmask(&view)) std::ranges::fill(s.mask, ~uint32_t{0});
  }));
  const TokenTable& tokens = *s.grammar->parts().tokens;
  if (s.after_ed)
    for (size_t i = 0; i < s.mask.size(); ++i) s.mask[i] &= ~tokens.surrogates[i];
  const auto rest = static_cast<uint32_t>(tokens.size % 32);
  if (rest != 0) s.mask.back() &= (uint32_t{1} << rest) - 1;
  s.can_go_on = std::ranges::any_of(s.mask, [](uint32_t word) { return word != 0; });
  if (s.may_end || s.can_go_on) return {};
  return unprocessable(
      "no token of this model's vocabulary continues the answer that the grammar demands");
}

Status GrammarMatcher::accept(int32_t token) {
  State& s = *state_;
  VALORA_TRY(allowed, mask());
  bool taken = false;
  if (allows(allowed, token))
    VALORA_CHECK(guarded(kTokenLimits, "the grammar", s.spent, [&] {
      taken = s.matcher.AcceptToken(token);
      if (taken) s.may_end = s.matcher.IsCompleted();
    }));
  if (!taken) return invalid(fmt::format("the grammar does not allow token {} here", token));
  s.after_ed = s.grammar->parts().tokens->bytes[token].ends_with('\xED');
  s.filled.reset();
  if (s.may_end) VALORA_CHECK(mask());
  return {};
}

}  // namespace valora::grammar
