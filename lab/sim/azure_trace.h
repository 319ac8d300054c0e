// Reads Azure's public LLM inference trace of 2023: arrival times and lengths of requests. Its two
// files, from a chat service and a code assistant, cover about an hour each.
// Source: github.com/Azure/AzurePublicDataset, AzureLLMInferenceDataset2023.md.
#pragma once

#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

namespace valora::sim {

struct TraceRow {
  Duration at{};          // since the first row
  int prompt_tokens = 1;  // at least 1
  int answer_tokens = 1;  // at least 1
};

// A CSV file with the header `TIMESTAMP,ContextTokens,GeneratedTokens`. An example of a row is
// `2023-11-16 18:17:03.9799600,4808,10`. Lines end with LF or CRLF; the last line end may be
// missing. Returns at least one row, sorted by time. Errors: kNotFound; kPayloadTooLarge above
// 256 MiB; kInvalidArgument for a bad line, with a message that begins with `path:line: `, and for
// an unreadable file.
Result<std::vector<TraceRow>> read_azure_trace(const std::string& path);

}  // namespace valora::sim
