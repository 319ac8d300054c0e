// The linears of experts that a checkpoint stores together.
#include <fmt/ranges.h>

#include "models/spec/load_error.h"
#include "models/weights/weight_files.h"
#include "models/weights/weights.h"

namespace valora::models {

Result<bool> experts_are_transposed(const std::string& tensor, const std::vector<int64_t>& shape,
                                    const std::vector<int64_t>& rows) {
  const std::vector<int64_t> columns{rows[0], rows[2], rows[1]};
  if (shape != rows && shape != columns)
    return unprocessable(
        fmt::format("{} has shape [{}], but the configuration requires [{}] or [{}]", tensor,
                    fmt::join(shape, ", "), fmt::join(rows, ", "), fmt::join(columns, ", ")));
  if (rows == columns)
    return unprocessable(
        fmt::format("{}: the orientation of experts stored together cannot be told from the shape "
                    "[{}], and releases of transformers differ in it; store a linear per expert",
                    tensor, fmt::join(rows, ", ")));
  return shape == columns;
}

at::Tensor Weights::columns_of(const Entry& entry) const {
  return stored(entry)
      .slice(1, entry.columns->first, entry.columns->first + entry.columns->shape[0])
      .t();
}

Result<at::Tensor> Weights::column_values(const Entry& entry, size_t first, size_t count) const {
  try {
    return columns_of(entry).reshape({-1}).narrow(0, static_cast<int64_t>(first),
                                                  static_cast<int64_t>(count));
  } catch (const LoadError& e) {
    return e.error();
  }
}

void Weights::split_expert_tensor(const Entry& whole, const std::string& prefix, const char* name,
                                  int64_t first, int64_t out, int64_t in, bool transposed) {
  const int64_t rows = whole.view.shape[1], columns = whole.view.shape[2];
  const size_t row_bytes = static_cast<size_t>(columns) * dtype_size(whole.view.dtype),
               expert_bytes = static_cast<size_t>(rows) * row_bytes;
  for (int64_t e = 0; e < whole.view.shape[0]; ++e) {
    Entry part = whole;
    size_t skipped = static_cast<size_t>(e) * expert_bytes, size = expert_bytes;
    if (transposed) {
      part.view.shape = {rows, columns};
      part.columns = ColumnForm{{out, in}, first};
    } else {
      part.view.shape = {out, in};
      skipped += static_cast<size_t>(first) * row_bytes;
      size = static_cast<size_t>(out) * row_bytes;
    }
    part.begin += skipped;
    part.view.bytes = whole.view.bytes.subspan(skipped, size);
    parts_[prefix + std::to_string(e) + "." + name + ".weight"] = std::move(part);
  }
}

void Weights::split_experts(const std::string& prefix, const ExpertSizes& sizes) {
  const auto& [count, hidden, width] = sizes;
  const auto split = [&](const std::string& name, int64_t out, int64_t in,
                         const std::vector<const char*>& linears) {
    const Entry* whole = find(prefix + name);
    if (!whole) return;
    const std::string tensor = fmt::format("{}: tensor {}", dir_, whole->stored_name);
    if (!scalar_type(whole->view.dtype))
      throw LoadError(
          unprocessable(fmt::format("{}: experts stored together in {} are not supported, only in "
                                    "floats of 16 bits and more",
                                    tensor, dtype_name(whole->view.dtype)),
                        dir_));
    const auto transposed = experts_are_transposed(tensor, whole->view.shape, {count, out, in});
    if (!transposed.ok()) throw LoadError(unprocessable(transposed.error().message, dir_));
    const std::string stored_prefix =
        whole->stored_name.substr(0, whole->stored_name.size() - name.size());
    const Entry entry = *whole;
    for (size_t i = 0; i < linears.size(); ++i)
      split_expert_tensor(entry, stored_prefix, linears[i], static_cast<int64_t>(i) * width,
                          out / static_cast<int64_t>(linears.size()), in, *transposed);
  };
  split("gate_up_proj", 2 * width, hidden, {"gate_proj", "up_proj"});
  split("down_proj", hidden, width, {"down_proj"});
}

}  // namespace valora::models
