// Parses config.json into a model spec. An accepted spec must have sane sizes.
#include "check.h"
#include "models/registry.h"
#include "temp_folder.h"

using namespace valora;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const testing::TempDir& dir = fuzz::temp_folder();
  dir.write("config.json", {reinterpret_cast<const char*>(data), size});
  const auto config = models::read_model_config(dir.path());
  if (!config.ok()) return 0;
  const auto family = models::find_family(*config);
  if (!family.ok()) return 0;
  (void)models::resolve_dtype(std::nullopt, *config, at::kFloat, at::kCPU);
  const auto spec = models::read_model_spec(**family, *config);
  if (!spec.ok()) {
    (void)Json(spec.error().message).dump();
    return 0;
  }
  FUZZ_CHECK(spec->vocab > 0 && spec->hidden > 0 && spec->kv_heads > 0 && spec->head_dim > 0);
  FUZZ_CHECK(spec->layers > 0 && spec->layers <= models::kMaxLayers);
  FUZZ_CHECK(!spec->modules.modules().empty());
  for (const adapters::Module& module : spec->modules.modules())
    FUZZ_CHECK(module.in > 0 && module.out > 0);
  const models::Positions positions = (*family)->positions(*spec, 16, {});
  FUZZ_CHECK(positions.prompt.size() == size_t(spec->axes) * 16);
  return 0;
}
