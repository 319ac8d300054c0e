#include "ops/emulated_gpu/host_alias.h"

#include <c10/core/CPUAllocator.h>

#include <utility>

namespace valora::ops::emulated {
namespace {

// Two equal deleters: which one a storage has tells whose memory it is.
void release_gpu(void* kept) { delete static_cast<c10::Storage*>(kept); }
void release_host(void* kept) { delete static_cast<c10::Storage*>(kept); }

// A storage that shares these bytes; `release` frees its reference.
c10::Storage sharing(const c10::Storage& storage, c10::Device device, c10::Allocator* allocator,
                     c10::DeleterFnPtr release) {
  auto kept = std::make_unique<c10::Storage>(storage);
  void* const data = storage.mutable_data();
  return {c10::Storage::use_byte_size_t(), storage.nbytes(),
          c10::DataPtr(data, kept.release(), release, device), allocator, allocator != nullptr};
}

bool is_of_gpu(const c10::Storage& storage) {
  return storage.data_ptr().get_deleter() == &release_gpu;
}

// Gives the tensor the same autograd keys as `like`.
at::Tensor tensor_over(c10::Storage storage, c10::DispatchKey key, const at::Tensor& like) {
  c10::DispatchKeySet keys(key);
  if (!like.is_inference())
    keys =
        keys | c10::DispatchKeySet({c10::DispatchKey::ADInplaceOrView,
                                    c10::getAutogradKeyFromBackend(c10::toBackendComponent(key))});
  at::Tensor made = at::detail::make_tensor<c10::TensorImpl>(
      c10::TensorImpl::VIEW, std::move(storage), keys, like.dtype());
  made.unsafeGetTensorImpl()->set_sizes_and_strides(like.sizes(), like.strides(),
                                                    like.storage_offset());
  return made;
}

// The GPU storage of these bytes.
c10::Storage gpu_storage(const c10::Storage& host, c10::Device gpu) {
  if (is_of_gpu(host)) return *static_cast<const c10::Storage*>(host.data_ptr().get_context());
  return sharing(host, gpu, c10::GetAllocator(at::kCUDA), &release_host);
}

}  // namespace

at::Tensor host_alias(const at::Tensor& x) {
  return tensor_over(sharing(x.storage(), at::kCPU, c10::GetCPUAllocator(), &release_gpu),
                     c10::DispatchKey::CPU, x);
}

at::Tensor gpu_tensor(const at::Tensor& x, c10::Device gpu) {
  return tensor_over(gpu_storage(x.storage(), gpu), c10::DispatchKey::CUDA, x);
}

void follow(const at::Tensor& alias, const at::Tensor& x) {
  c10::TensorImpl& own = *x.unsafeGetTensorImpl();
  if (!is_of_gpu(alias.storage()))
    own.set_storage_keep_dtype(gpu_storage(alias.storage(), x.device()));
  if (alias.sizes() != x.sizes() || alias.strides() != x.strides())
    own.set_sizes_and_strides(alias.sizes(), alias.strides(), alias.storage_offset());
}

}  // namespace valora::ops::emulated
