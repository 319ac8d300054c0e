#include "generator/train/pass.h"

#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <map>

#include "engine/runner/flat_tensors.h"
#include "models/spec/positions.h"
#include "ops/elementwise/recompute.h"
#include "serving/adapters/loaded_adapter.h"

namespace valora::generator {
namespace {

at::Tensor long_tensor(const std::vector<int64_t>& values, at::Device device) {
  return at::tensor(values, at::kLong).to(device);
}
at::Tensor float_tensor(const std::vector<float>& values, at::Device device) {
  return at::tensor(values, at::kFloat).to(device);
}

// True if the adapter changes the output of the vision tower or of the projector.
bool touches_visuals(const AdapterParameters& parameters, const models::Model& model) {
  for (const int module : parameters.shape().modules)
    if (model.spec().modules.modules()[module].visual) return true;
  return false;
}

// Applies the adapter to the rows on which it acts when it is served (serving::acts_from).
void add_adapter(std::span<const Example* const> examples, const AdapterParameters& parameters,
                 ops::LoraBatch& lora) {
  const std::vector<int32_t>& invocation = parameters.shape().invocation;
  int64_t begin = 0;
  for (const Example* example : examples) {
    const auto end = begin + static_cast<int64_t>(example->tokens.size());
    const int64_t from = serving::acts_from(
        invocation, std::span(example->tokens).first(static_cast<size_t>(example->prompt_tokens)));
    if (from != serving::kNever) lora.add(begin + from, end, parameters.weights(), 1);
    begin = end;
  }
}

// Each example is a single pass over prompt and answer, so all its tokens use the same length.
void set_rope_lengths(const models::ModelSpec& spec, std::span<const Example* const> examples,
                      serving::FlatTokens& flat) {
  if (spec.rope_change.beyond == 0 || spec.rope_change.of_prompt) return;
  for (const Example* example : examples)
    flat.rope_lengths.insert(flat.rope_lengths.end(), example->tokens.size(),
                             models::length_of(example->positions));
  if (std::ranges::max(flat.rope_lengths) <= spec.rope_change.beyond) flat.rope_lengths.clear();
}

// Cross-entropy of `tokens` given the preceding hidden states, weighted by `shares` and summed.
at::Tensor token_losses(const models::Model& model, const at::Tensor& states,
                        const at::Tensor& tokens, const at::Tensor& shares) {
  return (at::cross_entropy_loss(model.logits(states), tokens, {}, at::Reduction::None) * shares)
      .sum();
}

}  // namespace

LossWeights loss_weights(std::span<const Example* const> examples) {
  LossWeights weights;
  for (const Example* example : examples) {
    weights.answer_tokens += example->weight * static_cast<double>(example->answer_tokens());
    if (!example->head.empty()) weights.head_samples += example->weight;
  }
  return weights;
}

models::Batch example_batch(const models::ModelSpec& spec, std::span<const Example* const> examples,
                            at::Device device) {
  serving::FlatTokens flat(spec.axes);
  for (const Example* example : examples) {
    const auto count = static_cast<int64_t>(example->tokens.size());
    flat.spans.push_back({.begin = flat.count(), .queries = count, .joint = example->joint});
    flat.ids.insert(flat.ids.end(), example->tokens.begin(), example->tokens.end());
    for (size_t a = 0; a < flat.positions.size(); ++a) {
      const auto first = example->positions.begin() + static_cast<int64_t>(a) * count;
      flat.positions[a].insert(flat.positions[a].end(), first, first + count);
    }
  }
  set_rope_lengths(spec, examples, flat);
  models::Batch batch = flat_batch(flat);
  to_device(batch, device);
  return batch;
}

at::Tensor TrainingPass::answer_loss(std::span<const Example* const> examples,
                                     const at::Tensor& hidden, double weight,
                                     int64_t logits_at_once) const {
  std::vector<int64_t> rows, targets;
  std::vector<float> weights;
  int64_t begin = 0;
  for (const Example* example : examples) {
    for (int64_t i = example->prompt_tokens; i < static_cast<int64_t>(example->tokens.size());
         ++i) {
      rows.push_back(begin + i - 1);  // each token is predicted from the one before it
      targets.push_back(example->tokens[static_cast<size_t>(i)]);
      weights.push_back(static_cast<float>(example->weight / weight));
    }
    begin += static_cast<int64_t>(example->tokens.size());
  }
  if (rows.empty()) return {};
  const at::Tensor states = hidden.index_select(0, long_tensor(rows, device_)),
                   tokens = long_tensor(targets, device_), shares = float_tensor(weights, device_);
  const auto count = static_cast<int64_t>(rows.size()),
             together = std::max<int64_t>(1, logits_at_once / model_.spec().vocab);
  if (count <= together) return token_losses(model_, states, tokens, shares);
  at::Tensor sum;
  for (int64_t first = 0; first < count; first += together) {
    const int64_t length = std::min(together, count - first);
    const auto part = [this, part_tokens = tokens.narrow(0, first, length),
                       part_shares = shares.narrow(0, first, length)](const auto& inputs) {
      return std::vector{token_losses(model_, inputs.front(), part_tokens, part_shares)};
    };
    const at::Tensor loss = ops::recomputed(part, {states.narrow(0, first, length)}).front();
    sum = sum.defined() ? sum + loss : loss;
  }
  return sum;
}

at::Tensor TrainingPass::head_loss(std::span<const Example* const> examples,
                                   const AdapterParameters& parameters, const at::Tensor& hidden,
                                   double weight) const {
  struct Rows {
    std::vector<int64_t> rows, label;
    std::vector<const Example*> examples;
    std::vector<float> weights;
  };
  const std::vector<HeadShape>& heads = parameters.shape().heads;
  std::map<size_t, Rows> by_head;
  int64_t begin = 0;
  for (const Example* example : examples) {
    if (!example->head.empty()) {
      const auto head = std::ranges::find(heads, example->head, &HeadShape::name);
      TORCH_CHECK(head != heads.end(), "the adapter has no head ", example->head);
      Rows& r = by_head[static_cast<size_t>(head - heads.begin())];
      r.rows.push_back(begin + example->prompt_tokens - 1);
      r.label.push_back(example->labels.empty() ? 0 : example->labels.front());
      r.examples.push_back(example);
      r.weights.push_back(static_cast<float>(example->weight / weight));
    }
    begin += static_cast<int64_t>(example->tokens.size());
  }
  at::Tensor sum;
  for (const auto& [head, r] : by_head) {
    const at::Tensor states = hidden.index_select(0, long_tensor(r.rows, device_)).to(at::kFloat);
    const at::Tensor logits = at::linear(states, parameters.head(head));
    at::Tensor losses;
    if (heads[head].multi_label) {
      at::Tensor wanted = at::zeros(logits.sizes(), at::kFloat);
      for (size_t i = 0; i < r.examples.size(); ++i)
        for (const int64_t label : r.examples[i]->labels)
          wanted.index_put_({at::tensor(static_cast<int64_t>(i)), at::tensor(label)}, at::ones({}));
      losses = at::binary_cross_entropy_with_logits(logits, wanted.to(device_), {}, {},
                                                    at::Reduction::None)
                   .mean(1);
    } else {
      losses =
          at::cross_entropy_loss(logits, long_tensor(r.label, device_), {}, at::Reduction::None);
    }
    const at::Tensor part = (losses * float_tensor(r.weights, device_)).sum();
    sum = sum.defined() ? sum + part : part;
  }
  return sum;
}

Result<double> TrainingPass::run(std::span<const Example* const> examples,
                                 const AdapterParameters& parameters, const LossWeights& weights,
                                 const PassOptions& options) {
  const c10::AutoGradMode gradients(true);
  models::Batch batch = example_batch(model_.spec(), examples, device_);
  add_adapter(examples, parameters, batch.adaptation.lora);
  batch.adaptation.lora.set_dropout(options.dropout);
  batch.recompute = options.recompute;
  VALORA_TRY(visual,
             visuals_.rows(examples,
                           touches_visuals(parameters, model_) ? &parameters.weights() : nullptr));
  for (models::VisualRows& rows : visual)
    batch.visual.push_back({rows.token, rows.embeddings.to(dtype_)});
  const at::Tensor hidden = model_.forward(batch);
  const at::Tensor answers =
      answer_loss(examples, hidden, weights.answer_tokens, options.logits_at_once);
  const at::Tensor heads = head_loss(examples, parameters, hidden, weights.head_samples);
  if (!answers.defined() && !heads.defined()) return 0.0;
  const at::Tensor loss = !answers.defined() ? heads : !heads.defined() ? answers : answers + heads;
  if (loss.requires_grad()) torch::autograd::backward({loss}, {});
  return loss.item<double>();
}

}  // namespace valora::generator
