// A fixture that runs operations on all devices, dtypes and backends, and what tests of GPUs ask.
#pragma once

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <vector>

#include "ops/device/backend.h"
#include "ops/device/dispatch.h"

namespace valora::ops::testing_support {

// Device, dtype and backend. All platforms run the same test bodies.
struct Platform {
  const char* name;
  at::Device device;
  Backend backend;
};

inline std::vector<Platform> platforms() {
  std::vector<Platform> all{{"native", at::kCPU, Backend::kNative},
                            {"reference", at::kCPU, Backend::kReference}};
  if (at::globalContext().hasCUDA())
    all.push_back({"cuda", at::Device(at::kCUDA, 0), Backend::kNative});
  return all;
}

class Ops : public ::testing::TestWithParam<std::tuple<Platform, at::ScalarType>> {
 protected:
  Ops() : generator_(at::make_generator<at::CPUGeneratorImpl>(3)) {}
  void SetUp() override { set_backend(platform().backend); }
  void TearDown() override { set_backend(Backend::kNative); }
  const Platform& platform() const { return std::get<0>(GetParam()); }
  at::Device device() const { return platform().device; }
  at::ScalarType dtype() const { return std::get<1>(GetParam()); }
  at::Tensor random(at::IntArrayRef sizes) {
    return at::randn(sizes, generator_, at::kFloat)
        .to(at::TensorOptions().dtype(dtype()).device(device()));
  }
  bool on_gpu_kernels() const {
    return device().is_cuda() && platform().backend == Backend::kNative;
  }
  double tolerance() const { return dtype() == at::kFloat ? 2e-5 : 2e-2; }
  // `expected` is in double precision; `actual` was rounded once.
  void expect_close(const at::Tensor& actual, const at::Tensor& expected, double scale = 1) {
    ASSERT_EQ(actual.sizes(), expected.sizes());
    const at::Tensor difference =
        (actual.to(at::TensorOptions().dtype(at::kDouble).device(at::kCPU)) - expected).abs();
    const at::Tensor allowed = tolerance() * scale * (1 + expected.abs());
    EXPECT_TRUE((difference <= allowed).all().item<bool>())
        << "off by " << difference.max().item<double>();
  }
  at::Generator generator_;
};
inline std::string name_of_platform(const ::testing::TestParamInfo<Ops::ParamType>& info) {
  return std::string(std::get<0>(info.param).name) +
         (std::get<1>(info.param) == at::kFloat ? "Float" : "Bf16");
}

inline auto all_platforms() {
  return ::testing::Combine(::testing::ValuesIn(platforms()),
                            ::testing::Values(at::kFloat, at::kBFloat16));
}

inline at::Tensor wide(const at::Tensor& x) {
  return x.to(at::TensorOptions().dtype(at::kDouble).device(at::kCPU));
}

// True if there is a GPU, real or emulated, and this build has kernels for it.
inline bool has_gpu() { return at::globalContext().hasCUDA() && has_cuda_kernels(); }

}  // namespace valora::ops::testing_support
