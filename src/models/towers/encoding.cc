#include "models/towers/encoding.h"

#include <algorithm>
#include <cmath>

namespace valora::models {

void Encoding::advance() {
  const Stage& stage = stages_.at(stage_);
  const auto rows = static_cast<double>(stage.rows);
  const double piece =
      std::max(pieces_.products, stage.products * static_cast<double>(pieces_.rows));
  const int64_t by_products = std::llround(std::ceil(rows * stage.products / piece)),
                by_rows = (stage.rows - 1) / pieces_.most_rows + 1;
  const int64_t parts = std::max({int64_t{1}, by_products, by_rows});
  const int64_t begin = stage.rows * part_ / parts, end = stage.rows * (part_ + 1) / parts;
  stage.run(begin, end);
  left_ -= stage.products * static_cast<double>(end - begin);
  if (++part_ < parts) return;
  part_ = 0;
  ++stage_;
}

}  // namespace valora::models
