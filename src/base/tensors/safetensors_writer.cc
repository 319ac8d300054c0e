#include "base/tensors/safetensors_writer.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string_view>
#include <utility>

#include "base/files/write_file.h"
#include "base/json/json.h"

namespace valora {

static_assert(std::endian::native == std::endian::little, "safetensors is little-endian");

Status write_safetensors(const std::string& path, std::vector<NamedTensor> tensors,
                         const std::map<std::string, std::string>& metadata) {
  std::ranges::sort(tensors, {}, [](const NamedTensor& t) {
    return std::pair(-static_cast<int>(dtype_size(t.dtype)), std::string_view(t.name));
  });
  Json header = Json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  size_t offset = 0;
  for (const NamedTensor& tensor : tensors) {
    size_t wanted = dtype_size(tensor.dtype);
    for (const int64_t side : tensor.shape) wanted *= static_cast<size_t>(side);
    if (wanted != tensor.bytes.size())
      return internal("the tensor " + tensor.name + " has " + std::to_string(tensor.bytes.size()) +
                      " bytes, but its shape needs " + std::to_string(wanted));
    header[tensor.name] = {{"dtype", dtype_name(tensor.dtype)},
                           {"shape", tensor.shape},
                           {"data_offsets", {offset, offset + wanted}}};
    offset += wanted;
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');  // to align the data
  const uint64_t length = text.size();
  std::vector<uint8_t> file(sizeof length + text.size() + offset);
  std::memcpy(file.data(), &length, sizeof length);
  std::memcpy(file.data() + sizeof length, text.data(), text.size());
  uint8_t* data = file.data() + sizeof length + text.size();
  for (const NamedTensor& tensor : tensors)
    data = std::copy(tensor.bytes.begin(), tensor.bytes.end(), data);
  return write_file(path, file);
}

}  // namespace valora
