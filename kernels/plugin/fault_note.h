// The last words of a process that a plugin kills: on a fatal signal, a frame that says what was touched.
#pragma once

namespace assay {

// Of this thread and all others; `socket` is where the frame goes.
void install_fault_notes(int socket);

}  // namespace assay
