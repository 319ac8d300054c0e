// The products with the model's weights are cuBLAS's; the low-rank ones are kernels/cuda/lora.h.
#include "kernels/cuda/elementwise.h"
#include "kernels/tiles/choose.h"
#include "ops/adjacent_weights.h"
#include "ops/cuda_types.h"
#include "ops/linear_targets.h"
#include "ops/lora_cuda.h"
#include "ops/separate_launches.h"

namespace valora::ops {
namespace {

namespace cuda = kernels::cuda;

at::Tensor dense_product(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  return at::linear(x, weight, bias.defined() ? std::optional<at::Tensor>(bias) : std::nullopt);
}

// One product for weights side by side, whose results are columns of one tensor.
std::vector<at::Tensor> dense_products(const at::Tensor& x, std::span<const ModuleWeight> linears) {
  std::vector<at::Tensor> ys;
  ys.reserve(linears.size());
  const auto all = linears.size() > 1 && !separate_launches().products
                       ? as_one(linears)
                       : std::optional<AdjacentWeights>();
  if (!all) {
    for (const ModuleWeight& l : linears)
      ys.push_back(dense_product(x, l.weight->data(), l.weight->bias()));
    return ys;
  }
  const at::Tensor y = dense_product(x, all->weight, all->bias);
  int64_t column = 0;
  for (const ModuleWeight& l : linears) {
    ys.push_back(y.narrow(1, column, l.weight->out()));
    column += l.weight->out();
  }
  return ys;
}

// ys += the low-rank products.
void add_lora(const at::Tensor& x, std::span<const ModuleWeight> linears, const LoraBatch& lora,
              const std::vector<at::Tensor>& ys) {
  cuda::LoraCall call;
  call.dtype = cuda_dtype(x.scalar_type());
  call.x = x.const_data_ptr();
  call.x_stride = x.stride(0);
  call.in = static_cast<int32_t>(x.size(1));
  for (size_t i = 0; i < linears.size(); ++i)
    if (lora.touches(linears[i].module))
      call.slices[call.slice_count++] = {ys[i].data_ptr(), ys[i].stride(0),
                                         static_cast<int32_t>(ys[i].size(1)), linears[i].module};
  if (call.slice_count == 0) return;
  const DeviceLoraTables& step = on_device(lora, x.device());
  call.max_rank = step.max_rank;
  call.sizes = step.sizes;
  call.tables = step.tables;
  const cuda::LoraTiles tiles =
      cuda::choose_lora_tiles(call, gpu_arch(), kernels::choose_cuda_tile);
  const at::Tensor workspace =
      at::empty({static_cast<int64_t>(cuda::lora_workspace_bytes(call, tiles))},
                x.options().dtype(at::kByte));
  check_launch(cuda::lora_project(call, tiles, workspace.data_ptr(), stream_of(x)), "lora_project");
}

}  // namespace

std::vector<at::Tensor> project_cuda(const at::Tensor& x, const at::Tensor& inputs,
                                     std::span<const ModuleWeight> linears, const LoraBatch& lora) {
  std::vector<at::Tensor> ys = dense_products(inputs, linears);
  add_lora(x, linears, lora, ys);
  return ys;
}

at::Tensor gated_cuda(const at::Tensor& x, const at::Tensor& inputs, const ModuleWeight& gate,
                      const ModuleWeight& up, const LoraBatch& lora, Gate activation) {
  TORCH_CHECK(activation == Gate::kSilu, "GELU gates are not supported on GPUs");
  const ModuleWeight both[] = {gate, up};
  const auto ys = project_cuda(x, inputs, both, lora);
  const at::Tensor out = at::empty(ys[0].sizes(), ys[0].options());
  check_launch(cuda::silu_mul(cuda_dtype(x.scalar_type()), ys[0].const_data_ptr(), ys[0].stride(0),
                              ys[1].const_data_ptr(), ys[1].stride(0), out.data_ptr(), out.size(0),
                              static_cast<int32_t>(out.size(1)), stream_of(x)),
               "silu_mul");
  return out;
}

at::Tensor linear_float_cuda(const at::Tensor& x, const Weight& w) {
  const at::Tensor transposed = w.data().t();
  at::Tensor y =
      x.scalar_type() == at::kFloat ? at::mm(x, transposed) : at::mm(x, transposed, at::kFloat);
  return w.bias().defined() ? y.add_(w.bias()) : y;
}

}  // namespace valora::ops
