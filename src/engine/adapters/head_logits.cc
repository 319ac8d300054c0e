#include "engine/adapters/head_logits.h"

#include <algorithm>
#include <cmath>

#include "engine/adapters/adapter_tensors.h"
#include "serving/output/not_finite.h"

namespace valora {
namespace {

at::Tensor probabilities(const at::Tensor& logits, adapters::ProblemType type) {
  switch (type) {
    case adapters::ProblemType::kSingleLabel: return at::softmax(logits, -1);
    case adapters::ProblemType::kMultiLabel: return at::sigmoid(logits);
    case adapters::ProblemType::kRegression: break;
  }
  return logits;
}

std::vector<float> values(const at::Tensor& x) {
  const at::Tensor host = x.cpu().contiguous();
  return {host.const_data_ptr<float>(), host.const_data_ptr<float>() + host.numel()};
}

bool all_finite(const std::vector<float>& values) {
  return std::ranges::all_of(values, [](float x) { return std::isfinite(x); });
}

}  // namespace

Result<std::vector<float>> label_logits(const serving::LoadedHead& head, const at::Tensor& hidden) {
  const HeadTensors& tensors = tensors_of(head);
  at::Tensor logits = at::mv(tensors.weight, hidden.to(at::kFloat));
  if (tensors.bias.defined()) logits = logits + tensors.bias;
  std::vector<float> result = values(logits);
  if (!all_finite(result)) return serving::not_finite("the logits of head " + head.name);
  return result;
}

Result<std::vector<float>> embedding_of(const at::Tensor& hidden) {
  std::vector<float> result = values(hidden.to(at::kFloat));
  if (!all_finite(result)) return serving::not_finite("the values of the embedding");
  return result;
}

std::vector<float> probabilities_of(const std::vector<float>& logits, adapters::ProblemType type) {
  return values(probabilities(at::tensor(logits), type));
}

}  // namespace valora
