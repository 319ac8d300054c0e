// Parses a form. Input parts: Content-Type, body. The resulting parts must be inside the body, in
// order, and must not contain the boundary.
#include "check.h"
#include "input.h"
#include "server/uploads/multipart.h"

using namespace valora;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::Input input(data, size);
  const std::string boundary = server::boundary_of(input.part());
  FUZZ_CHECK(boundary.size() <= 70);
  const std::string_view body = input.rest();
  const auto parts = server::parse_form(body, boundary.empty() ? "b" : boundary);
  if (!parts.ok()) return 0;
  FUZZ_CHECK(parts->size() <= server::kMostFormParts);
  const std::string edge = "\r\n--" + (boundary.empty() ? "b" : boundary);
  const char* at = body.data();
  for (const server::FormPart& part : *parts) {
    FUZZ_CHECK(!part.name.empty() && part.name.size() <= server::kMostPartHeaderBytes);
    FUZZ_CHECK(part.contents.data() >= at);
    at = part.contents.data() + part.contents.size();
    FUZZ_CHECK(at + edge.size() <= body.data() + body.size());
    FUZZ_CHECK(std::string_view(at, edge.size()) == edge);
    FUZZ_CHECK(part.contents.find(edge) == part.contents.npos);
  }
  return 0;
}
