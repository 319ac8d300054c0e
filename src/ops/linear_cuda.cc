// The products with the model's weights are cuBLAS's; the low-rank ones are kernels/cuda/lora.h.
#include <optional>

#include "kernels/cuda/branch.h"
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

// The low-rank products beside the dense ones. The shrink needs no result of these, so a captured
// step runs both at the same time.
class LowRank {
 public:
  LowRank(const at::Tensor& x, std::span<const ModuleWeight> linears, const LoraBatch& lora) {
    call_.dtype = cuda_dtype(x.scalar_type());
    call_.x = x.const_data_ptr();
    call_.x_stride = x.stride(0);
    call_.in = static_cast<int32_t>(x.size(1));
    for (size_t i = 0; i < linears.size(); ++i)
      if (lora.touches(linears[i].module)) {
        of_slice_[call_.slice_count] = i;
        call_.slices[call_.slice_count++] = {
            nullptr, 0, static_cast<int32_t>(linears[i].weight->out()), linears[i].module};
      }
    if (call_.slice_count == 0) return;
    const DeviceLoraTables& step = on_device(lora, x.device());
    call_.max_rank = step.max_rank;
    call_.sizes = step.sizes;
    call_.tables = step.tables;
    tiles_ = cuda::choose_lora_tiles(call_, gpu_arch(), kernels::choose_cuda_tile);
    workspace_ = at::empty({static_cast<int64_t>(cuda::lora_workspace_bytes(call_, tiles_))},
                           x.options().dtype(at::kByte));
    cuda::Stream stream = stream_of(x);
    if (!separate_launches().shrink) branch_.emplace(stream);
    check_launch(cuda::lora_shrink(call_, tiles_, workspace_.data_ptr(),
                                   branch_ ? branch_->stream() : stream),
                 "lora_shrink");
  }

  // ys, of all linears, += the products.
  void add_to(const std::vector<at::Tensor>& ys) {
    if (call_.slice_count == 0) return;
    for (int i = 0; i < call_.slice_count; ++i) {
      const at::Tensor& y = ys[of_slice_[i]];
      call_.slices[i].y = y.data_ptr(), call_.slices[i].y_stride = y.stride(0);
    }
    if (branch_) check_launch(branch_->join(), "the shrink beside a product");
    check_launch(cuda::lora_expand(call_, tiles_, workspace_.data_ptr(), stream_of(ys[0])),
                 "lora_expand");
  }

 private:
  cuda::LoraCall call_;
  cuda::LoraTiles tiles_;
  size_t of_slice_[cuda::kMaxLoraSlices] = {};  // indices of linears
  at::Tensor workspace_;
  std::optional<cuda::Branch> branch_;
};

}  // namespace

std::vector<at::Tensor> project_cuda(const at::Tensor& x, const at::Tensor& inputs,
                                     std::span<const ModuleWeight> linears, const LoraBatch& lora) {
  LowRank low_rank(x, linears, lora);
  std::vector<at::Tensor> ys = dense_products(inputs, linears);
  low_rank.add_to(ys);
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
