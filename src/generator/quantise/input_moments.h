// Second moments of the inputs of linears, over task samples.
#pragma once

#include <ATen/ATen.h>

#include <map>
#include <memory>
#include <set>
#include <vector>

#include "generator/quantise/options.h"
#include "generator/train/example.h"
#include "generator/train/trainable_model.h"
#include "generator/train/visual_source.h"

namespace valora::generator {

class InputMoments {
 public:
  // Reads the tasks' training samples, spread evenly over the tasks, and prepares them as for
  // training. Cuts the text into windows, spread evenly over it. Errors name the task or the file.
  static Result<std::unique_ptr<InputMoments>> open(const QuantiseOptions& options,
                                                    const QuantiseEvents& events);

  // For each of these modules, float [in, in]: the sum of x xᵀ over all tokens of all samples.
  // Linears with the same input share one tensor.
  Result<std::map<int, at::Tensor>> gather(const std::set<int>& modules,
                                           const std::function<void(int64_t done)>& progress,
                                           const std::stop_token& stop);

  int64_t samples() const { return static_cast<int64_t>(examples_.size()); }
  int64_t tokens() const;
  const models::ModelSpec& spec() const { return model_->loaded.model->spec(); }

 private:
  explicit InputMoments(std::unique_ptr<TrainableModel> model);
  Status add_tasks(const std::string& path, int64_t most, const QuantiseOptions& options,
                   const QuantiseEvents& events);
  Status add_text(const std::string& path, int64_t most);

  std::unique_ptr<TrainableModel> model_;
  VisualSource visuals_;
  std::vector<Example> examples_;
};

}  // namespace valora::generator
