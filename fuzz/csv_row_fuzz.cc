// A row of a table: what is written of it is read again.
#include "check.h"
#include "cli/rows/csv.h"
#include "server/batches/row_journal.h"

using namespace valora;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto fields = cli::csv_fields(text);
  if (!fields.ok()) return 0;
  const std::string row = cli::csv_row(*fields);
  FUZZ_CHECK(server::csv_row_end(row) == row.size());
  const auto again = cli::csv_fields(std::string_view(row).substr(0, row.size() - 1));
  FUZZ_CHECK(again.ok() && *again == *fields);
  return 0;
}
