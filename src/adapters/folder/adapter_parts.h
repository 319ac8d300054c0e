// Reads the values of an adapter's parts from its file when the pool needs them.
#pragma once

#include <functional>

#include "adapters/adapter_spec.h"
#include "base/files/input_folder.h"
#include "base/result.h"

namespace valora::adapters {

// first: matrix index of the first of these rows, a multiple of kPartRowsTogether. rows: [n,
// columns], whose bytes are valid only during the call; n is such a multiple, too, except at the
// end.
using PartVisitor = std::function<Status(int64_t first, const TensorView& rows)>;
inline constexpr int64_t kPartRowsTogether = 16;

// Reads the matrix in order and verifies its digest at the end: after an error, everything that
// `visit` received must be discarded. Errors: kConflict if the values in the file have changed;
// kNotFound if the folder or the tensor is gone; those of SafeTensors::read(). Any thread.
Status read_part(const FolderPath& where, const AdapterPart& part, const AdapterLimits& limits,
                 const PartVisitor& visit);

}  // namespace valora::adapters
