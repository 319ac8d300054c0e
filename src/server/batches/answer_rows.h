// The lines of a batch's output and errors, in OpenAI's form: {"id", "custom_id", "response":
// {"status_code", "request_id", "body"}, "error"}.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "server/http/http.h"

namespace valora::server {

// A row that was answered, whether with 200 or not. The body is that of the response, unchanged.
std::string answer_row(std::string_view custom_id, std::string_view request_id,
                       const HttpResponse& response);
// A row that was never asked.
std::string failure_row(std::string_view custom_id, std::string_view code,
                        std::string_view message);

// The custom_id of a line that these functions wrote.
Result<std::string> custom_id_of(std::string_view row);

}  // namespace valora::server
