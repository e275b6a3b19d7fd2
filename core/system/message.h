// What goes to the standard streams, and what is done where they cannot take it.
//
// Lines on standard error: notes, prompts, the one line of an Error. A message that cannot be written (a full
// disk behind 2>, 2>&-) is lost and changes nothing else: neither the work nor the exit code.
#pragma once

#include <string_view>

namespace assay {

void write_message(std::string_view line);     // with a newline
void write_unfinished(std::string_view text);  // without: a prompt, a progress line

// Standard output, as it is. What cannot be written is lost until flush_output() says so.
void write_output(std::string_view text);
// Throws Error::io where something could not be written (a full disk, >&-). A reader that has left ('| head')
// has what it wanted: that is no error, and the exit code stays the verdict's.
void flush_output();
// Text that comes as it is made. Throws Error::io, and ReaderGone, for nobody is there to make more for.
void stream_output(std::string_view text);
struct ReaderGone {};                        // main() returns kExitReaderGone, without a word
inline constexpr int kExitReaderGone = 141;  // as a shell has it of programs that SIGPIPE ends

// First thing in main(): a standard stream that the caller closed is given a descriptor that refuses reading
// or writing. Else the next file opened would get its number, and messages would be written into that file.
void occupy_closed_streams();

}  // namespace assay
