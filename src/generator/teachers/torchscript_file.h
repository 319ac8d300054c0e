// A small model in a TorchScript file, and what it may answer.
#pragma once

#include <ATen/ATen.h>

#include <memory>
#include <string>

#include "base/result.h"

namespace valora::generator {

struct ScriptBoxes {
  at::Tensor boxes;    // fp32 [n, 4]: x0, y0, x1, y1 in pixels of the picture as the file got it
  at::Tensor scores;   // fp32 [n], 0 … 1
  at::Tensor classes;  // int64 [n]
};

class TorchScriptFile {
 public:
  // kNotFound, or kUnprocessable with the file's name and why it cannot be loaded.
  static Result<TorchScriptFile> load(const std::string& path);
  ~TorchScriptFile();
  TorchScriptFile(TorchScriptFile&&) noexcept;
  TorchScriptFile& operator=(TorchScriptFile&&) noexcept;

  // pictures: fp32 [n, channels, height, width]. kUnprocessable names the file and what it did:
  // raised an error, gave something else than one of fp [n, classes], or values that are not
  // numbers.
  Result<at::Tensor> scores(const at::Tensor& pictures, int64_t classes);
  // picture: fp32 [1, channels, height, width]; the file gives a tuple of three tensors.
  Result<ScriptBoxes> boxes(const at::Tensor& picture);

 private:
  struct Module;
  TorchScriptFile(std::string path, std::unique_ptr<Module> module);

  std::string path_;
  std::unique_ptr<Module> module_;
};

}  // namespace valora::generator
