// Decides which adapters may be merged into the decoder's weights, and whether requests of others
// may run on them.
//
// A merged weight is round(W + D), with D = scale · B A. For requests of others D is subtracted
// again (deLoRA, VaLoRA §4.4.2), which cannot bring back what rounding took: a value of W loses up
// to u · (|W| + |D|), u being the unit roundoff of the dtype. So a row or column of W loses up to
// u · (1 + |D row| / |W row|) of itself. This loss is not noise: values of D below the step of
// their weight are lost as a whole, and what is left for others is W - D there.
#pragma once

#include <ATen/ATen.h>

#include <span>
#include <vector>

#include "adapters/adapter_spec.h"
#include "models/model.h"
#include "serving/adapters/loaded_adapter.h"

namespace valora {

class MergeBound {
 public:
  // No adapter may be merged while requests of others run.
  MergeBound() = default;
  // ranks: the models of all ranks, with their weights. In 16 bits equal to MergeBound(): u alone
  // exceeds the loss that is allowed. Otherwise decodes all weights of the decoder once.
  MergeBound(std::span<models::Model* const> ranks, at::ScalarType dtype);

  // spec must have values.
  serving::MergeUse use_of(const adapters::AdapterSpec& spec,
                           const adapters::ModuleTable& modules) const;

 private:
  // A rank's part of a linear.
  struct Part {
    adapters::MatrixSlice has;
    std::vector<double> rows, columns;  // sums of squares of W
  };
  bool preserves_others(const adapters::LoraTarget& target) const;

  double most_ = 0;                       // |D row| / |W row| and of columns; 0: none is allowed
  std::vector<std::vector<Part>> parts_;  // by module, then by rank
};

}  // namespace valora
