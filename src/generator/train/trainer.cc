#include "generator/train/trainer.h"

#include <algorithm>
#include <cmath>

#include "base/digest.h"
#include "engine/runner/model_fault.h"
#include "generator/stopped.h"
#include "generator/train/optimizer.h"
#include "generator/train/sampler.h"
#include "ops/device/compute_threads.h"

namespace valora::generator {
namespace {

// Groups a step's examples into passes of similar lengths, which pack best.
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

// Depends only on the step and pass, not on earlier draws.
uint64_t dropout_seed(uint64_t seed, int64_t step, size_t pass) {
  return DigestBuilder().add(seed).add(step).add(static_cast<uint64_t>(pass)).finish().low;
}

// Scales the gradient down to the largest norm allowed (torch.nn.utils.clip_grad_norm_). Returns
// the norm before scaling.
double clip(at::Tensor& gradient, double largest) {
  const double norm = gradient.norm().item<double>();
  if (largest > 0 && norm > largest) gradient.mul_(largest / (norm + 1e-6));
  return norm;
}

// Restores the parameters and the optimizer from the checkpoint and returns its state, or starts a
// new training.
Result<TrainingState> continued(const std::string& checkpoint, const std::string& of,
                                AdapterParameters& parameters, Optimizer& optimizer) {
  if (checkpoint.empty()) return TrainingState{};
  VALORA_TRY(found, read_checkpoint(checkpoint, of));
  if (!found) return TrainingState{};
  if (found->values.numel() != parameters.values().numel())
    return unprocessable(checkpoint + " belongs to another adapter", checkpoint);
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
      builder.add(std::span<const int32_t>(example.tokens)).add(example.weight).add(example.head);
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

struct Trainer::Course {
  AdapterParameters& parameters;
  const std::vector<TrainingSource>& sources;
  const TrainingCallbacks& callbacks;
  const std::string identity;
  StepSampler sampler;
  Optimizer optimizer;
  TrainingState state{};
  int64_t saved = 0;  // step of the last checkpoint
  // For this run's progress reports.
  double seconds = 0;
  int64_t samples = 0;
};

bool Trainer::evaluation_is_due(const Course& course) const {
  const int64_t step = course.state.step;
  return course.callbacks.evaluate && options_.evaluate_every > 0 &&
         course.state.evaluated < step &&
         (step == options_.steps || step % options_.evaluate_every == 0);
}

Status Trainer::evaluate(Course& course) const {
  TrainingState& state = course.state;
  const TimePoint begin = clock_.now();
  VALORA_TRY(score, course.callbacks.evaluate(course.parameters));
  state.evaluation_seconds += seconds(clock_.now() - begin);
  state.evaluated = state.step;
  if (state.best_score && score <= *state.best_score) {
    ++state.worse;
    return {};
  }
  state.best_score = score;
  state.best_step = state.step;
  state.best_values = course.parameters.values().clone();
  state.worse = 0;
  return {};
}

bool Trainer::ended(const Course& course) const {
  const bool stopped_early = course.callbacks.evaluate && options_.evaluate_every > 0 &&
                             course.state.worse >= options_.patience;
  return course.state.step >= options_.steps || stopped_early;
}

Status Trainer::advance(Course& course) {
  TrainingState& state = course.state;
  const TimePoint begin = clock_.now();
  std::vector<const Example*> examples;
  for (const SamplePlace& place : course.sampler.step(state.step))
    examples.push_back(&(*course.sources[static_cast<size_t>(place.source)]
                              .examples)[static_cast<size_t>(place.index)]);
  const auto samples = static_cast<int64_t>(examples.size());
  VALORA_TRY(done, step(course.parameters, std::move(examples), state.step));
  const auto warmup =
      static_cast<int64_t>(std::ceil(options_.warmup * static_cast<double>(options_.steps)));
  const double rate = options_.learning_rate * cosine_rate(state.step, options_.steps, warmup);
  course.optimizer.step(rate);
  course.parameters.refresh();
  if (state.step++ == 0) state.first_loss = done.loss;
  state.last_loss = done.loss;
  const double passed = seconds(clock_.now() - begin);
  state.seconds += passed;
  state.samples += samples;
  course.seconds += passed;
  course.samples += samples;
  if (course.callbacks.progress)
    course.callbacks.progress({state.step, options_.steps, done.loss, rate, done.gradient_norm,
                               static_cast<double>(course.samples) / course.seconds});
  return {};
}

Status Trainer::save(Course& course) const {
  if (checkpoint_.empty() || course.state.step == course.saved) return {};
  course.state.values = course.parameters.values();
  course.state.optimizer = course.optimizer.state();
  VALORA_CHECK(write_checkpoint(checkpoint_, course.state, course.identity));
  course.saved = course.state.step;
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
  Course course{parameters,
                sources,
                callbacks,
                identity(parameters, sources),
                StepSampler(sizes, options_.batch, options_.seed, options_.shuffle),
                Optimizer(parameters.values(), parameters.gradient(), options_)};
  VALORA_TRY(state, continued(checkpoint_, course.identity, parameters, course.optimizer));
  course.state = std::move(state);
  course.saved = course.state.step;
  std::optional<ops::ComputeThreads> threads;
  if (model_.adaptive_threads) threads.emplace();
  while (true) {
    const Status evaluated = evaluation_is_due(course) ? evaluate(course) : Status();
    const bool stop = callbacks.stop.stop_requested();
    const bool regular = ended(course) || (options_.checkpoint_every > 0 &&
                                           course.state.step % options_.checkpoint_every == 0);
    if (stop || (regular && evaluated.ok())) VALORA_CHECK(save(course));
    VALORA_CHECK(evaluated);
    if (ended(course)) break;
    if (stop) return stopped();
    if (threads) threads->adjust();
    VALORA_CHECK(advance(course));
  }
  TrainingState& last = course.state;
  if (last.best_values.defined()) {
    parameters.values().copy_(last.best_values);
    parameters.refresh();
  }
  const double rate = last.seconds > 0 ? static_cast<double>(last.samples) / last.seconds : 0;
  return TrainingResult{
      last.step, last.first_loss,        last.last_loss, last.best_score, last.seconds,
      rate,      last.evaluation_seconds};
} catch (const std::exception& e) {
  return model_fault("training failed", e);
}

}  // namespace valora::generator
