// Tests projections with every backend, device and dtype on the test grids of Punica and vLLM,
// against ATen in double precision. Runs a sample of each grid unless VALORA_CONFORMANCE=full.
// VALORA_ISA restricts the test to one instruction set.
#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "kernels/cpu/isa/isa.h"
#include "ops/conformance/check.h"
#include "ops/conformance/grids.h"
#include "ops/device/backend.h"

namespace valora::ops {
namespace {

using namespace conformance;

bool full() {
  const char* value = std::getenv("VALORA_CONFORMANCE");
  return value && std::string_view(value) == "full";
}

struct Setting {
  Backend backend;
  at::DeviceType device;
  at::ScalarType dtype;
  kernels::Isa isa;  // for the native backend on CPUs

  bool native() const { return backend == Backend::kNative && device == at::kCPU; }
  // True if a full grid would take minutes with this instruction set.
  bool slow() const {
    return native() && (isa == kernels::Isa::kAvx2 || isa == kernels::Isa::kPortable);
  }
  std::string name() const {
    return std::string(device == at::kCPU ? "cpu_" : "cuda_") +
           (backend == Backend::kNative ? "native_" : "reference_") +
           (native() ? std::string(kernels::isa_name(isa)) + "_" : "") +
           (dtype == at::kFloat  ? "float32"
            : dtype == at::kHalf ? "float16"
                                 : "bfloat16");
  }
  friend void PrintTo(const Setting& setting, std::ostream* out) { *out << setting.name(); }
  // For comparison: Punica's (relative, absolute) tolerances are (3e-2, 2e-2) in bfloat16 and
  // (5e-3, 5e-3) in float16; vLLM's are 6e-2 in both and 1e-2 in float32.
  Tolerance tolerance() const {
    if (dtype == at::kFloat) return {1e-5, 5e-5};
    if (dtype == at::kHalf) return {2e-3, 4e-3};
    return native() ? Tolerance{5e-3, 1e-2} : Tolerance{1.5e-2, 3e-2};
  }
};

std::vector<Setting> settings() {
  const char* only = std::getenv("VALORA_ISA");
  const kernels::Isa best = kernels::supported_isas().front();
  std::vector<Setting> result;
  for (const at::ScalarType dtype : {at::kBFloat16, at::kFloat}) {
    for (const kernels::Isa isa : kernels::supported_isas())
      if (!only || only == kernels::isa_name(isa))
        result.push_back({Backend::kNative, at::kCPU, dtype, isa});
    if (!only || only == kernels::isa_name(best))
      result.push_back({Backend::kReference, at::kCPU, dtype, best});
  }
  if (at::globalContext().hasCUDA())
    for (const at::ScalarType dtype : {at::kBFloat16, at::kHalf, at::kFloat})
      result.push_back({Backend::kNative, at::kCUDA, dtype, best});
  return result;
}

Count& total() {
  static Count count;
  return count;
}

class Conformance : public ::testing::TestWithParam<Setting> {
 protected:
  void SetUp() override {
    kernels::set_isa(GetParam().isa);
    set_backend(GetParam().backend);
    // Tests run in parallel: with more threads, each launch would wait for busy cores.
    if (!full()) at::set_num_threads(1);
  }
  void TearDown() override {
    kernels::set_isa(isa_before_);
    set_backend(backend_before_);
    at::set_num_threads(threads_before_);
  }

  // The largest token count among cases that share weights with `like`.
  static int64_t most_tokens(const std::vector<Case>& cases, const Case& like) {
    int64_t most = 0;
    for (const Case& c : cases)
      if (c.in == like.in && c.outs == like.outs) most = std::max(most, c.tokens);
    return most;
  }

  // A sample includes only one of the largest weights per dtype, because creating them takes longer
  // than running the cases.
  std::vector<Case> narrow(const std::vector<Case>& grid) const {
    std::vector<Case> cases;
    const int64_t left_out = GetParam().dtype == at::kFloat ? 11008 : 4096;
    for (const Case& c : grid)
      if (c.in * c.outs[0] < (1 << 24) || c.outs[0] != left_out) cases.push_back(c);
    return cases;
  }

  // Runs all cases of `grid`, or a sample of `sampled` cases. Slow instruction sets run fewer and
  // smaller cases.
  void run(const char* grid_name, const std::vector<Case>& grid, size_t sampled) {
    const Setting& setting = GetParam();
    std::vector<Case> cases = grid;
    if (!full())
      cases =
          sample(narrow(grid), setting.slow() ? sampled / 3 : sampled, setting.slow() ? 16 : 64);
    else if (setting.slow())
      cases = sample(grid, grid.size() / 4, 133);
    World world(setting.dtype, setting.device);
    Checker checker(world, setting.dtype, setting.tolerance(), total());
    for (size_t i = 0; i < cases.size(); ++i) {
      if (full() && i % 50 == 0)
        std::fprintf(stderr, "conformance: %s, %s: %zu of %zu\n", setting.name().c_str(), grid_name,
                     i, cases.size());
      world.expect_tokens(most_tokens(cases, cases[i]));
      checker.check(cases[i]);
      if (HasFailure()) return;
    }
  }

 private:
  const kernels::Isa isa_before_ = kernels::isa();
  const Backend backend_before_ = backend();
  const int threads_before_ = at::get_num_threads();
};
INSTANTIATE_TEST_SUITE_P(Settings, Conformance, ::testing::ValuesIn(settings()),
                         [](const auto& info) { return info.param.name(); });

TEST_P(Conformance, MatchesReferenceOnPunicaAndVllmGrids) {
  run("gate and up", gated_grid(), 12);
  run("widths", width_grid(), 24);
  run("vLLM's grid", vllm_grid(), 30);
  run("Punica's grid", punica_grid(), 12);
}

// Prints the number of compared cases and outputs at the end.
class Summary : public ::testing::Environment {
 public:
  void TearDown() override {
    if (full())
      std::printf("conformance: %lld cases, %lld outputs compared\n",
                  static_cast<long long>(total().cases), static_cast<long long>(total().outputs));
  }
};
const ::testing::Environment* const kSummary = ::testing::AddGlobalTestEnvironment(new Summary);

}  // namespace
}  // namespace valora::ops
