// A small model in a TorchScript file, and its outputs.
#pragma once

#include <ATen/ATen.h>

#include <memory>
#include <string>

#include "base/result.h"

namespace valora::generator {

struct ScriptBoxes {
  at::Tensor boxes;    // fp32 [n, 4]: x0, y0, x1, y1 in pixels of the file's input
  at::Tensor scores;   // fp32 [n], 0 … 1
  at::Tensor classes;  // int64 [n]
};

class TorchScriptFile {
 public:
  // kNotFound, or kUnprocessable with the file's name and the reason.
  static Result<TorchScriptFile> load(const std::string& path);
  ~TorchScriptFile();
  TorchScriptFile(TorchScriptFile&&) noexcept;
  TorchScriptFile& operator=(TorchScriptFile&&) noexcept;

  // pictures: fp32 [n, channels, height, width]. kUnprocessable, naming the file and the fault, if
  // the script raised an error, returned something other than one float tensor [n, classes], or
  // returned non-finite values.
  Result<at::Tensor> scores(const at::Tensor& pictures, int64_t classes);
  // picture: fp32 [1, channels, height, width]. The script must return a tuple of three tensors.
  Result<ScriptBoxes> boxes(const at::Tensor& picture);

 private:
  struct Module;
  TorchScriptFile(std::string path, std::unique_ptr<Module> module);

  std::string path_;
  std::unique_ptr<Module> module_;
};

}  // namespace valora::generator
