// Reads Azure's public LLM inference trace of 2023: when requests came and how long they were. Its
// two files, of a chat service and of a code assistant, hold about an hour each.
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

// A CSV file with the header `TIMESTAMP,ContextTokens,GeneratedTokens` and rows such as
// `2023-11-16 18:17:03.9799600,4808,10`. Lines end with LF or CRLF; the last one may lack its end.
// Returns at least one row, in order of time. Errors: kNotFound; kPayloadTooLarge above 256 MiB;
// kInvalidArgument for a bad line, with a message that begins with `path:line: `, and for a file
// that cannot be read.
Result<std::vector<TraceRow>> read_azure_trace(const std::string& path);

}  // namespace valora::sim
