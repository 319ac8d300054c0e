// Reads an applications file.
#include <set>

#include "base/json/json.h"
#include "check.h"
#include "server/applications/application.h"
#include "temp_folder.h"

using namespace valora;
using namespace valora::server;

namespace {

bool above_zero(const std::optional<double>& value) { return !value || *value > 0; }

void check_application(const Application& application) {
  FUZZ_CHECK(!application.name.empty());
  FUZZ_CHECK(above_zero(application.ttft) && above_zero(application.tpot));
  FUZZ_CHECK(above_zero(application.e2e) && above_zero(application.rate));
  FUZZ_CHECK(application.max_waiting.value_or(1) >= 1);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size > 16384) return 0;  // larger inputs are slow and add no coverage
  const std::string path =
      fuzz::temp_folder().write("applications.yaml", {reinterpret_cast<const char*>(data), size});
  const auto applications = read_applications(path);
  if (!applications.ok()) {
    FUZZ_CHECK(applications.error().message.starts_with(path + ":"));
    (void)Json(applications.error().message).dump();  // the message must be valid UTF-8
    return 0;
  }
  std::set<std::string> names, models;
  FUZZ_CHECK(!applications->empty());
  for (const Application& application : *applications) {
    check_application(application);
    FUZZ_CHECK(names.insert(application.name).second);
    for (const std::string& model : application.models) FUZZ_CHECK(models.insert(model).second);
  }
  return 0;
}
