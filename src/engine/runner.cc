#include "engine/runner.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <atomic>
#include <iterator>
#include <stdexcept>

#include "base/cores.h"
#include "base/log.h"
#include "engine/adapter_tensors.h"
#include "engine/head_logits.h"
#include "engine/model_fault.h"
#include "engine/rope_lengths.h"
#include "engine/segments.h"
#include "ops/parallel.h"

namespace valora {
namespace {

using scheduler::FailedRequest;
using scheduler::StepItem;
using scheduler::StepOutput;
using scheduler::StepPlan;
using serving::AppliedAdapter;
using serving::Sequence;

// How long the encoding of images holds up a step: for twice the time of a step of decodes, so that
// a stream goes on at a third of its speed, or for so long. With no step to hold up, the engine
// looks for new requests so often.
constexpr Duration kHoldUp = std::chrono::milliseconds(20);
constexpr Duration kUndisturbed = std::chrono::milliseconds(50);

bool overlaps(const models::VisualSpan& span, int begin, int end) {
  return span.token_begin < end && span.token_begin + span.rows > begin;
}

// The visual spans that overlap the tokens of an item, each with the key of its embeddings.
template <typename Body>
void for_each_visual(const StepItem& item, Body&& body) {
  const Sequence& s = sequence_of(item);
  const int begin = s.computed_tokens, end = begin + item.tokens;
  for (size_t i = 0; i < s.prompt->visual.size(); ++i)
    if (overlaps(s.prompt->visual[i], begin, end))
      body(s.prompt->visual[i], s.prompt->visual_keys[i], begin, end);
}

void append_positions(const StepItem& item, int axes,
                      std::vector<std::vector<int64_t>>& positions) {
  const Sequence& s = sequence_of(item);
  const auto& known = s.prompt->positions;
  for (int a = 0; a < axes; ++a)
    for (int i = s.computed_tokens; i < s.computed_tokens + item.tokens; ++i)
      positions[a].push_back(i < s.prompt_tokens
                                 ? known.prompt[static_cast<size_t>(a) * s.prompt_tokens + i]
                                 : i + known.delta);
}

// The place of its choice among those of the step, the lowest first.
double turn_in_step(const Sequence& s) {
  return s.grammar ? grammar::turn_of(*s.owner->masks, s.waited) : 0;
}

// What fails for one output, as an allocation may, ends its request alone.
template <typename Body>
void for_output(StepOutput& output, Body&& body) {
  try {
    body();
  } catch (const std::exception& e) {
    output.error = model_fault("the answer could not be made", e);
  }
}

// The engine's log says what the exception means, not torch's stack.
template <typename Body>
auto without_backtrace(Body&& body) {
  try {
    return body();
  } catch (const c10::Error& e) {
    throw std::runtime_error(e.what_without_backtrace());
  }
}

}  // namespace

Runner::Runner(const models::Model& model, ops::KvArena arena, at::ScalarType dtype,
               at::Device device, std::unique_ptr<ops::LaunchedWork> launched,
               const Options& options, std::unique_ptr<ModeSwitcher> switcher, const Clock& clock)
    : model_(model),
      arena_(std::move(arena)),
      dtype_(dtype),
      device_(device),
      options_(options),
      clock_(clock),
      launched_(std::move(launched)),
      visuals_(model, dtype, options.visual_cache_bytes, clock, models::piece_size(device),
               *launched_),
      switcher_(std::move(switcher)),
      graphs_(DecodeGraphs::make(model, arena_)),
      head_module_(model.spec().modules.first_of(adapters::ModuleKind::kHead)),
      masks_(!device.is_cpu() || at::get_num_threads() < usable_cores()
                 ? std::make_unique<grammar::MaskFiller>()
                 : nullptr) {}

bool Runner::ready(const scheduler::Request& request, int begin, int end) const {
  const auto& s = static_cast<const Sequence&>(request);
  for (size_t i = 0; i < s.prompt->visual.size(); ++i)
    if (overlaps(s.prompt->visual[i], begin, end) && !visuals_.has(s.prompt->visual_keys[i]))
      return false;
  return true;
}

Duration Runner::time_for_visuals(const StepPlan& plan) const {
  return plan.items.empty() ? kUndisturbed : std::max(2 * decode_time_, kHoldUp);
}

std::vector<FailedRequest> Runner::prepare(const StepPlan& plan) {
  return without_backtrace([&] { return prepare_visuals(plan); });
}

void Runner::forget_merged() {
  if (switcher_) without_backtrace([&] { switcher_->forget(); });
}

std::vector<FailedRequest> Runner::prepare_visuals(const StepPlan& plan) {
  std::vector<WantedVisual> wanted;
  const auto request = [&](const StepItem& item) {
    for_each_visual(item, [&](const models::VisualSpan& span, const Digest& key, int, int) {
      if (!wanted.empty() && wanted.back().key == key) return;  // another frame of a video
      wanted.push_back({key, span.input, {}});
      std::ranges::copy_if(sequence_of(item).owner->adapters,
                           std::back_inserter(wanted.back().adapters), serving::changes_visuals);
    });
  };
  std::ranges::for_each(plan.items, request);
  std::ranges::for_each(plan.preparing, request);
  visuals_.request(wanted);
  visuals_.run(time_for_visuals(plan));

  std::vector<FailedRequest> failed;
  const auto check = [&](const StepItem& item) {
    std::optional<Error> error;
    for_each_visual(item, [&](const models::VisualSpan&, const Digest& key, int, int) {
      if (const auto* result = visuals_.find(key); result && !result->ok()) error = result->error();
    });
    if (error) failed.push_back({item.request, *error});
  };
  std::ranges::for_each(plan.items, check);
  std::ranges::for_each(plan.preparing, check);
  return failed;
}

// The merged weights of the plan. The adapter is that of a request in the step, or the one that is
// still merged. It is neither only if all its requests failed in prepare(); the step then runs on
// the base weights.
const models::MergedWeights* Runner::use_weights(const StepPlan& plan) {
  if (!switcher_) return nullptr;
  if (plan.merged == scheduler::kBaseModel) return switcher_->use(nullptr);
  for (const StepItem& item : plan.items)
    for (const serving::AppliedAdapter& use : sequence_of(item).owner->adapters)
      if (use.adapter->id == plan.merged) return switcher_->use(use.adapter);
  const auto before = switcher_->in_use();
  return switcher_->use(before && before->id == plan.merged ? before : nullptr);
}

// With tokens, positions and lengths on the host.
models::Batch Runner::build_batch(const StepPlan& plan) {
  models::Batch batch;
  batch.kv = &arena_;
  batch.adaptation.merged = use_weights(plan);
  const serving::LoadedAdapter* merged = switcher_ ? switcher_->in_use().get() : nullptr;
  const int axes = model_.spec().axes;
  std::vector<int64_t> tokens;
  std::vector<std::vector<int64_t>> positions(axes);
  for (const StepItem& item : plan.items) {
    const Sequence& s = sequence_of(item);
    const int64_t begin = static_cast<int64_t>(tokens.size());
    tokens.insert(tokens.end(), s.tokens.begin() + s.computed_tokens,
                  s.tokens.begin() + s.computed_tokens + item.tokens);
    append_positions(item, axes, positions);
    batch.spans.push_back({begin, item.tokens, s.computed_tokens, s.table.blocks.data()});
    append_segments(s.owner->adapters, merged, begin, begin + item.tokens, batch.adaptation.lora);
    for (const serving::AppliedAdapter& use : s.owner->adapters)
      if (vocabulary_of(*use.adapter).on_embedding())
        batch.vocabulary.push_back(
            {begin, begin + item.tokens, &vocabulary_of(*use.adapter), use.scale});
    for_each_visual(item, [&](const models::VisualSpan& span, const Digest& key, int from, int to) {
      const int first = std::max(from, span.token_begin),
                last = std::min(to, span.token_begin + span.rows);
      batch.visual.push_back(
          {begin + first - from,
           visuals_.get(key).narrow(0, span.first_row + first - span.token_begin, last - first)});
    });
  }
  batch.tokens = at::tensor(tokens, at::kLong);
  std::vector<at::Tensor> rows;
  for (const auto& axis : positions) rows.push_back(at::tensor(axis, at::kLong));
  batch.positions = at::stack(rows);
  batch.rope_lengths = rope_lengths(plan);
  return batch;
}

at::Tensor Runner::hidden_states(models::Batch& batch) {
  if (graphs_)
    if (const auto hidden = graphs_->forward(batch)) return *hidden;
  batch.tokens = batch.tokens.to(device_);
  batch.positions = batch.positions.to(device_);
  if (batch.rope_lengths.defined()) batch.rope_lengths = batch.rope_lengths.to(device_);
  return model_.forward(batch);
}

void Runner::sample(std::vector<StepOutput>& outputs, const at::Tensor& logits) {
  struct Row {
    StepOutput* output;
    float* logits;
  };
  const int64_t vocab = logits.size(1);
  std::vector<Row> rows;
  for (StepOutput& output : outputs)
    if (sequence_of(output).owner->generates())
      rows.push_back({&output, logits.data_ptr<float>() + rows.size() * vocab});
  std::ranges::stable_sort(rows, {},
                           [](const Row& row) { return turn_in_step(sequence_of(*row.output)); });
  grammar::StepMasks masks(options_.mask_seconds);
  std::atomic<size_t> next = 0;  // across the threads, so that the order holds
  const auto sample_row = [&](Row row) {
    auto token = serving::sample_next(sequence_of(*row.output),
                                      {row.logits, static_cast<size_t>(vocab)}, masks);
    row.output->waits = !token;
    if (token && token->ok())
      row.output->token = std::move(*token).value();
    else if (token)
      row.output->error = token->error();
  };
  ops::torch_parallel()(0, static_cast<int64_t>(rows.size()), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const Row row = rows[next++];
      for_output(*row.output, [&] { sample_row(row); });
    }
  });
}

