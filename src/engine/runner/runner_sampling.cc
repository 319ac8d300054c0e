// Chooses the tokens of a step: grammar masks, rows of logits, samplers.
#include <algorithm>
#include <atomic>

#include "engine/runner/runner.h"
#include "ops/device/parallel.h"

namespace valora {
namespace {

using scheduler::StepItem;
using scheduler::StepOutput;
using scheduler::StepPlan;
using serving::Sequence;
using serving::sequence_of;

// The order of its choice within the step, lowest first.
double turn_in_step(const Sequence& s) {
  return s.grammar ? grammar::turn_of(*s.owner->masks, s.waited) : 0;
}

// The tokens to choose for one item.
struct Choice {
  const StepItem* item;
  StepOutput* output;
  ChoiceRows rows;
};

bool has_grammar(const Choice& choice) { return sequence_of(*choice.item).grammar.has_value(); }

std::vector<Choice> choices_of(const StepPlan& plan, std::vector<StepOutput>& outputs) {
  std::vector<Choice> choices;
  int64_t next_row = 0;
  auto output = outputs.begin();
  for (const StepItem& item : plan.items) {
    if (!item.yields) continue;
    StepOutput& its = *output++;
    const serving::ActiveRequest& owner = *sequence_of(item).owner;
    if (!owner.generates()) continue;
    ChoiceRows rows;
    rows.first = next_row;
    rows.count = 1 + static_cast<int64_t>(item.drafts.size());
    rows.vocab = static_cast<int32_t>(owner.language->vocab);
    next_row += rows.count;
    choices.push_back({&item, &its, std::move(rows)});
  }
  return choices;
}

// With drafts, no query: a later row depends on the choice before it.
void ask(Choice& choice) {
  for_output(*choice.output, [&] {
    if (choice.item->drafts.empty())
      choice.rows.query = serving::query_next(sequence_of(*choice.item));
  });
}

void choose(Choice& choice, grammar::StepMasks& masks, bool again) {
  ChoiceRows& rows = choice.rows;
  const auto vocab = static_cast<size_t>(rows.vocab);
  std::optional<serving::PartialRow> partial;
  std::optional<serving::WholeRow> whole;
  const bool is_whole = rows.copied.defined() && rows.copied.dim() == 2;
  if (!is_whole) partial.emplace(*rows.query, rows.found);
  if (partial && rows.copied.defined())
    partial->tell(rows.part,
                  {rows.copied.data_ptr<float>(), static_cast<size_t>(rows.copied.numel())});
  const auto row = [&](size_t i) -> serving::LogitRow& {
    if (partial) return *partial;
    return whole.emplace(std::span(
        rows.copied.data_ptr<float>() + static_cast<int64_t>(i) * rows.copied.size(1), vocab));
  };
  rows.missing = serving::sample_tokens(*choice.item, row, masks, *choice.output, again);
}

}  // namespace

// Runs during the forward pass if the model leaves a core free. Otherwise a mask-filling thread
// would slow the model's threads, which wait for each other; sampling then fills masks on all of
// them.
void Runner::fill_masks(const StepPlan& plan) {
  if (!masks_) return;
  std::vector<Sequence*> sequences;
  for (const StepItem& item : plan.items)
    if (item.yields && sequence_of(item).grammar) sequences.push_back(&sequence_of(item));
  std::ranges::stable_sort(sequences, {}, [](const Sequence* s) { return turn_in_step(*s); });
  std::vector<grammar::GrammarMatcher*> matchers;
  for (Sequence* s : sequences) matchers.push_back(&*s->grammar);
  masks_->begin(std::move(matchers));
}

// logits: the scored rows of the items, in plan order.
void Runner::sample(const StepPlan& plan, std::vector<StepOutput>& outputs,
                    const at::Tensor& logits) {
  std::vector<Choice> choices = choices_of(plan, outputs);
  std::ranges::stable_sort(
      choices, {}, [](const Choice& choice) { return turn_in_step(sequence_of(*choice.item)); });
  if (masks_) {
    if (std::ranges::any_of(choices, has_grammar)) launched_->wait();  // masks are being filled
    masks_->stop();
  }
  if (rows_.answers())
    for (Choice& choice : choices) ask(choice);
  grammar::StepMasks masks(options_.mask_seconds);
  std::vector<Choice*> open;
  for (Choice& choice : choices) open.push_back(&choice);
  for (bool again = false; !open.empty(); again = true) {
    std::vector<ChoiceRows*> wanted;
    for (Choice* choice : open) wanted.push_back(&choice->rows);
    rows_.fetch(logits, wanted);
    std::atomic<size_t> next = 0;  // shared by the threads, to keep the order
    ops::torch_parallel()(0, static_cast<int64_t>(open.size()), 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        Choice& choice = *open[next++];
        choice.rows.missing = {};
        for_output(*choice.output, [&] { choose(choice, masks, again); });
      }
    });
    std::erase_if(open, [](const Choice* choice) { return !choice->rows.missing; });
  }
}

}  // namespace valora
