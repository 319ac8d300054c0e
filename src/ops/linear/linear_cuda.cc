// Products with float weights use cuBLAS, products with integer weights
// kernels/cuda/integer_product.h, and low-rank products kernels/cuda/lora.h.
#include <algorithm>
#include <optional>

#include "kernels/cuda/branch.h"
#include "kernels/cuda/elementwise.h"
#include "kernels/cuda/integer_product.h"
#include "kernels/tiles/choose.h"
#include "ops/device/cuda_types.h"
#include "ops/launch/compared_launches.h"
#include "ops/linear/linear_targets.h"
#include "ops/lora/lora_cuda.h"
#include "ops/lora/outputs_cuda.h"
#include "ops/weights/adjacent_weights.h"
#include "ops/weights/weight_cuda.h"

namespace valora::ops {
namespace {

namespace cuda = kernels::cuda;

at::Tensor dense_product(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  return at::linear(x, weight, bias.defined() ? std::optional<at::Tensor>(bias) : std::nullopt);
}

// Adjacent weights are one product, whose results are columns of one tensor.
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

// The results of several linears.
struct Products {
  std::vector<at::Tensor> ys;
  // The unrounded float results of each linear, [T, out]; undefined where they were not kept.
  std::vector<at::Tensor> sums;
};

// Products with integer weights, in one launch if all weights are of one kind.
class IntegerProducts {
 public:
  explicit IntegerProducts(const at::Tensor& x) : x_(x) {
    call_.dtype = cuda_dtype(x.scalar_type());
    call_.x = x.const_data_ptr();
    call_.x_stride = x.stride(0);
    call_.tokens = static_cast<int32_t>(x.size(0));
    call_.in = static_cast<int32_t>(x.size(1));
  }
  // y, sums: [T, out]; sums is contiguous. Either may be undefined.
  void add(const Weight& w, const at::Tensor& y, const at::Tensor& sums) {
    cuda::IntegerSlice& slice = call_.slices[call_.slice_count++];
    slice.w = *w.matrix();
    if (w.bias().defined()) slice.bias = w.bias().const_data_ptr();
    if (y.defined()) slice.y = y.data_ptr(), slice.y_stride = y.stride(0);
    if (sums.defined()) slice.sums = sums.mutable_data_ptr<float>();
  }
  void run() {
    if (call_.slice_count > 0)
      check_launch(cuda::integer_product(call_, stream_of(x_)), "integer_product");
  }

