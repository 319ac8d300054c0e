// The values of one tensor of a safetensors file in pieces, for tensors too large to be kept.
#pragma once

#include <functional>
#include <string>

#include "base/result.h"
#include "base/safetensors.h"

namespace valora {

// `first` is the index of the piece's first value in the tensor, row-major; the piece has one
// dimension, and bytes that live as long as the call.
using PieceVisitor = std::function<Status(size_t first, const TensorView& piece)>;

// Reads a tensor of a file that SafeTensors::read() read, which need not have read this tensor, and
// hands its values over in order. Ends at the first error of `visit`. Errors: kConflict if the file
// was replaced or changed since; kNotFound if it is gone.
Status visit_pieces(const SafeTensors& file, const std::string& tensor, const PieceVisitor& visit);

}  // namespace valora
