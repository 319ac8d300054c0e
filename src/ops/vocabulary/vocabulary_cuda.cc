#include "kernels/cuda/vocabulary.h"

#include "ops/device/cuda_types.h"
#include "ops/step/device_tables.h"
#include "ops/vocabulary/vocabulary_targets.h"

namespace valora::ops {

struct DeviceMatrix {
  DeviceTables pieces;
  kernels::cuda::DeviceLoraFactor factor;
};

namespace {

kernels::cuda::DeviceLoraFactor factor_on(const PlacedMatrix& matrix, at::Device device) {
  std::shared_ptr<const DeviceMatrix>& made = matrix.on_device();
  if (!made) {
    auto table = std::make_shared<DeviceMatrix>();
    const size_t offset = table->pieces.add(matrix.pieces());
    table->pieces.copy_to(device);
    table->factor = {nullptr, table->pieces.at<const void*>(offset),
                     static_cast<int32_t>(matrix.rows_per_piece())};
    made = std::move(table);
  }
  return made->factor;
}

}  // namespace

at::Tensor gather_rows_cuda(const PlacedMatrix& matrix, const at::Tensor& rows) {
  at::Tensor out =
      at::empty({rows.size(0), matrix.columns()}, rows.options().dtype(matrix.dtype()));
  check_launch(kernels::cuda::gather_rows(
                   cuda_dtype(matrix.dtype()), factor_on(matrix, rows.device()),
                   static_cast<int32_t>(matrix.columns()), rows.const_data_ptr<int64_t>(),
                   rows.size(0), out.data_ptr(), stream_of(rows)),
               "gather_rows");
  return out;
}

void row_product_cuda(const at::Tensor& x, const PlacedMatrix& matrix, int64_t first, int64_t count,
                      bool adds, const at::Tensor& y) {
  kernels::cuda::RowProduct product;
  product.dtype = cuda_dtype(matrix.dtype());
  product.matrix = factor_on(matrix, x.device());
  product.width = static_cast<int32_t>(matrix.columns());
  product.first_row = first;
  product.rows = static_cast<int32_t>(count);
  product.x = x.const_data_ptr<float>();
  product.tokens = static_cast<int32_t>(x.size(0));
  product.y = y.mutable_data_ptr<float>();
  product.y_stride = y.stride(0);
  product.adds = adds;
  check_launch(kernels::cuda::row_product(product, stream_of(x)), "row_product");
}

}  // namespace valora::ops
