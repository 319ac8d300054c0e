#include "adapters/task_heads.h"

#include <algorithm>

#include "adapters/tensors/tensor_values.h"
#include "base/text/strings.h"
#include "base/text/visible_text.h"

namespace valora::adapters {
namespace {

Status check_shapes(const std::string& name, const HeadTensors& tensors, int64_t hidden_size) {
  const auto& shape = tensors.weight->shape;
  if (hidden_size < 1 || shape.size() != 2 || shape[0] < 1 || shape[1] != hidden_size)
    return unprocessable("the head " + name + " has a weight of shape " + shape_text(shape) +
                         "; only one linear layer [labels, " + std::to_string(hidden_size) +
                         "] can be served");
  if (tensors.bias && tensors.bias->shape != std::vector<int64_t>{shape[0]})
    return unprocessable("the head " + name + " has a bias of shape " +
                         shape_text(tensors.bias->shape) + " but " + std::to_string(shape[0]) +
                         " labels");
  return {};
}

std::vector<std::string> numbered_labels(size_t rows) {
  std::vector<std::string> labels;
  for (size_t i = 0; i < rows; ++i) labels.push_back("LABEL_" + std::to_string(i));
  return labels;
}

Result<TaskHead> make_head(const std::string& name, const HeadTensors& tensors,
                           const HeadNotes* notes, int64_t hidden_size) {
  if (has_hidden_characters(name))
    return unprocessable("the name of the head " + visible(shortened(name)) +
                         " has control characters or bidirectional controls");
  VALORA_CHECK(check_shapes(name, tensors, hidden_size));
  const size_t rows = static_cast<size_t>(tensors.weight->shape[0]);
  TaskHead head{.name = name, .weight = *tensors.weight};
  if (tensors.bias) head.bias = *tensors.bias;
  head.problem_type = rows == 1 ? ProblemType::kRegression : ProblemType::kSingleLabel;
  if (notes) {
    if (!notes->labels.empty() && notes->labels.size() != rows)
      return unprocessable("valora.json gives the head " + name + " " +
                           std::to_string(notes->labels.size()) + " labels, but its weight has " +
                           std::to_string(rows) + " rows");
    if (!notes->labels.empty()) head.labels = notes->labels;
    head.problem_type = notes->problem_type.value_or(head.problem_type);
    head.add_generation_prompt = notes->add_generation_prompt;
  }
  if (head.labels.empty()) head.labels = numbered_labels(rows);
  return head;
}

}  // namespace

Result<std::vector<TaskHead>> resolve_heads(const AdapterContents& contents, const Sidecar& sidecar,
                                            int64_t hidden_size) {
  for (const HeadNotes& notes : sidecar.heads)
    if (!contents.heads.contains(notes.name))
      return unprocessable("valora.json describes the head \"" + shortened(notes.name) +
                           "\", for which the file has no tensors");
  std::vector<TaskHead> heads;
  for (const auto& [name, tensors] : contents.heads) {
    const auto notes =
        std::find_if(sidecar.heads.begin(), sidecar.heads.end(),
                     [&, &head = name](const HeadNotes& n) { return n.name == head; });
    VALORA_TRY(head, make_head(name, tensors, notes == sidecar.heads.end() ? nullptr : &*notes,
                               hidden_size));
    heads.push_back(std::move(head));
  }
  return heads;
}

}  // namespace valora::adapters
