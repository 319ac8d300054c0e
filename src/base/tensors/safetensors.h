// A safetensors file, mapped or read: an 8-byte little-endian header length, a JSON header {name:
// {dtype, shape, data_offsets}}, then the data. Every offset is checked before use. As in the
// reference reader, tensors must cover the data without gaps or overlaps.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/files/file.h"
#include "base/result.h"

namespace valora {

enum class DType : uint8_t {
  kF64,
  kF32,
  kF16,
  kBF16,
  kI64,
  kI32,
  kI16,
  kI8,
  kU8,
  kBool,
  kF8E4M3  // without infinities
};

size_t dtype_size(DType dtype);
const char* dtype_name(DType dtype);  // as in safetensors files: "BF16"

struct TensorView {
  DType dtype;
  std::vector<int64_t> shape;
  // Row-major, within the file's bytes; may be unaligned for the dtype. Empty if not read.
  std::span<const uint8_t> bytes;
};

// The number of bytes that dtype and shape imply.
size_t byte_size(const TensorView& tensor);

class SafeTensors {
 public:
  // Maps the file. Only for checkpoints that do not change: the process ends if the file is
  // truncated while in use.
  static Result<std::shared_ptr<const SafeTensors>> open(const std::string& path);
  // Reads the file into memory: for files that may change while the server runs. kPayloadTooLarge
  // if it is larger than max_bytes.
  static Result<std::shared_ptr<const SafeTensors>> read(const std::string& path, size_t max_bytes);
  // Reads the header, and the values of tensors for which wanted(name) is true; the others have no
  // bytes.
  static Result<std::shared_ptr<const SafeTensors>> read(
      const std::string& path, size_t max_bytes,
      const std::function<bool(const std::string& name)>& wanted);
  static Result<std::shared_ptr<const SafeTensors>> read(
      const InputFile& file, const std::function<bool(const std::string& name)>& wanted);
  // `path` names the source in errors.
  static Result<std::shared_ptr<const SafeTensors>> from_bytes(std::string bytes,
                                                               const std::string& path);

  // Other names and values for a file that was read: the same path and identity, no bytes(). owner:
  // keeps the memory of `tensors`.
  static std::shared_ptr<const SafeTensors> changed(const SafeTensors& file,
                                                    std::map<std::string, TensorView> tensors,
                                                    std::shared_ptr<const void> owner);

  const std::map<std::string, TensorView>& tensors() const { return tensors_; }
  const TensorView* find(const std::string& name) const;
  const std::string& path() const { return path_; }
  // The whole file; empty if only parts were read.
  std::span<const uint8_t> bytes() const { return bytes_; }
  // The identity of the file at the time of reading. Not set by open() and from_bytes().
  const FileIdentity& identity() const { return identity_; }

 private:
  static Result<std::shared_ptr<const SafeTensors>> parse(const std::string& path,
                                                          std::span<const uint8_t> bytes,
                                                          std::shared_ptr<const void> owner);

  std::string path_;
  std::span<const uint8_t> bytes_;
  FileIdentity identity_;
  std::shared_ptr<const void> owner_;  // keeps the bytes alive
  std::map<std::string, TensorView> tensors_;
};

// For tensors too large to keep in memory. `first` is the row-major index, in the tensor, of the
// piece's first value. The piece has one dimension; its bytes are valid only during the call.
using PieceVisitor = std::function<Status(size_t first, const TensorView& piece)>;

// Reads a tensor of a file opened by SafeTensors::read() and passes its values on in order, even if
// read() skipped this tensor. Stops at the first error of `visit`. Errors: kConflict if the file
// was replaced or changed since; kNotFound if it is gone.
Status visit_pieces(const SafeTensors& file, const std::string& tensor, const PieceVisitor& visit);

}  // namespace valora
