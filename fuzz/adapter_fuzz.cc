// A PEFT adapter folder. Input parts: configuration, sidecar (empty: no file), tensor file.
#include <cmath>
#include <filesystem>

#include "adapters/folder/adapter_parts.h"
#include "adapters/testing/adapter_folder.h"
#include "check.h"
#include "input.h"
#include "temp_folder.h"

using namespace valora;
using adapters::AdapterSpec;

namespace {

void check_spec(const AdapterSpec& spec, const adapters::ModuleTable& modules,
                const adapters::AdapterLimits& limits) {
  FUZZ_CHECK(!spec.targets.empty() || !spec.heads.empty() || !spec.parts.empty());
  for (const adapters::AdapterPart& part : spec.parts) {
    int64_t rows = 0;
    const Status read = adapters::read_part(
        spec.path, part, limits, [&](int64_t first, const TensorView& some) -> Status {
          FUZZ_CHECK(first == rows && some.bytes.size() == byte_size(some));
          rows += some.shape[0];
          return {};
        });
    FUZZ_CHECK(read.ok() && rows == part.rows);
  }
  int last = -1;
  for (const adapters::LoraTarget& target : spec.targets) {
    FUZZ_CHECK(target.module > last && target.module < static_cast<int>(modules.modules().size()));
    last = target.module;
    const adapters::Module& module = modules.modules()[target.module];
    FUZZ_CHECK(module.kind == adapters::ModuleKind::kLinear ||
               module.kind == adapters::ModuleKind::kHead);
    FUZZ_CHECK(target.rank >= 1 && target.rank <= limits.max_rank && target.rank <= spec.max_rank);
    FUZZ_CHECK(std::isfinite(target.scale));
    FUZZ_CHECK((target.a.shape == std::vector<int64_t>{target.rank, module.in}));
    FUZZ_CHECK((target.b.shape == std::vector<int64_t>{module.out, target.rank}));
    FUZZ_CHECK(target.a.bytes.size() ==
               static_cast<size_t>(target.rank * module.in) * dtype_size(target.a.dtype));
    FUZZ_CHECK(target.b.bytes.size() ==
               static_cast<size_t>(module.out * target.rank) * dtype_size(target.b.dtype));
  }
  for (const adapters::TaskHead& head : spec.heads) {
    FUZZ_CHECK(head.weight.shape.size() == 2 && head.weight.shape[1] == modules.hidden_size());
    FUZZ_CHECK(head.labels.size() == static_cast<size_t>(head.weight.shape[0]));
    FUZZ_CHECK(!head.bias || head.bias->shape == std::vector<int64_t>{head.weight.shape[0]});
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const testing::TempDir& dir = fuzz::temp_folder();
  static const adapters::ModuleTable modules = adapters::testing::small_table();
  const adapters::AdapterLimits limits{.max_rank = 16, .max_file_bytes = size_t{1} << 20};

  fuzz::Input input(data, size);
  dir.write("adapter_config.json", input.part());
  const std::string_view sidecar = input.part();
  if (sidecar.empty())
    std::filesystem::remove(dir.file("valora.json"));
  else
    dir.write("valora.json", sidecar);
  dir.write("adapter_model.safetensors", input.rest());

  const auto spec = adapters::read_adapter(dir.path(), modules, limits);
  if (!spec.ok()) {
    FUZZ_CHECK(!spec.error().message.empty());
    return 0;
  }
  check_spec(*spec, modules, limits);
  const auto again = adapters::read_adapter(dir.path(), modules, limits);
  FUZZ_CHECK(again.ok() && again->digest == spec->digest);
  return 0;
}
