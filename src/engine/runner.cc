#include "engine/runner.h"

#include <algorithm>

#include "base/log.h"
#include "engine/output/task_head.h"
#include "engine/segments.h"
#include "ops/parallel.h"

namespace valora {
namespace {

using scheduler::FailedRequest;
using scheduler::StepItem;
using scheduler::StepOutput;
using scheduler::StepPlan;

Sequence& sequence_of(const StepItem& item) { return static_cast<Sequence&>(*item.request); }
Sequence& sequence_of(const StepOutput& output) { return static_cast<Sequence&>(*output.request); }

// Patches per run of the tower, which bounds its activations: at a width of 1280 some 500 MB in
// bf16.
constexpr int64_t kPatchesAtOnce = 1 << 14;

// The visual spans that overlap the tokens of an item.
template <typename Body>
void for_each_visual(const StepItem& item, Body&& body) {
  const Sequence& s = sequence_of(item);
  const int begin = s.computed_tokens, end = begin + item.tokens;
  for (const models::VisualSpan& span : s.prompt->visual)
    if (span.token_begin < end && span.token_begin + span.input->tokens > begin)
      body(span, begin, end);
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

bool changes_visuals(const AppliedAdapter& use) {
  return use.adapter->on_visuals && use.scale != 0;
}

// The cache key of visual embeddings: the pixels, and the adapters that target the tower or the
// projector.
Digest visual_key(const Sequence& s, const media::VisualInput& input) {
  const Digest adapters = digest_of(s.owner->adapters, changes_visuals);
  return adapters == Digest{} ? input.digest
                              : DigestBuilder().add(adapters).add(input.digest).finish();
}

at::Tensor long_tensor(const std::vector<int64_t>& values, at::Device device) {
  return at::tensor(values, at::kLong).to(device);
}

}  // namespace

std::string reason_of(const std::exception& e) {
  const auto* torch_error = dynamic_cast<const c10::Error*>(&e);
  return torch_error ? torch_error->what_without_backtrace() : e.what();
}

Runner::Runner(const models::Model& model, ops::KvArena arena, at::ScalarType dtype,
               at::Device device, size_t visual_cache_bytes, std::unique_ptr<ModeSwitcher> switcher)
    : model_(model),
      arena_(std::move(arena)),
      dtype_(dtype),
      device_(device),
      visual_cache_(visual_cache_bytes),
      switcher_(std::move(switcher)) {}

struct Runner::Visual {
  Digest key;
  models::VisualItem item;
};

std::vector<FailedRequest> Runner::prepare(const StepPlan& plan) {
  step_visuals_.clear();
  std::vector<Visual> missing;
  for (const StepItem& step_item : plan.items)
    for_each_visual(step_item, [&](const models::VisualSpan& span, int, int) {
      const Sequence& s = sequence_of(step_item);
      const Digest key = visual_key(s, *span.input);
      if (step_visuals_.contains(key)) return;
      const at::Tensor cached = visual_cache_.find(key);
      step_visuals_.emplace(key, cached);
      if (cached.defined()) return;
      missing.push_back({key, {span.input.get(), {}}});
      for (const AppliedAdapter& use : s.owner->adapters)
        if (changes_visuals(use))
          missing.back().item.adapters.push_back({use.adapter->weights.get(), use.scale});
    });
  encode(missing);
  std::vector<FailedRequest> failed;
  for (const StepItem& step_item : plan.items) {
    std::optional<Error> error;
    for_each_visual(step_item, [&](const models::VisualSpan& span, int, int) {
      const auto& visual = step_visuals_.at(visual_key(sequence_of(step_item), *span.input));
      if (!visual.ok()) error = visual.error();
    });
    if (error) failed.push_back({step_item.request, *error});
  }
  return failed;
}

// Encodes several items per run, up to kPatchesAtOnce. If a run throws, each of its items is
// encoded alone, so that one request's image cannot fail another request.
void Runner::encode(std::span<const Visual> visuals) {
  while (!visuals.empty()) {
    size_t count = 1;
    int64_t patches = visuals[0].item.input->patch_count();
    while (count < visuals.size() &&
           (patches += visuals[count].item.input->patch_count()) <= kPatchesAtOnce)
      ++count;
    const auto together = visuals.first(count);
    visuals = visuals.subspan(count);
    if (encode_together(together).ok() || count == 1) continue;
    for (size_t i = 0; i < count; ++i)
      (void)encode_together(together.subspan(i, 1));  // errors are stored in step_visuals_
  }
}

Status Runner::encode_together(std::span<const Visual> visuals) {
  std::vector<models::VisualItem> items;
  for (const Visual& visual : visuals) items.push_back(visual.item);
  try {
    const std::vector<at::Tensor> embeddings = model_.encode(items);
    for (size_t i = 0; i < visuals.size(); ++i) {
      TORCH_CHECK(embeddings[i].size(0) == items[i].input->tokens, "the vision tower made ",
                  embeddings[i].size(0), " embeddings for ", items[i].input->tokens, " tokens");
      const at::Tensor kept = embeddings[i].to(dtype_);
      step_visuals_.insert_or_assign(visuals[i].key, kept);
      visual_cache_.insert(visuals[i].key, kept);
    }
    return {};
  } catch (const std::exception& e) {
    const Error error = internal("an image could not be encoded: " + reason_of(e));
    for (const Visual& visual : visuals) step_visuals_.insert_or_assign(visual.key, error);
    return error;
  }
}

// The merged weights of the plan. The adapter is that of a request in the step, or the one that is
// still merged. It is neither only if all its requests failed in prepare(); the step then runs on
// the base weights.
const models::MergedWeights* Runner::use_weights(const StepPlan& plan) {
  if (!switcher_) return nullptr;
  if (plan.merged == scheduler::kBaseModel) return switcher_->use(nullptr);
  for (const StepItem& item : plan.items)
    for (const AppliedAdapter& use : sequence_of(item).owner->adapters)
      if (use.adapter->id == plan.merged) return switcher_->use(use.adapter);
  const auto before = switcher_->in_use();
  return switcher_->use(before && before->id == plan.merged ? before : nullptr);
}

models::Batch Runner::build_batch(const StepPlan& plan) {
  models::Batch batch;
  batch.kv = &arena_;
  batch.adaptation.merged = use_weights(plan);
  const LoadedAdapter* merged = switcher_ ? switcher_->in_use().get() : nullptr;
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
    for_each_visual(item, [&](const models::VisualSpan& span, int from, int to) {
      const int first = std::max(from, span.token_begin),
                last = std::min(to, span.token_begin + span.input->tokens);
      batch.visual.push_back(
          {begin + first - from, step_visuals_.at(visual_key(s, *span.input))
                                     ->narrow(0, first - span.token_begin, last - first)});
    });
  }
  batch.tokens = long_tensor(tokens, device_);
  std::vector<at::Tensor> rows;
  for (const auto& axis : positions) rows.push_back(long_tensor(axis, device_));
  batch.positions = at::stack(rows);
  return batch;
}

void Runner::sample(std::vector<StepOutput>& outputs, const at::Tensor& logits) {
  std::vector<StepOutput*> rows;
  for (StepOutput& output : outputs)
    if (!sequence_of(output).owner->head) rows.push_back(&output);
  const int64_t vocab = logits.size(1);
  float* data = logits.data_ptr<float>();
  ops::torch_parallel()(0, static_cast<int64_t>(rows.size()), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      Sequence& s = sequence_of(*rows[i]);
      auto token = sample_next(s, {data + i * vocab, static_cast<size_t>(vocab)});
      if (token.ok())
        rows[i]->token = std::move(token).value();
      else
        rows[i]->error = token.error();
    }
  });
}

