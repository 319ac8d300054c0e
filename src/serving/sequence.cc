#include "serving/sequence.h"

#include <algorithm>
#include <utility>

#include "serving/adapters/scheduled_adapters.h"

namespace valora::serving {
namespace {

// Each sequence of a request has its own random stream.
SamplingSettings seeded(SamplingSettings settings, int index) {
  settings.seed += static_cast<uint64_t>(index);
  return settings;
}

std::unique_ptr<AnswerShape> shape_of(const ActiveRequest& owner, const PreparedPrompt& prompt) {
  if (!owner.request.constraint) return nullptr;
  using Kind = AnswerConstraint::Kind;
  if (owner.request.constraint->kind == Kind::kLabels) return label_shape(owner.form);
  if (owner.request.constraint->kind != Kind::kBoxes) return nullptr;
  const media::VisualInput& picture = *prompt.visual.front().input;
  return box_shape(*owner.form.boxes, {picture.width, picture.height});
}

// Grammars count a token's bytes as they appear in the middle of a text, but some decoders drop a
// space at the start. So a first character, whose text is discarded, moves the answer to the
// middle.
void begin_inside_a_text(OutputText& output, const text::Tokenizer& tokenizer,
                         const StopStrings& stop) {
  for (char c = 'a'; c <= 'z'; ++c) {
    const auto id = tokenizer.token_to_id(std::string(1, c));
    const bool held_back =
        stop && std::ranges::any_of(*stop, [&](const auto& one) { return one.starts_with(c); });
    if (!id || held_back) continue;
    (void)output.push(*id, false);
    return;
  }
}

}  // namespace

Sequence::Sequence(std::shared_ptr<ActiveRequest> owner_, int index_,
                   std::shared_ptr<const PreparedPrompt> prompt_,
                   const std::shared_ptr<const text::Tokenizer>& tokenizer, int max_tokens_)
    : owner(std::move(owner_)),
      index(index_),
      prompt(std::move(prompt_)),
      sampler(seeded(owner->sampling, index), prompt->tokens),
      output(tokenizer, owner->request.sampling.skip_special_tokens, owner->stop_strings,
             owner->request.sampling.include_stop_str_in_output),
      shape(shape_of(*owner, *prompt)),
      max_tokens(max_tokens_) {
  if (owner->grammar) {
    grammar = owner->grammar->value();
    charged = grammar->cpu_seconds();
    begin_inside_a_text(output, *tokenizer, owner->stop_strings);
  }
  arrival = owner->arrival;
  set_adapters(owner->adapters, *this);
  tokens = prompt->tokens;
  prompt_tokens = static_cast<int>(tokens.size());
  identity = prompt->identity;
  joint = prompt->joint;
  // A prompt whose tokens are scored must not use the prefix cache of other requests, but the
  // request's own sequences share their blocks.
  const std::string& salt = owner->request.cache_salt;
  identity.adapter =
      salted(identity.adapter, owner->prompt_logprobs ? salt_of_one(salt, owner->handle) : salt);
  scores_prompt = owner->prompt_logprobs != nullptr;
  if (owner->generates()) most_tokens = prompt_tokens + std::max(max_tokens, 1);
  priority = owner->request.priority;
  if (const auto target = owner->request.ttft_target) {
    tolerance = from_seconds(*target);
    deadline = arrival + tolerance;
  }
}

Sequence::~Sequence() {
  if (grammar) owner->masks->hold(-held);
}

namespace {

// The tokens that may come next: without ending tokens before min_tokens, and with them once the
// answer may end. If nothing else is left, ending tokens are allowed even before min_tokens.
std::vector<uint32_t> allowed_next(const Sequence& sequence, grammar::MaskView mask,
                                   bool too_early) {
  std::vector<uint32_t> allowed(mask.begin(), mask.end());
  const bool may_end = sequence.grammar->may_end();
  for (const int32_t id : sequence.ending_tokens) {
    if (id < 0 || static_cast<size_t>(id) / 32 >= allowed.size()) continue;
    const uint32_t bit = uint32_t{1} << (id % 32);
    if (too_early)
      allowed[id / 32] &= ~bit;
    else if (may_end)
      allowed[id / 32] |= bit;
  }
  const bool stuck = std::ranges::all_of(allowed, [](uint32_t word) { return word == 0; });
  return stuck && too_early ? allowed_next(sequence, mask, false) : allowed;
}

}  // namespace

namespace {

bool is_too_early(const Sequence& sequence, int ahead) {
  return sequence.generated_tokens() + ahead < sequence.owner->request.sampling.min_tokens;
}

std::optional<Result<SampledToken>> choose_under_grammar(Sequence& sequence, LogitRow& logits,
                                                         bool too_early) {
  VALORA_TRY(mask, sequence.grammar->mask());
  auto token = sequence.sampler.sample(logits, {}, allowed_next(sequence, mask, too_early));
  if (!token || !token->ok() || std::ranges::count(sequence.ending_tokens, (*token)->id) > 0)
    return token;
  VALORA_CHECK(sequence.grammar->accept((*token)->id));
  (*token)->last = sequence.grammar->must_end();
  return token;
}

// Sets the field of the request that described the grammar.
Error of_its_field(const ActiveRequest& request, Error error) {
  if (error.code == ErrorCode::kInvalidArgument) error.param = request.request.constraint->param;
  return error;
}

}  // namespace

std::optional<Result<SampledToken>> sample_next(Sequence& sequence, LogitRow& logits,
                                                grammar::StepMasks& masks, int ahead, bool again) {
  const bool too_early = is_too_early(sequence, ahead);
  if (!sequence.grammar)
    return sequence.sampler.sample(logits,
                                   too_early ? sequence.ending_tokens : std::span<const int32_t>());
  ActiveRequest& owner = *sequence.owner;
  if (const Status left = owner.masks->check(); !left.ok())
    return of_its_field(owner, left.error());
  if (!again && !masks.begin()) {
    if (ahead == 0) ++sequence.waited;
    return {};
  }
  sequence.waited = 0;
  const double before = sequence.grammar->cpu_seconds();
  auto token = choose_under_grammar(sequence, logits, too_early);
  if (!token) return token;
  const double after = sequence.grammar->cpu_seconds();
  masks.charge(after - before);
  owner.masks->charge(masks,
                      after - sequence.charged);  // includes the time spent while the model ran
  sequence.charged = after;
  const int64_t bytes = sequence.grammar->bytes();
  owner.masks->hold(bytes - std::exchange(sequence.held, bytes));
  if (!token->ok()) return of_its_field(owner, token->error());
  return token;
}

std::optional<kernels::CandidateQuery> query_next(const Sequence& sequence) {
  const auto vocab = static_cast<int32_t>(sequence.owner->language->vocab);
  const bool too_early = is_too_early(sequence, 0);
  if (!sequence.grammar)
    return sequence.sampler.query(vocab,
                                  too_early ? sequence.ending_tokens : std::span<const int32_t>());
  const auto mask = sequence.grammar->known_mask();
  if (!mask) return std::nullopt;
  return sequence.sampler.query(vocab, {}, allowed_next(sequence, *mask, too_early));
}

Missing sample_tokens(const scheduler::StepItem& item,
                      const std::function<LogitRow&(size_t)>& logits, grammar::StepMasks& masks,
                      scheduler::StepOutput& output, bool again) {
  auto& sequence = static_cast<Sequence&>(*item.request);
  const auto ends = [&](const SampledToken& token) {
    return token.last ||
           std::ranges::find(sequence.ending_tokens, token.id) != sequence.ending_tokens.end();
  };
  for (size_t row = 0; row <= item.drafts.size(); ++row) {
    LogitRow& its = logits(row);
    auto token = sample_next(sequence, its, masks, static_cast<int>(row), again);
    if (!token) {
      output.waits = row == 0 && !its.missing();
      return its.missing();
    }
    if (!token->ok()) {
      output.error = token->error();
      return {};
    }
    output.tokens.push_back(std::move(*token).value());
    if (row == item.drafts.size() || output.tokens.back().id != item.drafts[row] ||
        ends(output.tokens.back()))
      break;
  }
  return {};
}

}  // namespace valora::serving
