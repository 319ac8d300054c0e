// Shared by the endpoints that change adapters.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/load_adapter.h"
#include "base/files/input_folder.h"
#include "base/json/json.h"
#include "base/result.h"
#include "server/handlers/service.h"

namespace valora::server {

inline constexpr std::string_view kInvalidUserInput = "InvalidUserInput";  // a vLLM error type

// False if runtime changes are off, or not allowed for this caller and name. The exchange has then
// been answered.
bool lora_changes_allowed(const Service& service, Exchange& exchange);
bool may_change_lora(const Service& service, const HttpRequest& request, Exchange& exchange,
                     const std::string& name);

// Reads the fields of a load request; absent ones stay empty.
Result<LoadAdapter> load_of_body(const Json& body);
Result<std::optional<uint64_t>> expected_generation_of(const Json& body);
// Why vLLM refuses the load as InvalidUserInput; empty if it does not.
std::string lora_rejection_reason(const Service& service, const LoadAdapter& load);

// Answers "Success: LoRA adapter 'x' added successfully." as vLLM does.
HttpResponse lora_success(std::string_view name, std::string_view what);
// As above, with a line for each warning, and the header X-Valora-Changes if the adapter changes
// linears: text_of(AdapterCard::changes).
HttpResponse lora_added(std::string_view name, const AdapterCard& card);
Error lora_load_error(const Error& error, const FolderPath& folder);
// conditional: the request had "expected_generation".
HttpResponse lora_failure(const Error& error, bool conditional);

}  // namespace valora::server
