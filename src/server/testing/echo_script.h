// The script of the server's tests and of fake_server: the request determines the answer.
//
// A token is a word with its leading space. The answer repeats the last message token by token.
// Special prompts: "!echo-adapters" (lists the adapters and scales), "!bytes" (a character split
// over two tokens), "!media" (lists the lengths of the media URLs), "!fail ..." (an error after two
// tokens), "!fail-now" (an error before any token), "!hang" (one token, then waits until released
// or cancelled), "!flood" (large chunks until cancelled), "!unfinished" (no finish reason). A
// request with a "head" is answered with the label "dog". An embedding is (1, -2, 2) times the
// bytes of the prompt.
#pragma once

#include "api/testing/fake_engine.h"

namespace valora::server::testing {

valora::testing::Reply echo(const GenerateRequest& request);

// Options for a FakeEngine with this script and at most 4 images per prompt.
valora::testing::FakeOptions echo_options(size_t max_queued = SIZE_MAX);

}  // namespace valora::server::testing
