// The script of the server's tests and of fake_server: every answer follows from the request.
//
// A token is a word with the space before it, and the answer repeats the last message token by
// token. Prompts that change it: "!echo-adapters" (the adapters and scales), "!bytes" (a character
// cut in two tokens), "!media" (the media URLs' lengths), "!fail ..." (an error after two tokens),
// "!fail-now" (before any), "!hang" (one token, and no more until released or cancelled), "!flood"
// (large chunks without end until cancelled).
#pragma once

#include "api/testing/fake_engine.h"

namespace valora::server::testing {

valora::testing::Reply echo(const GenerateRequest& request);

// A FakeEngine with this script, which takes 4 images a prompt.
valora::testing::FakeOptions echo_options(size_t max_queued = SIZE_MAX);

}  // namespace valora::server::testing
