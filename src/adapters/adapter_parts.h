// The values of an adapter's parts, read from its file when the pool asks for them.
#pragma once

#include <functional>

#include "adapters/adapter_spec.h"
#include "base/input_folder.h"
#include "base/result.h"

namespace valora::adapters {

// `first` is the index of the first of these rows of the matrix, a multiple of kPartRowsTogether;
// rows: [n, columns], whose bytes live as long as the call. n is such a multiple, too, or the rest.
using PartVisitor = std::function<Status(int64_t first, const TensorView& rows)>;
inline constexpr int64_t kPartRowsTogether = 16;

// Reads the matrix in order, and compares its digest at the end: what `visit` got before an error
// is worth nothing. Errors: kConflict if the file holds other values by now; kNotFound if the
// folder or the tensor is gone; those of SafeTensors::read(). Any thread.
Status read_part(const FolderPath& where, const AdapterPart& part, const AdapterLimits& limits,
                 const PartVisitor& visit);

}  // namespace valora::adapters
