// ATen on the emulated GPU: operations that only have CPU kernels run on the host, where the GPU's
// memory is. Operations that ATen implements for CUDA but not for CPUs are written here.
#include <ATen/ATen.h>
#include <ATen/EmptyTensor.h>
#include <ATen/core/List.h>
#include <c10/core/DeviceGuard.h>
#include <torch/library.h>

#include <optional>
#include <unordered_map>
#include <vector>

#include "ops/emulated_gpu/counts.h"
#include "ops/emulated_gpu/emulated_gpu.h"
#include "ops/emulated_gpu/faults.h"
#include "ops/emulated_gpu/host_alias.h"
#include "ops/emulated_gpu/recording.h"

namespace valora::ops::emulated {
namespace {

constexpr c10::DispatchKeySet kKey(c10::DispatchKey::CUDA);

// Maps the GPU tensors of a call to host aliases and back.
class Call {
 public:
  // copies: the call copies, so its tensors may be on different GPUs.
  explicit Call(bool copies) : copies_(copies) {}
  at::Tensor to_host(const at::Tensor& x) {
    if (!on_gpu(x)) return x;
    if (!gpu_) gpu_ = x.device();
    TORCH_CHECK(copies_ || *gpu_ == x.device(),
                "Expected all tensors to be on the same device, but found at least two, ", *gpu_,
                " and ", x.device());
    const auto known = of_.find(x.unsafeGetTensorImpl());
    if (known != of_.end()) return known->second;
    at::Tensor alias = host_alias(x);
    of_.emplace(x.unsafeGetTensorImpl(), alias);
    back_.emplace(alias.unsafeGetTensorImpl(), x);
    return alias;
  }
  c10::IValue to_host(const c10::IValue& value) {
    if (value.isTensor()) return to_host(value.toTensor());
    if (value.isTensorList()) {
      c10::List<at::Tensor> aliases;
      for (const at::Tensor& x : value.toTensorVector()) aliases.push_back(to_host(x));
      return aliases;
    }
    if (value.isOptionalTensorList()) {
      c10::List<std::optional<at::Tensor>> aliases;
      for (const std::optional<at::Tensor>& x : value.toOptionalTensorVector())
        aliases.push_back(x ? std::optional(to_host(*x)) : std::nullopt);
      return aliases;
    }
    return value;
  }
  // Converts a result. written: the operation wrote to arguments and returns them.
  at::Tensor to_gpu(const at::Tensor& x, bool written) const {
    if (!x.defined() || !gpu_) return x;
    const auto known = back_.find(x.unsafeGetTensorImpl());
    if (known != back_.end()) return known->second;
    return written ? x : gpu_tensor(x, *gpu_);
  }
  c10::IValue to_gpu(const c10::IValue& value, bool written) const {
    if (value.isTensor()) return to_gpu(value.toTensor(), written);
    if (!value.isTensorList()) return value;
    c10::List<at::Tensor> results;
    for (const at::Tensor& x : value.toTensorVector()) results.push_back(to_gpu(x, written));
    return results;
  }
  void follow_all() const {
    for (const auto& [alias, x] : back_) follow(of_.at(x.unsafeGetTensorImpl()), x);
  }

