#include "generator/train/trainer.h"

#include <algorithm>
#include <cmath>

#include "base/digest.h"
#include "engine/runner.h"
#include "generator/train/sampler.h"
#include "generator/train/schedule.h"
#include "ops/compute_threads.h"

namespace valora::generator {
namespace {

// A step's examples in passes of like lengths, which lie best side by side.
std::vector<std::vector<const Example*>> passes_of(std::vector<const Example*> examples,
                                                   int64_t tokens_per_pass) {
  std::ranges::stable_sort(examples, {}, [](const Example* e) { return e->tokens.size(); });
  std::vector<std::vector<const Example*>> passes;
  int64_t tokens = 0;
  for (const Example* example : examples) {
    const auto count = static_cast<int64_t>(example->tokens.size());
    if (passes.empty() || tokens + count > tokens_per_pass) {
      passes.emplace_back();
      tokens = 0;
    }
    passes.back().push_back(example);
    tokens += count;
  }
  return passes;
}

// A step's own, whatever was drawn before.
uint64_t dropout_seed(uint64_t seed, int64_t step, size_t pass) {
  return DigestBuilder().add(seed).add(step).add(static_cast<uint64_t>(pass)).finish().low;
}

// Scales the gradient down to the largest norm allowed (torch.nn.utils.clip_grad_norm_). → the norm
// before
double clip(at::Tensor& gradient, double largest) {
  const double norm = gradient.norm().item<double>();
  if (largest > 0 && norm > largest) gradient.mul_(largest / (norm + 1e-6));
  return norm;
}

// The state in the checkpoint, restored to the parameters and the optimizer, or that of a new
// training.
Result<TrainingState> continued(const std::string& checkpoint, const std::string& of,
                                AdapterParameters& parameters, Optimizer& optimizer) {
  if (checkpoint.empty()) return TrainingState{};
  VALORA_TRY(found, read_checkpoint(checkpoint, of));
  if (!found) return TrainingState{};
  if (found->values.numel() != parameters.values().numel())
    return unprocessable(checkpoint + " is of another adapter", checkpoint);
  parameters.values().copy_(found->values);
  parameters.refresh();
  optimizer.restore(found->optimizer);
  return std::move(*found);
}

}  // namespace

Trainer::Trainer(const TrainableModel& model, TrainingOptions options, std::string checkpoint)
    : model_(model),
      options_(options),
      checkpoint_(std::move(checkpoint)),
      visuals_(*model.loaded.model, *model.frontend, options_.visual_cache_bytes),
      pass_(*model.loaded.model, model.loaded.dtype, model.device, visuals_) {}

std::string Trainer::identity(const AdapterParameters& parameters,
                              const std::vector<TrainingSource>& sources) const {
  DigestBuilder builder;
  builder.add(to_json(options_).dump())
      .add(to_json(parameters.shape()).dump())
      .add(static_cast<int>(model_.loaded.dtype));
  const at::Tensor begin = parameters.values().to(at::kCPU);
  builder.add(
      std::span<const float>(begin.const_data_ptr<float>(), static_cast<size_t>(begin.numel())));
  for (const TrainingSource& source : sources) {
    builder.add(source.share).add(static_cast<uint64_t>(source.examples->size()));
    for (const Example& example : *source.examples) {
      builder.add(std::span<const int32_t>(example.tokens))
          .add(example.weight)
          .add(example.head.value_or(-1));
      builder.add(std::span<const int64_t>(example.labels));
      for (const Example::Visual& visual : example.visuals) builder.add(visual.digest);
    }
  }
  return builder.finish().hex();
}

Result<Trainer::Step> Trainer::step(AdapterParameters& parameters,
                                    std::vector<const Example*> examples, int64_t index) {
  const LossWeights weights = loss_weights(examples);
  const auto passes = passes_of(std::move(examples), options_.tokens_per_pass);
  Step result;
  parameters.gradient().zero_();
  for (size_t p = 0; p < passes.size(); ++p) {
    const PassOptions pass{{options_.dropout, dropout_seed(options_.seed, index, p)},
                           options_.recompute,
                           options_.logits_at_once};
    VALORA_TRY(loss, pass_.run(passes[p], parameters, weights, pass));
    parameters.collect();
    result.loss += loss;
  }
  result.gradient_norm = clip(parameters.gradient(), options_.clip);
  if (!std::isfinite(result.loss) || !std::isfinite(result.gradient_norm))
    return unprocessable(
        "step " + std::to_string(index + 1) + ": the loss is " + std::to_string(result.loss) +
            ", its gradient " + std::to_string(result.gradient_norm) +
            "; a lower learning rate may help, or a sample is broken (the step's first: " +
            passes.front().front()->origin + ")",
        "learning_rate");
  return result;
}

Status Trainer::evaluate(AdapterParameters& parameters, const TrainingCallbacks& callbacks,
                         TrainingState& state) const {
  VALORA_TRY(score, callbacks.evaluate(parameters));
  if (state.best_score && score <= *state.best_score) {
    ++state.worse;
    return {};
  }
  state.best_score = score;
  state.best_step = state.step;
  state.best_values = parameters.values().clone();
  state.worse = 0;
  return {};
}

Result<TrainingResult> Trainer::train(AdapterParameters& parameters,
                                      const std::vector<TrainingSource>& sources,
                                      const TrainingCallbacks& callbacks) try {
  std::vector<SampleSource> sizes;
  for (const TrainingSource& source : sources) {
    if (source.examples->empty()) return invalid("a task has no samples to train on", "train");
    sizes.push_back({static_cast<int64_t>(source.examples->size()), source.share});
  }
  const std::string of = identity(parameters, sources);
  StepSampler sampler(sizes, options_.batch, options_.seed, options_.shuffle);
  Optimizer optimizer(parameters.values(), parameters.gradient(), options_);
  VALORA_TRY(state, continued(checkpoint_, of, parameters, optimizer));
  const auto warmup =
      static_cast<int64_t>(std::ceil(options_.warmup * static_cast<double>(options_.steps)));
  double seconds_training = 0;
  int64_t samples = 0;
  std::optional<ops::ComputeThreads> threads;
  if (model_.adaptive_threads) threads.emplace();
  bool stopped =
      callbacks.evaluate && options_.evaluate_every > 0 && state.worse >= options_.patience;
  while (state.step < options_.steps && !stopped) {
    if (threads) threads->adjust();
    const TimePoint begin = clock_.now();
    std::vector<const Example*> examples;
    for (const SamplePlace& place : sampler.step(state.step))
      examples.push_back(&(
          *sources[static_cast<size_t>(place.source)].examples)[static_cast<size_t>(place.index)]);
    samples += static_cast<int64_t>(examples.size());
    VALORA_TRY(done, step(parameters, std::move(examples), state.step));
    const double rate = options_.learning_rate * cosine_rate(state.step, options_.steps, warmup);
    optimizer.step(rate);
    parameters.refresh();
    if (state.step++ == 0) state.first_loss = done.loss;
    state.last_loss = done.loss;
    seconds_training += seconds(clock_.now() - begin);
    if (callbacks.progress)
      callbacks.progress({state.step, options_.steps, done.loss, rate, done.gradient_norm,
                          static_cast<double>(samples) / seconds_training});
    const bool last = state.step == options_.steps;
    if (callbacks.evaluate && options_.evaluate_every > 0 &&
        (last || state.step % options_.evaluate_every == 0)) {
      VALORA_CHECK(evaluate(parameters, callbacks, state));
      stopped = state.worse >= options_.patience;
    }
    if (!checkpoint_.empty() && options_.checkpoint_every > 0 &&
        (last || stopped || state.step % options_.checkpoint_every == 0)) {
      state.values = parameters.values();
      state.optimizer = optimizer.state();
      VALORA_CHECK(write_checkpoint(checkpoint_, state, of));
    }
  }
  if (state.best_values.defined()) {
    parameters.values().copy_(state.best_values);
    parameters.refresh();
  }
  return TrainingResult{
      state.step,       state.first_loss,
      state.last_loss,  state.best_score,
      seconds_training, seconds_training > 0 ? static_cast<double>(samples) / seconds_training : 0};
} catch (const std::exception& e) {
  return model_fault("training failed", e);
}

}  // namespace valora::generator
