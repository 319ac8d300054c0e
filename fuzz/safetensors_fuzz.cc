#include "base/tensors/safetensors.h"

#include "check.h"

using namespace valora;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto file =
      SafeTensors::from_bytes(std::string(reinterpret_cast<const char*>(data), size), "fuzz");
  if (!file.ok()) {
    FUZZ_CHECK(!file.error().message.empty());
    return 0;
  }
  // The header and the tensors must cover the file without gaps or overlaps.
  uint64_t header = 0;
  for (int i = 0; i < 8; ++i) header |= uint64_t{data[i]} << (8 * i);
  uint64_t covered = 8 + header;
  const auto bytes = (*file)->bytes();
  for (const auto& [name, view] : (*file)->tensors()) {
    uint64_t elements = 1;
    for (const int64_t n : view.shape) elements *= static_cast<uint64_t>(n);
    FUZZ_CHECK(elements * dtype_size(view.dtype) == view.bytes.size());
    FUZZ_CHECK(view.bytes.data() >= bytes.data() + 8 + header);
    FUZZ_CHECK(view.bytes.data() + view.bytes.size() <= bytes.data() + bytes.size());
    FUZZ_CHECK((*file)->find(name) == &view);
    covered += view.bytes.size();
  }
  FUZZ_CHECK(covered == size);
  return 0;
}