Result<std::vector<StepOutput>> Runner::run(const StepPlan& plan) {
  try {
    const TimePoint begin = clock_.now();
    auto outputs = forward(plan);
    if (plan.shape.prefill_tokens == 0) decode_time_ = clock_.now() - begin;
    return outputs;
  } catch (const LostWeights&) {
    if (masks_) masks_->stop();
    throw;
  } catch (const std::exception& e) {
    spdlog::error("a step of {} tokens failed: {}", plan.total_tokens, reason_of(e));
    if (masks_) masks_->stop();
    check_device(*launched_, e);
    return model_fault("the model failed to run a step", e);
  }
}

// While the model runs, if it leaves a core free. Else one thread would fill masks at the expense
// of the model's threads, which wait for each other, and sampling does it on all of them.
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

std::vector<StepOutput> Runner::forward(const StepPlan& plan) {
  fill_masks(plan);
  models::Batch batch = build_batch(plan);
  const at::Tensor hidden = hidden_states(batch);
  for (size_t i = 0; i < plan.items.size(); ++i)
    if (sequence_of(plan.items[i]).owner->prompt_logprobs)
      score_prompt(plan.items[i], hidden.narrow(0, batch.spans[i].begin, batch.spans[i].queries));
  std::vector<StepOutput> outputs;
  std::vector<int64_t> sampled_rows;
  models::HeadAdaptation heads;
  for (size_t i = 0; i < plan.items.size(); ++i) {
    if (!plan.items[i].yields) continue;
    const int64_t row = batch.spans[i].begin + batch.spans[i].queries - 1;
    StepOutput output{plan.items[i].request, {}, {}, {}};
    const serving::ActiveRequest& owner = *sequence_of(output).owner;
    if (owner.generates()) {
      const auto place = static_cast<int64_t>(sampled_rows.size());
      add_heads(owner.adapters, place, place + 1, heads);
      sampled_rows.push_back(row);
    } else {
      for_output(output, [&] {
        auto values =
            owner.head ? label_logits(*owner.head, hidden[row]) : embedding_of(hidden[row]);
        if (values.ok())
          output.values = std::move(values).value();
        else
          output.error = values.error();
      });
    }
    outputs.push_back(std::move(output));
  }
  if (!sampled_rows.empty()) {
    const at::Tensor logits = logits_of(hidden, sampled_rows, heads);
    if (masks_) masks_->stop();
    sample(outputs, logits);
  } else {
    launched_->wait();  // the step ends here: for its time, and for the next one's tables
  }
  return outputs;
}

}  // namespace valora
