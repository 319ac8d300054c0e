#include "generator/train/checkpoint.h"

#include "base/json/json.h"
#include "base/tensors/safetensors_writer.h"
#include "generator/train/tensor_bytes.h"
#include "models/weights/weights.h"

namespace valora::generator {
namespace {

constexpr size_t kMaxBytes = size_t{16} << 30;
constexpr char kNotes[] = "state";  // name of the JSON among the tensors

Json notes_of(const TrainingState& state, const std::string& identity) {
  Json notes{{"identity", identity},
             {"step", state.step},
             {"optimizer_step", state.optimizer.step},
             {"first_loss", state.first_loss},
             {"last_loss", state.last_loss},
             {"best_step", state.best_step},
             {"worse", state.worse},
             {"evaluated", state.evaluated},
             {"seconds", state.seconds},
             {"evaluation_seconds", state.evaluation_seconds},
             {"samples", state.samples}};
  if (state.best_score) notes["best_score"] = *state.best_score;
  return notes;
}

at::Tensor tensor(const SafeTensors& file, const std::string& name) {
  const TensorView* view = file.find(name);
  return view ? models::tensor_of(*view).clone() : at::Tensor();
}

}  // namespace

Status write_checkpoint(const std::string& path, const TrainingState& state,
                        const std::string& identity) {
  const std::string notes = notes_of(state, identity).dump();
  std::vector<NamedTensor> tensors{
      {kNotes,
       DType::kU8,
       {static_cast<int64_t>(notes.size())},
       {reinterpret_cast<const uint8_t*>(notes.data()), notes.size()}}};
  std::vector<at::Tensor> kept;
  for (const auto& [name, value] : {std::pair<std::string, at::Tensor>{"values", state.values},
                                    {"average", state.optimizer.average},
                                    {"square_average", state.optimizer.square_average},
                                    {"best_values", state.best_values}}) {
    if (!value.defined()) continue;
    kept.push_back(value.to(at::kCPU).contiguous());
    tensors.push_back(named(name, kept.back()));
  }
  return write_safetensors(path, std::move(tensors));
}

Result<std::optional<TrainingState>> read_checkpoint(const std::string& path,
                                                     const std::string& identity) {
  if (!file_exists(path)) return std::optional<TrainingState>();
  VALORA_TRY(file, SafeTensors::read(path, kMaxBytes));
  const TensorView* view = file->find(kNotes);
  if (!view) return unprocessable(path + " is not a training checkpoint", path);
  VALORA_TRY(
      notes,
      parse_json({reinterpret_cast<const char*>(view->bytes.data()), view->bytes.size()}, path));
  VALORA_TRY(of, required_field<std::string>(notes, "identity"));
  if (of != identity)
    return unprocessable(
        path +
            " belongs to another training (other options, data or model); remove it to start over",
        path);
  TrainingState state;
  VALORA_TRY(step, required_field<int64_t>(notes, "step"));
  VALORA_TRY(optimizer_step, required_field<int64_t>(notes, "optimizer_step"));
  VALORA_TRY(first_loss, required_field<double>(notes, "first_loss"));
  VALORA_TRY(last_loss, required_field<double>(notes, "last_loss"));
  VALORA_TRY(best_score, optional_field<double>(notes, "best_score"));
  VALORA_TRY(best_step, required_field<int64_t>(notes, "best_step"));
  VALORA_TRY(worse, required_field<int64_t>(notes, "worse"));
  VALORA_TRY(evaluated, field_or<int64_t>(notes, "evaluated", step));
  VALORA_TRY(seconds, field_or<double>(notes, "seconds", 0));
  VALORA_TRY(evaluation_seconds, field_or<double>(notes, "evaluation_seconds", 0));
  VALORA_TRY(samples, field_or<int64_t>(notes, "samples", 0));
  state.step = step;
  state.first_loss = first_loss;
  state.last_loss = last_loss;
  state.best_score = best_score;
  state.best_step = best_step;
  state.worse = worse;
  state.evaluated = evaluated;
  state.seconds = seconds;
  state.evaluation_seconds = evaluation_seconds;
  state.samples = samples;
  state.values = tensor(*file, "values");
  state.optimizer = {optimizer_step, tensor(*file, "average"), tensor(*file, "square_average")};
  state.best_values = tensor(*file, "best_values");
  if (!state.values.defined()) return unprocessable(path + " has no \"values\"", path);
  return std::optional(std::move(state));
}

}  // namespace valora::generator
