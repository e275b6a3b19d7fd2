#include "core/system/message.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <string>

namespace assay {

void write_unfinished(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

void write_message(std::string_view line) {
  write_unfinished(std::string(line) + "\n");
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
