#include "generator/teachers/torchscript_file.h"

#include <fmt/format.h>
#include <torch/script.h>

#include <exception>

#include "base/files/file.h"

namespace valora::generator {
namespace {

// The line of a traceback that states the error: the last one for errors in the script, otherwise
// the first.
std::string reason_of(const std::exception& fault) {
  std::string text = fault.what();
  if (const auto* error = dynamic_cast<const c10::Error*>(&fault))
    text = error->what_without_backtrace();
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  if (text.find("Traceback of TorchScript") != text.npos) return text.substr(text.rfind('\n') + 1);
  return text.substr(0, text.find('\n'));
}

std::string shape_text(const c10::IValue& value) {
  if (value.isTensor()) {
    const at::Tensor& tensor = value.toTensor();
    if (!tensor.defined()) return "an undefined tensor";
    return fmt::format("{} [{}]", c10::toString(tensor.scalar_type()),
                       fmt::join(tensor.sizes(), ", "));
  }
  if (!value.isTuple()) return value.tagKind();
  std::string text;
  for (const c10::IValue& element : value.toTupleRef().elements())
    text += (text.empty() ? "" : ", ") + shape_text(element);
  return "(" + text + ")";
}

bool is_vector(const c10::IValue& value, int64_t size) {
  return value.isTensor() && value.toTensor().dim() == 1 && value.toTensor().size(0) == size;
}

bool all_finite(const at::Tensor& tensor) { return at::isfinite(tensor).all().item<bool>(); }

}  // namespace

struct TorchScriptFile::Module {
  torch::jit::Module script;

  Result<c10::IValue> run(const std::string& path, const at::Tensor& input) {
    try {
      const c10::InferenceMode no_gradients;
      return script.forward({input});
    } catch (const std::exception& fault) {
      return unprocessable(path + " raised an error: " + reason_of(fault), path);
    }
  }
};

TorchScriptFile::TorchScriptFile(std::string path, std::unique_ptr<Module> module)
    : path_(std::move(path)), module_(std::move(module)) {}
TorchScriptFile::~TorchScriptFile() = default;
TorchScriptFile::TorchScriptFile(TorchScriptFile&&) noexcept = default;
TorchScriptFile& TorchScriptFile::operator=(TorchScriptFile&&) noexcept = default;

Result<TorchScriptFile> TorchScriptFile::load(const std::string& path) {
  if (!file_exists(path)) return not_found(path + " does not exist", path);
  try {
    auto module = std::make_unique<Module>(torch::jit::load(path, at::kCPU));
    module->script.eval();
    return TorchScriptFile(path, std::move(module));
  } catch (const std::exception& fault) {
    return unprocessable(path + " is not a loadable TorchScript file: " + reason_of(fault), path);
  }
}

Result<at::Tensor> TorchScriptFile::scores(const at::Tensor& pictures, int64_t classes) {
  VALORA_TRY(output, module_->run(path_, pictures));
  const int64_t count = pictures.size(0);
  if (!output.isTensor() || output.toTensor().sizes() != at::IntArrayRef({count, classes}) ||
      !output.toTensor().is_floating_point())
    return unprocessable(
        fmt::format(
            "{} gave {} for {} pictures; class scores of the task's {} labels are Float [{}, {}]",
            path_, shape_text(output), count, classes, count, classes),
        path_);
  at::Tensor scores = output.toTensor().to(at::kFloat).contiguous();
  if (!all_finite(scores))
    return unprocessable(path_ + " returned scores that are not finite", path_);
  return scores;
}

Result<ScriptBoxes> TorchScriptFile::boxes(const at::Tensor& picture) {
  VALORA_TRY(output, module_->run(path_, picture));
  const auto refused = [&] {
    return unprocessable(fmt::format("{} gave {} for a picture; boxes, scores and classes are "
                                     "(Float [N, 4], Float [N], Long [N])",
                                     path_, shape_text(output)),
                         path_);
  };
  if (!output.isTuple() || output.toTupleRef().size() != 3) return refused();
  const auto& parts = output.toTupleRef().elements();
  if (!parts[0].isTensor() || parts[0].toTensor().dim() != 2 || parts[0].toTensor().size(1) != 4)
    return refused();
  const int64_t count = parts[0].toTensor().size(0);
  if (!is_vector(parts[1], count) || !is_vector(parts[2], count)) return refused();
  if (!at::isIntegralType(parts[2].toTensor().scalar_type(), false)) return refused();
  ScriptBoxes result{parts[0].toTensor().to(at::kFloat).contiguous(),
                     parts[1].toTensor().to(at::kFloat).contiguous(),
                     parts[2].toTensor().to(at::kLong).contiguous()};
  if (!all_finite(result.boxes) || !all_finite(result.scores))
    return unprocessable(path_ + " returned boxes or scores that are not finite", path_);
  return result;
}

}  // namespace valora::generator
