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
  if (owner.request.constraint->kind == Kind::kLabels)
    return label_shape(owner.form, owner.request.constraint->output);
  if (owner.request.constraint->kind != Kind::kBoxes) return nullptr;
  const media::VisualInput& picture = *prompt.visual.front().input;
  return box_shape(
      *owner.boxes,
      {.sent = {picture.width, picture.height}, .seen = {picture.seen_width, picture.seen_height}},
      owner.request.constraint->output);
}

// The marks of boxes are special tokens in some tokenizers.
bool skips_special_tokens(const ActiveRequest& owner) {
  const auto& form = owner.request.constraint;
  const bool marks = form && form->kind == AnswerConstraint::Kind::kBoxes && owner.boxes &&
                     owner.boxes->style == BoxStyle::kMarks;
  return owner.request.sampling.skip_special_tokens && !marks;
}

// Where the answer begins. Adapters whose task answers with labels or boxes write no thoughts.
text::ThoughtPlace start_of(const ActiveRequest& owner, const PreparedPrompt& prompt) {
  const bool task = !owner.form.labels.empty() || owner.form.boxes;
  return task ? text::ThoughtPlace::kAnswer : prompt.thought;
}

std::optional<ThoughtsApart> thoughts_apart(const ActiveRequest& owner,
                                            const PreparedPrompt& prompt) {
  const auto& syntax = owner.language->thoughts;
  if (!syntax || !owner.request.thought.apart) return {};
  return ThoughtsApart{&*syntax, start_of(owner, prompt)};
}

std::optional<ThoughtProgress> thought_of(const ActiveRequest& owner,
                                          const PreparedPrompt& prompt) {
  const auto& syntax = owner.language->thoughts;
  const auto& form = owner.request.constraint;
  const auto& budget = owner.request.thought.budget;
  if (!syntax || (!form && !budget) || (form && includes_thought(*form, *syntax->marks))) return {};
  const text::ThoughtPlace start = start_of(owner, prompt);
  if (start == text::ThoughtPlace::kAnswer) return {};
  // A form leaves no room for a mark of several tokens, which only the first one begins.
  if (form && start == text::ThoughtPlace::kUndecided && !syntax->begin_token) return {};
  return ThoughtProgress(*syntax, owner.language->tokenizer,
                         {.start = start,
                          .budget = budget,
                          .skip_special_tokens = owner.request.sampling.skip_special_tokens});
}

}  // namespace

bool ActiveRequest::constrained() const {
  if (!request.constraint || head != nullptr) return false;
  const bool as_trained = boxes && boxes->style == BoxStyle::kMarks;
  return request.constraint->kind != AnswerConstraint::Kind::kBoxes || !as_trained;
}

Sequence::Sequence(std::shared_ptr<ActiveRequest> owner_, int index_,
                   std::shared_ptr<const PreparedPrompt> prompt_,
                   const std::shared_ptr<const text::Tokenizer>& tokenizer, int max_tokens_)
    : owner(std::move(owner_)),
      index(index_),
      prompt(std::move(prompt_)),
      sampler(seeded(owner->sampling, index), prompt->tokens),
      thought(thought_of(*owner, *prompt)),
      output(tokenizer, skips_special_tokens(*owner), owner->stop_strings,
             owner->request.sampling.include_stop_str_in_output, thoughts_apart(*owner, *prompt)),
      shape(shape_of(*owner, *prompt)),
      max_tokens(max_tokens_) {
  if (owner->grammar) {
    grammar = owner->grammar->value();
    charged = grammar->cpu_seconds();
    // Grammars count a token's bytes as they appear in the middle of a text.
    output.begin_inside_a_text();
  }
  arrival = owner->arrival;
  set_adapters(owner->adapters, *this);
  tokens = prompt->tokens;
  prompt_tokens = static_cast<int>(tokens.size());
  identity = prompt->identity;
  joint = prompt->joint;
  // A prompt whose tokens are scored or summed must not use the prefix cache of other requests, but
  // the request's own sequences share their blocks.
  const std::string& salt = owner->request.cache_salt;
  identity.adapter =
      salted(identity.adapter,
             owner->prompt_logprobs || owner->state_sum ? salt_of_one(salt, owner->handle) : salt);
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

bool Sequence::ends_with(int32_t token) const {
  const auto among = [token](const std::vector<int32_t>& ids) {
    return std::ranges::find(ids, token) != ids.end();
  };
  if (!output.in_thought()) return among(ending_tokens);
  return !owner->request.sampling.ignore_eos && among(owner->language->eos_token_ids);
}

namespace {

bool is_too_early(const Sequence& sequence, int ahead) {
  return sequence.generated_tokens() + ahead < sequence.owner->request.sampling.min_tokens;
}

bool in_thought(const Sequence& sequence) { return sequence.thought && sequence.thought->open(); }

// Whether the next token must follow the grammar.
bool under_grammar(const Sequence& sequence) { return sequence.grammar && !in_thought(sequence); }

// The tokens that must not come next where no grammar applies: ending tokens before min_tokens,
// and, in a thought before a form, all that would end the answer or begin it within a token.
std::vector<int32_t> forbidden_next(const Sequence& sequence, bool too_early) {
  const bool form_follows = sequence.grammar.has_value();
  std::vector<int32_t> out;
  if (too_early || form_follows) out = sequence.ending_tokens;
  if (!form_follows) return out;
  const auto overruns = sequence.thought->overruns();
  out.insert(out.end(), overruns.begin(), overruns.end());
  return out;
}

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
  if (const auto opening = sequence.thought ? sequence.thought->opening() : std::nullopt;
      opening && static_cast<size_t>(*opening) / 32 < allowed.size())
    allowed[*opening / 32] |= uint32_t{1} << (*opening % 32);
  const bool stuck = std::ranges::all_of(allowed, [](uint32_t word) { return word == 0; });
  return stuck && too_early ? allowed_next(sequence, mask, false) : allowed;
}

std::optional<Result<SampledToken>> choose_under_grammar(Sequence& sequence, LogitRow& logits,
                                                         bool too_early) {
  VALORA_TRY(mask, sequence.grammar->mask());
  auto token = sequence.sampler.sample(logits, {}, allowed_next(sequence, mask, too_early));
  if (!token || !token->ok() || std::ranges::count(sequence.ending_tokens, (*token)->id) > 0)
    return token;
  if (sequence.thought && sequence.thought->undecided()) {
    if ((*token)->id == sequence.thought->opening()) {
      sequence.thought->accept((*token)->id);
      return token;
    }
    sequence.thought->begin_answer();
  }
  VALORA_CHECK(sequence.grammar->accept((*token)->id));
  (*token)->last = sequence.grammar->must_end();
  return token;
}

// Where no grammar applies.
std::optional<Result<SampledToken>> choose_freely(Sequence& sequence, LogitRow& logits,
                                                  bool too_early) {
  if (const auto forced = sequence.thought ? sequence.thought->forced() : std::nullopt) {
    sequence.thought->accept(*forced);
    SampledToken token{.id = *forced};
    if (sequence.sampler.settings().top_logprobs > 0) token.top = {{*forced, 0}};
    return token;
  }
  auto token = sequence.sampler.sample(logits, forbidden_next(sequence, too_early));
  if (token && token->ok() && sequence.thought) sequence.thought->accept((*token)->id);
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
  if (!under_grammar(sequence)) return choose_freely(sequence, logits, too_early);
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
  if (!under_grammar(sequence))
    return sequence.sampler.query(vocab, forbidden_next(sequence, too_early));
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
