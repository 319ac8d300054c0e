#include "ops/attention/run_attention.h"

#include <algorithm>

#include "ops/attention/attention_targets.h"
#include "ops/attention/heads.h"
#include "ops/device/dispatch.h"
#include "ops/elementwise/gradient.h"

namespace valora::ops {

RunAttention::RunAttention(std::vector<int64_t> ends, int64_t heads, int64_t dim,
                           at::ScalarType dtype, at::Device device)
    : runs_(std::move(ends)),
      heads_(heads),
      dim_(dim),
      packed_(target_of(dtype, device) == Target::kCpu) {
  const auto options = at::TensorOptions().dtype(dtype).device(device);
  data_ = packed_ ? at::empty({runs_.blocks() * kv_layer_elements_cpu(heads, dim, dtype)}, options)
                  : at::empty({2, runs_.rows(), heads, dim}, options);
}

void RunAttention::check(const at::Tensor& x, int64_t begin) const {
  TORCH_CHECK(x.dim() == 3 && x.size(1) == heads_ && x.size(2) == dim_ && has_contiguous_heads(x) &&
                  x.scalar_type() == data_.scalar_type() && begin >= 0 &&
                  begin + x.size(0) <= runs_.rows(),
              "attention within runs: rows ", x.sizes(), " from ", begin, " on, of ", runs_.rows(),
              " rows of ", heads_, " heads of ", dim_);
}

void RunAttention::store(const at::Tensor& k, const at::Tensor& v) {
  check(k, stored_);
  check(v, stored_);
  TORCH_CHECK(k.size(0) == v.size(0), "attention within runs: ", k.size(0), " keys, ", v.size(0),
              " values");
  if (packed_) {
    store_runs_cpu(k, v, stored_, runs_, data_);
  } else {
    data_[0].narrow(0, stored_, k.size(0)).copy_(k.detach());
    data_[1].narrow(0, stored_, v.size(0)).copy_(v.detach());
  }
  if (c10::GradMode::is_enabled()) recorded_.push_back(at::stack({k, v}));
  stored_ += k.size(0);
}

at::Tensor RunAttention::attend(int64_t begin, const at::Tensor& q) const {
  check(q, begin);
  TORCH_CHECK(stored_ == runs_.rows(), "attention within runs: ", stored_, " of ", runs_.rows(),
              " rows are stored");
  const bool differentiable = wants_gradient(q) || std::ranges::any_of(recorded_, wants_gradient);
  if (differentiable) return attend_runs_aten(q, begin, runs_, at::cat(recorded_, 1));
  return packed_ ? attend_runs_cpu(q, begin, runs_, data_)
                 : attend_runs_aten(q, begin, runs_, data_);
}

}  // namespace valora::ops