Result<std::vector<StepOutput>> Runner::run(const StepPlan& plan) {
  try {
    return forward(plan);
  } catch (const std::exception& e) {
    const std::string reason = reason_of(e);
    spdlog::error("a step of {} tokens failed: {}", plan.total_tokens, reason);
    return internal("the model failed to run a step: " + reason);
  }
}

std::vector<StepOutput> Runner::forward(const StepPlan& plan) {
  const models::Batch batch = build_batch(plan);
  const at::Tensor hidden = model_.forward(batch);
  std::vector<StepOutput> outputs;
  std::vector<int64_t> sampled_rows;
  for (size_t i = 0; i < plan.items.size(); ++i) {
    if (!plan.items[i].yields) continue;
    const int64_t row = batch.spans[i].begin + batch.spans[i].queries - 1;
    StepOutput output{plan.items[i].request, {}, {}, {}};
    if (const LoadedHead* head = sequence_of(output).owner->head) {
      auto logits = label_logits(*head, hidden[row]);
      if (logits.ok())
        output.label_logits = std::move(logits).value();
      else
        output.error = logits.error();
    } else {
      sampled_rows.push_back(row);
    }
    outputs.push_back(std::move(output));
  }
  if (!sampled_rows.empty())
    sample(outputs, model_.logits(hidden.index_select(0, long_tensor(sampled_rows, device_)))
                        .cpu()
                        .contiguous());
  step_visuals_.clear();
  return outputs;
}

}  // namespace valora