 private:
  const at::Tensor& x_;
  cuda::IntegerCall call_;
};

Products products_of(const at::Tensor& x, std::span<const ModuleWeight> linears,
                     const LoraBatch& lora) {
  Products all;
  all.sums.resize(linears.size());
  if (std::ranges::none_of(linears, [](const ModuleWeight& l) { return l.weight->quantised(); })) {
    all.ys = dense_products(x, linears);
    return all;
  }
  IntegerProducts integers(x);
  for (size_t i = 0; i < linears.size(); ++i) {
    const Weight& w = *linears[i].weight;
    if (!w.quantised()) {
      all.ys.push_back(dense_product(x, w.data(), w.bias()));
      continue;
    }
    all.ys.push_back(at::empty({x.size(0), w.out()}, x.options()));
    if (lora.touches(linears[i].module) && x.scalar_type() != at::kFloat)
      all.sums[i] = at::empty({x.size(0), w.out()}, x.options().dtype(at::kFloat));
    integers.add(w, all.ys[i], all.sums[i]);
  }
  integers.run();
  return all;
}

// The low-rank products that accompany the dense ones. The shrink does not depend on dense results,
// so a captured step runs both concurrently.
class LowRank {
 public:
  // together: if adapters touch one of the linears, all of them are in the launches.
  LowRank(const at::Tensor& x, std::span<const ModuleWeight> linears, const LoraBatch& lora,
          bool together = false) {
    call_.dtype = cuda_dtype(x.scalar_type());
    call_.x = x.const_data_ptr();
    call_.x_stride = x.stride(0);
    call_.in = static_cast<int32_t>(x.size(1));
    const auto touched = [&](const ModuleWeight& l) { return lora.touches(l.module); };
    const bool all = together && std::ranges::any_of(linears, touched);
    for (size_t i = 0; i < linears.size(); ++i)
      if (all || touched(linears[i])) {
        of_slice_[call_.slice_count] = i;
        call_.slices[call_.slice_count++] = {
            nullptr, 0, static_cast<int32_t>(linears[i].weight->out()), linears[i].module, nullptr};
      }
    if (call_.slice_count == 0) return;
    const DeviceLoraTables& step = on_device(lora, x.device(), x.size(0));
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

  // Adds the low-rank products to the results of all linears.
  void add_to(const Products& products) {
    if (call_.slice_count == 0) return;
    join(products);
    check_launch(cuda::lora_expand(call_, tiles_, workspace_.data_ptr(), stream_of(products.ys[0])),
                 "lora_expand");
  }

  // True if write_gated() may take the place of add_to() and an activation: all tokens are planned.
  bool covers(const at::Tensor& x) const {
    return call_.slice_count == 2 && call_.sizes.tokens == x.size(0);
  }
  // out = activation(gate) · up of the two linears with their low-rank products.
  void write_gated(const Products& products, Gate activation, const at::Tensor& out) {
    join(products);
    check_launch(cuda::lora_expand_gated(call_, {out.data_ptr(), activation}, tiles_,
                                         workspace_.data_ptr(), stream_of(out)),
                 "lora_expand_gated");
  }

 private:
  // Takes the results to which the expand adds, and waits for the shrink.
  void join(const Products& products) {
    const std::vector<at::Tensor>& ys = products.ys;
    for (int i = 0; i < call_.slice_count; ++i) {
      const at::Tensor &y = ys[of_slice_[i]], &sums = products.sums[of_slice_[i]];
      call_.slices[i].y = y.data_ptr(), call_.slices[i].y_stride = y.stride(0);
      if (sums.defined()) call_.slices[i].sums = sums.const_data_ptr<float>();
    }
    if (branch_) check_launch(branch_->join(), "the shrink beside a product");
  }

  cuda::LoraCall call_;
  cuda::LoraTiles tiles_;
  size_t of_slice_[cuda::kMaxLoraSlices] = {};  // indices into the linears
  at::Tensor workspace_;
  std::optional<cuda::Branch> branch_;
};

// → float [T, out], bias included.
at::Tensor float_product(const at::Tensor& x, const Weight& w) {
  if (w.quantised()) {
    at::Tensor y = at::empty({x.size(0), w.out()}, x.options().dtype(at::kFloat));
    IntegerProducts integers(x);
    integers.add(w, {}, y);
    integers.run();
    return y;
  }
  const at::Tensor transposed = w.data().t();
  at::Tensor y =
      x.scalar_type() == at::kFloat ? at::mm(x, transposed) : at::mm(x, transposed, at::kFloat);
  if (w.bias().defined()) y.add_(w.bias());
  return y;
}

}  // namespace

std::vector<at::Tensor> project_cuda(const at::Tensor& x, const at::Tensor& inputs,
                                     std::span<const ModuleWeight> linears, const LoraBatch& lora) {
  LowRank low_rank(x, linears, lora);
  Products products = products_of(inputs, linears, lora);
  low_rank.add_to(products);
  change_outputs_cuda(products.ys, linears, lora);
  return std::move(products.ys);
}

at::Tensor gated_cuda(const at::Tensor& x, const at::Tensor& inputs, const ModuleWeight& gate,
                      const ModuleWeight& up, const LoraBatch& lora, Gate activation) {
  const ModuleWeight both[] = {gate, up};
  LowRank low_rank(x, both, lora, /*together=*/true);
  const Products products = products_of(inputs, both, lora);
  const std::vector<at::Tensor>& ys = products.ys;
  const at::Tensor out = at::empty(ys[0].sizes(), ys[0].options());
  // Output changes come between the low-rank products and the activation.
  const bool changed = lora.changes_output(gate.module) || lora.changes_output(up.module);
  if (low_rank.covers(x) && !changed && !separate_launches().activation) {
    low_rank.write_gated(products, activation, out);
    return out;
  }
  low_rank.add_to(products);
  change_outputs_cuda(ys, both, lora);
  check_launch(
      cuda::gate_mul(activation, cuda_dtype(x.scalar_type()), ys[0].const_data_ptr(),
                     ys[0].stride(0), ys[1].const_data_ptr(), ys[1].stride(0), out.data_ptr(),
                     out.size(0), static_cast<int32_t>(out.size(1)), stream_of(x)),
      "gate_mul");
  return out;
}

// lora_expand adds to values in the dtype of x, so adapters' products are rounded before they are
// added.
at::Tensor linear_float_cuda(const at::Tensor& x, const at::Tensor& inputs,
                             const ModuleWeight& linear, const LoraBatch& lora) {
  LowRank low_rank(x, {&linear, 1}, lora);
  at::Tensor y = float_product(inputs, *linear.weight);
  if (lora.touches(linear.module)) {
    const bool floats = x.scalar_type() == at::kFloat;
    const at::Tensor added = floats ? y : at::zeros(y.sizes(), x.options());
    low_rank.add_to({{added}, {at::Tensor()}});
    if (!floats) y.add_(added);
  }
  change_outputs_cuda({&y, 1}, {&linear, 1}, lora);
  return y;
}

}  // namespace valora::ops
