// Reads a tensor of a safetensors file piece by piece, for tensors too large to keep in memory.
#pragma once

#include <functional>
#include <string>

#include "base/result.h"
#include "base/tensors/safetensors.h"

namespace valora {

// `first` is the row-major index, in the tensor, of the piece's first value. The piece has one
// dimension; its bytes are valid only during the call.
using PieceVisitor = std::function<Status(size_t first, const TensorView& piece)>;

// Reads a tensor of a file opened by SafeTensors::read() and passes its values on in order, even if
// read() skipped this tensor. Stops at the first error of `visit`. Errors: kConflict if the file
// was replaced or changed since; kNotFound if it is gone.
Status visit_pieces(const SafeTensors& file, const std::string& tensor, const PieceVisitor& visit);

}  // namespace valora
