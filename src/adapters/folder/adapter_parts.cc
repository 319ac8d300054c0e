#include "adapters/folder/adapter_parts.h"

#include <algorithm>
#include <cstring>

#include "base/tensors/safetensors.h"

namespace valora::adapters {
namespace {

Error changed(const FolderPath& where) {
  return {ErrorCode::kConflict,
          "adapter folder " + where.path + " has changed since it was loaded; load it again",
          where.path};
}

// Collects pieces of any length and passes on whole rows.
class RowBuffer {
 public:
  RowBuffer(const AdapterPart& part, const PartVisitor& visit)
      : visit_(visit),
        dtype_(part.dtype),
        columns_(part.columns),
        rows_(part.rows),
        stride_(static_cast<size_t>(part.columns) * dtype_size(part.dtype)) {}

  Status add(std::span<const uint8_t> bytes) {
    held_.insert(held_.end(), bytes.begin(), bytes.end());
    const auto whole = static_cast<int64_t>(held_.size() / stride_);
    const bool last = first_ + whole == rows_;
    const int64_t count = last ? whole : whole / kPartRowsTogether * kPartRowsTogether;
    if (count == 0) return {};
    const size_t size = static_cast<size_t>(count) * stride_;
    VALORA_CHECK(visit_(first_, {dtype_, {count, columns_}, {held_.data(), size}}));
    held_.erase(held_.begin(), held_.begin() + static_cast<std::ptrdiff_t>(size));
    first_ += count;
    return {};
  }

 private:
  const PartVisitor& visit_;
  DType dtype_;
  int64_t columns_, rows_, first_ = 0;
  size_t stride_;
  std::vector<uint8_t> held_;
};

// Rows [begin, end) of the matrix with Aᵀ above B.
std::vector<uint8_t> low_rank_rows(const TensorView& a, const TensorView& b, int64_t begin,
                                   int64_t end) {
  const size_t size = dtype_size(a.dtype);
  const int64_t rank = a.shape[0], vocabulary = a.shape[1];
  std::vector<uint8_t> rows(static_cast<size_t>((end - begin) * rank) * size);
  for (int64_t row = begin; row < end; ++row)
    for (int64_t i = 0; i < rank; ++i) {
      const int64_t from = row < vocabulary ? i * vocabulary + row : (row - vocabulary) * rank + i;
      std::memcpy(rows.data() + static_cast<size_t>((row - begin) * rank + i) * size,
                  (row < vocabulary ? a : b).bytes.data() + static_cast<size_t>(from) * size, size);
    }
  return rows;
}

class PartReader {
 public:
  PartReader(const FolderPath& where, const AdapterPart& part, const SafeTensors& file)
      : where_(where), part_(part), file_(file) {
    digest_.add("part").add(static_cast<uint8_t>(part.kind));
  }

  Status read(const PartVisitor& visit) {
    std::vector<const TensorView*> views;
    for (const std::string& tensor : part_.tensors) {
      views.push_back(file_.find(tensor));
      if (!views.back()) return changed(where_);
    }
    return views.size() == 2 ? read_low_rank(*views[0], *views[1], visit)
                             : read_matrix(*views[0], visit);
  }

 private:
  Status read_low_rank(const TensorView& a, const TensorView& b, const PartVisitor& visit) {
    constexpr int64_t kTogether = 64 * kPartRowsTogether;
    if (a.shape.size() != 2 || b.shape.size() != 2 || a.dtype != part_.dtype ||
        b.dtype != part_.dtype || a.shape[0] != part_.columns || b.shape[1] != part_.columns ||
        a.shape[1] + b.shape[0] != part_.rows)
      return changed(where_);
    for (const TensorView* view : {&a, &b}) add(*view, view->bytes);
    if (digest_.finish() != part_.digest) return changed(where_);
    for (int64_t row = 0; row < part_.rows; row += kTogether) {
      const int64_t end = std::min(part_.rows, row + kTogether);
      const std::vector<uint8_t> rows = low_rank_rows(a, b, row, end);
      VALORA_CHECK(visit(row, {part_.dtype, {end - row, part_.columns}, rows}));
    }
    return {};
  }

  Status read_matrix(const TensorView& view, const PartVisitor& visit) {
    if (view.dtype != part_.dtype || view.shape != std::vector<int64_t>{part_.rows, part_.columns})
      return changed(where_);
    RowBuffer rows(part_, visit);
    if (part_.kind == PartKind::kTokenRows) {
      add(view, view.bytes);
      if (digest_.finish() != part_.digest) return changed(where_);
      return rows.add(view.bytes);
    }
    DigestBuilder values;
    values.add(static_cast<uint8_t>(view.dtype)).add(std::span<const int64_t>(view.shape));
    VALORA_CHECK(visit_pieces(file_, part_.tensors[0], [&](size_t, const TensorView& piece) {
      values.add(piece.bytes);
      return rows.add(piece.bytes);
    }));
    if (digest_.add(values.finish()).finish() != part_.digest) return changed(where_);
    return {};
  }

  void add(const TensorView& view, std::span<const uint8_t> bytes) {
    digest_.add(static_cast<uint8_t>(view.dtype))
        .add(std::span<const int64_t>(view.shape))
        .add(bytes);
  }

  const FolderPath& where_;
  const AdapterPart& part_;
  const SafeTensors& file_;
  DigestBuilder digest_;
};

}  // namespace

Status read_part(const FolderPath& where, const AdapterPart& part, const AdapterLimits& limits,
                 const PartVisitor& visit) {
  VALORA_TRY(folder, InputFolder::open(where));
  VALORA_TRY(input, folder.file("adapter_model.safetensors", limits.max_file_bytes));
  // Large matrices are streamed, so that they need no memory besides their final place.
  const bool small = part.tensors.size() == 2 || part.kind == PartKind::kTokenRows;
  VALORA_TRY(file, SafeTensors::read(input, [&](const std::string& tensor) {
               return small && std::ranges::find(part.tensors, tensor) != part.tensors.end();
             }));
  return PartReader(where, part, *file).read(visit);
}

}  // namespace valora::adapters
