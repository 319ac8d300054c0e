// What happens when nobody reads the output any longer: `valora generate … | head -1`.
#pragma once

namespace valora::cli {

// Ends the process quietly, as SIGPIPE does, once it writes while the reader of stdout or stderr
// has left. Other broken pipes and sockets are errors of their writes alone: a peer that leaves
// must not end the process. No effect if SIGPIPE is ignored already.
void end_with_output_readers();

// For servers, in place of the above: a write to a pipe without a reader is an error, and the log
// (StderrSink) waits for no reader.
void outlive_output_readers();

}  // namespace valora::cli
