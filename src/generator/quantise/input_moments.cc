#include "generator/quantise/input_moments.h"

#include <c10/core/InferenceMode.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>

#include "base/files/file.h"
#include "generator/data/datasets.h"
#include "generator/data/tasks_file.h"
#include "generator/fusion/task_data.h"
#include "generator/stopped.h"
#include "generator/train/pass.h"
#include "models/spec/positions.h"

namespace valora::generator {
namespace {

constexpr size_t kVisualCache = size_t{256} << 20;
constexpr size_t kMostText = size_t{64} << 20;  // bytes
constexpr int64_t kWindow = 512;                // tokens

// Accumulates the input moments of the requested modules.
class Gatherer final : public models::LinearObserver {
 public:
  explicit Gatherer(const std::set<int>& modules) : modules_(modules) {}

  void on_input(std::span<const int> modules, const at::Tensor& x) override {
    at::Tensor product;
    at::Tensor shared;  // shared by all linears with this input
    for (const int module : modules) {
      if (!modules_.contains(module)) continue;
      if (const auto known = moments.find(module); known != moments.end()) {
        if (shared.defined()) continue;  // the same input again
        shared = known->second;
        const at::Tensor rows = x.to(at::kFloat);
        shared.addmm_(rows.t(), rows);
        continue;
      }
      if (!shared.defined()) {
        const at::Tensor rows = x.to(at::kFloat);
        shared = at::mm(rows.t(), rows);
      }
      moments[module] = shared;
    }
  }

  std::map<int, at::Tensor> moments;

 private:
  const std::set<int>& modules_;
};

}  // namespace

InputMoments::InputMoments(std::unique_ptr<TrainableModel> model)
    : model_(std::move(model)), visuals_(*model_->loaded.model, *model_->frontend, kVisualCache) {}

Result<std::unique_ptr<InputMoments>> InputMoments::open(const QuantiseOptions& options,
                                                         const QuantiseEvents& events) {
  VALORA_TRY(model, TrainableModel::open(options.engine));
  std::unique_ptr<InputMoments> made(new InputMoments(std::move(model)));
  const bool both = !options.tasks.empty() && !options.text.empty();
  const int64_t of_text = options.text.empty() ? 0 : options.samples / (both ? 2 : 1);
  if (!options.tasks.empty())
    VALORA_CHECK(made->add_tasks(options.tasks, options.samples - of_text, options, events));
  if (!options.text.empty()) VALORA_CHECK(made->add_text(options.text, of_text));
  return made;
}

Status InputMoments::add_tasks(const std::string& path, int64_t most,
                               const QuantiseOptions& options, const QuantiseEvents& events) {
  VALORA_TRY(tasks, read_tasks(path));
  const auto count = static_cast<int64_t>(tasks.size());
  std::vector<ExampleRequest> requests;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t share = most * (i + 1) / count - most * i / count;
    VALORA_TRY(some, sample_requests(tasks[static_cast<size_t>(i)], share));
    std::ranges::move(some, std::back_inserter(requests));
  }
  if (requests.empty()) return invalid(path + ": the tasks have no samples", "tasks");
  VALORA_TRY(examples,
             model_->examples(
                 std::move(requests), std::max(1, options.engine.threads),
                 [&](int done, int total) { events.progress("preparing samples", done, total); },
                 events.stop));
  examples_ = std::move(examples);
  return {};
}

Status InputMoments::add_text(const std::string& path, int64_t most) {
  VALORA_TRY(text, read_file(path, kMostText));
  const std::vector<int32_t> tokens = model_->frontend->tokenizer()->encode(text);
  const auto count = static_cast<int64_t>(tokens.size()),
             length = std::min(kWindow, model_->max_tokens), windows = count / length,
             wanted = std::min(most, windows);
  if (wanted == 0)
    return invalid(fmt::format("{}: a text of {} tokens has no window of {}", path, count, length),
                   "text");
  for (int64_t i = 0; i < wanted; ++i) {
    const auto begin = tokens.begin() + i * windows / wanted * length;
    Example example{.origin = path, .tokens = {begin, begin + length}};
    example.positions = models::text_positions(static_cast<int>(length), spec().axes).prompt;
    examples_.push_back(std::move(example));
  }
  return {};
}

int64_t InputMoments::tokens() const {
  int64_t tokens = 0;
  for (const Example& example : examples_) tokens += static_cast<int64_t>(example.tokens.size());
  return tokens;
}

Result<std::map<int, at::Tensor>> InputMoments::gather(
    const std::set<int>& modules, const std::function<void(int64_t done)>& progress,
    const std::stop_token& stop) {
  const c10::InferenceMode no_gradients;
  Gatherer gatherer(modules);
  const models::LoadedModel& loaded = model_->loaded;
  int64_t done = 0;
  for (const Example& example : examples_) {
    if (stop.stop_requested()) return stopped();
    const std::array<const Example*, 1> one{&example};
    models::Batch batch = example_batch(loaded.model->spec(), one, model_->device);
    VALORA_TRY(visual, visuals_.rows(one, nullptr));
    for (models::VisualRows& rows : visual)
      batch.visual.push_back({rows.token, rows.embeddings.to(loaded.dtype)});
    batch.adaptation.observer = &gatherer;
    loaded.model->forward(batch);
    progress(++done);
  }
  return std::move(gatherer.moments);
}

}  // namespace valora::generator