 private:
  const bool copies_;
  std::optional<c10::Device> gpu_;  // of the first tensor, and of the results
  std::unordered_map<const c10::TensorImpl*, at::Tensor> of_, back_;
};

bool same_memory(const at::Tensor& a, const at::Tensor& b) {
  return a.const_data_ptr() == b.const_data_ptr();
}

// Repeats the operation and copies its results to where the first ones are.
void call_again(const c10::OperatorHandle& operation, torch::jit::Stack stack,
                const std::vector<c10::IValue>& results) {
  operation.callBoxed(&stack);
  const auto renew = [](const at::Tensor& old, const at::Tensor& made) {
    if (old.defined() && !same_memory(old, made)) old.copy_(made);
  };
  for (size_t i = 0; i < results.size(); ++i) {
    if (results[i].isTensor()) renew(results[i].toTensor(), stack[i].toTensor());
    if (!results[i].isTensorList()) continue;
    const std::vector<at::Tensor> old = results[i].toTensorVector(),
                                  made = stack[i].toTensorVector();
    for (size_t j = 0; j < old.size(); ++j) renew(old[j], made[j]);
  }
}

void count(const c10::OperatorHandle& operation, const torch::jit::Stack& arguments) {
  ++counts().operations;
  const std::string& name = operation.schema().name();
  const bool copies = name == "aten::copy_";
  const bool to_host =
      name == "aten::_local_scalar_dense" ||
      (copies && !on_gpu(arguments[0].toTensor()) && on_gpu(arguments[1].toTensor()));
  TORCH_CHECK(!to_host || recording() == nullptr,
              "the host would wait for the GPU during a capture");
  const auto bytes_of = [](const c10::IValue& x) {
    return static_cast<uint64_t>(x.toTensor().nbytes());
  };
  if (to_host) counts().bytes_to_host += bytes_of(arguments[0]);
  if (copies && on_gpu(arguments[0].toTensor()) && !on_gpu(arguments[1].toTensor()))
    counts().bytes_to_gpu += bytes_of(arguments[0]);
}

// What the operation returns if the GPU does not run it; nullopt: it runs.
std::optional<at::Tensor> left_out(const c10::OperatorHandle& operation,
                                   const torch::jit::Stack& arguments) {
  if (runs()) return std::nullopt;
  const std::string& name = operation.schema().name();
  const auto tensor = [&](size_t i) -> const at::Tensor& { return arguments[i].toTensor(); };
  if (name == "aten::mm" || name == "aten::addmm") {
    const size_t first = name == "aten::mm" ? 0 : 1;
    return at::empty({tensor(first).size(0), tensor(first + 1).size(1)}, tensor(first).options());
  }
  if ((name == "aten::copy_" || name == "aten::zero_" || name == "aten::fill_") &&
      tensor(0).nbytes() > kLeftOut)
    return tensor(0);
  return std::nullopt;
}

bool is_view(const c10::OperatorHandle& operation) {
  const auto& returns = operation.schema().returns();
  return !returns.empty() && returns[0].alias_info() != nullptr &&
         !returns[0].alias_info()->isWrite();
}

void run_on_host(const c10::OperatorHandle& operation, torch::jit::Stack* stack) {
  const size_t arguments = operation.schema().arguments().size();
  const size_t results = operation.schema().returns().size();
  torch::jit::Stack given(stack->end() - static_cast<std::ptrdiff_t>(arguments), stack->end());
  stack->resize(stack->size() - arguments);
  check_alive();
  if (!is_view(operation)) count(operation, given);
  if (auto result = left_out(operation, given)) {
    stack->emplace_back(*std::move(result));
    return;
  }
  Call call(operation.schema().name() == "aten::copy_");
  for (c10::IValue& argument : given) argument = call.to_host(argument);
  stack->insert(stack->end(), given.begin(), given.end());
  {
    const Working working;
    operation.callBoxed(stack);
  }
  if (operation.schema().is_mutable()) call.follow_all();
  if (recording() != nullptr && runs() && !is_view(operation)) {
    const std::vector<c10::IValue> made(stack->end() - static_cast<std::ptrdiff_t>(results),
                                        stack->end());
    recording()->calls.emplace_back([=] { call_again(operation, given, made); });
  }
  for (size_t i = 0; i < results; ++i) {
    c10::IValue& value = (*stack)[stack->size() - results + i];
    const c10::AliasInfo* const alias = operation.schema().returns()[i].alias_info();
    value = call.to_gpu(value, alias != nullptr && alias->isWrite());
  }
}

at::Tensor kept(at::Tensor made) {
  if (recording() != nullptr) recording()->memory.push_back(made);
  return made;
}

// Selects the GPU on which to allocate.
class OnGpu {
 public:
  explicit OnGpu(std::optional<at::Device> device) {
    if (device && device->has_index()) guard_.reset_device(*device);
  }

 private:
  c10::OptionalDeviceGuard guard_;
};

at::Tensor empty(c10::SymIntArrayRef sizes, std::optional<at::ScalarType> dtype,
                 std::optional<at::Layout>, std::optional<at::Device> device, std::optional<bool>,
                 std::optional<at::MemoryFormat> format) {
  const OnGpu current(device);
  return kept(at::detail::empty_generic(C10_AS_INTARRAYREF_SLOW(sizes),
                                        c10::GetAllocator(at::kCUDA), kKey,
                                        dtype.value_or(at::kFloat), format));
}

at::Tensor empty_strided(c10::SymIntArrayRef sizes, c10::SymIntArrayRef strides,
                         std::optional<at::ScalarType> dtype, std::optional<at::Layout>,
                         std::optional<at::Device> device, std::optional<bool>) {
  const OnGpu current(device);
  return kept(at::detail::empty_strided_generic(
      C10_AS_INTARRAYREF_SLOW(sizes), C10_AS_INTARRAYREF_SLOW(strides),
      c10::GetAllocator(at::kCUDA), kKey, dtype.value_or(at::kFloat)));
}

// Sums of 16-bit values, kept as float.
at::Tensor mm_of_dtype(const at::Tensor& a, const at::Tensor& b, at::ScalarType dtype) {
  if (!runs()) return at::empty({a.size(0), b.size(1)}, a.options().dtype(dtype));
  return at::mm(a.to(dtype), b.to(dtype));
}

int64_t plain_attention(const at::Tensor&, const at::Tensor&, const at::Tensor&,
                        const std::optional<at::Tensor>&, double, bool, std::optional<double>,
                        bool) {
  return 0;  // sdp::SDPBackend::math
}

}  // namespace

Recording*& recording() {
  thread_local Recording* of_thread = nullptr;
  return of_thread;
}

TORCH_LIBRARY_IMPL(_, CUDA, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&run_on_host>());
}
TORCH_LIBRARY_IMPL(aten, CUDA, library) {
  library.impl("empty.memory_format", &empty);
  library.impl("empty_strided", &empty_strided);
  library.impl("mm.dtype", &mm_of_dtype);
  library.impl("_fused_sdp_choice", &plain_attention);
  // Operators with one implementation for all devices, which calls a kernel of each.
  for (const char* name : {"copy_"})
    library.impl(name, torch::CppFunction::makeFromBoxedFunction<&run_on_host>());
}

}  // namespace valora::ops::emulated
