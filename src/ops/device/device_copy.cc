#include "ops/device/device_copy.h"

#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <exception>

namespace valora::ops {

DeviceCopier::DeviceCopier(at::Device device)
    : stream_(c10::impl::VirtualGuardImpl(device.type()).getStreamFromGlobalPool(device)) {}

void DeviceCopier::copy(const at::Tensor& to, const at::Tensor& from) {
  const c10::impl::VirtualGuardImpl device(stream_.device_type());
  c10::Event computed(stream_.device_type());
  computed.record(device.getDefaultStream(stream_.device()));
  computed.block(stream_);
  const c10::StreamGuard guard(stream_);
  to.copy_(from, /*non_blocking=*/true);
}

void copy_all(std::span<const CopyList> lists) {
  std::exception_ptr first;
  const auto unless_failed = [&](auto&& call) {
    try {
      call();
    } catch (...) {
      if (!first) first = std::current_exception();
    }
  };
  for (const CopyList& list : lists)
    for (const Copy& one : list.copies)
      if (!first) unless_failed([&] { list.copier.copy(one.to, one.from); });
  for (const CopyList& list : lists) unless_failed([&] { list.copier.wait(); });
  if (first) std::rethrow_exception(first);
}

at::Tensor pinned_bytes(int64_t bytes) {
  return at::empty({bytes}, at::TensorOptions().dtype(at::kByte).pinned_memory(true));
}

}  // namespace valora::ops
