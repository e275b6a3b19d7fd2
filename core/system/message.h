// Lines on standard error: notes, prompts, the one line of an Error. A message that cannot be written (a full
// disk behind 2>, 2>&-) is lost and changes nothing else: neither the work nor the exit code.
#pragma once

#include <string_view>

namespace assay {

void write_message(std::string_view line);     // with a newline
void write_unfinished(std::string_view text);  // without: a prompt, a progress line

// First thing in main(): a standard stream that the caller closed is given a descriptor that refuses reading
// or writing. Else the next file opened would get its number, and messages would be written into that file.
void occupy_closed_streams();

}  // namespace assay
