#include "core/system/message.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <string>

#include "core/system/error.h"

namespace assay {

void write_unfinished(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

void write_message(std::string_view line) {
  write_unfinished(std::string(line) + "\n");
}

namespace {
int output_failure = 0;  // errno of the first write that failed

void note_failure(bool failed) {
  if (failed && output_failure == 0) output_failure = errno;
}
}  // namespace

void write_output(std::string_view text) {
  note_failure(std::fwrite(text.data(), 1, text.size(), stdout) != text.size());
}

void flush_output() {
  note_failure(std::fflush(stdout) != 0);
  if (output_failure != 0 && output_failure != EPIPE)
    throw Error::from_errno("write to standard output", output_failure);
}

void stream_output(std::string_view text) {
  write_output(text);
  flush_output();
  if (output_failure == EPIPE) throw ReaderGone();
}

void occupy_closed_streams() {
  // open() takes the lowest free number: in this order each stream gets its own.
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(stream, F_GETFD) >= 0) continue;
    const int taken = ::open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY);
    if (taken >= 0 && taken != stream) ::close(taken);
  }
}

}  // namespace assay
