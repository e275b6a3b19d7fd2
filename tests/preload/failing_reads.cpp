// A disk with a bad sector: reads of the file that $ASSAY_BAD_FILE ends with fail from byte $ASSAY_BAD_BYTE
// on, as a kernel makes them fail: what lies before it is read, and the next request gets EIO.
#include <dlfcn.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

namespace {

bool is_bad_file(int descriptor) {
  const char* name = std::getenv("ASSAY_BAD_FILE");
  if (name == nullptr) return false;
  char target[4096];
  const std::string link = "/proc/self/fd/" + std::to_string(descriptor);
  const ssize_t length = ::readlink(link.c_str(), target, sizeof target);
  return length > 0 && std::string_view(target, static_cast<std::size_t>(length)).ends_with(name);
}

// How much of a request can be read; nullopt: nothing.
std::optional<std::size_t> readable(int descriptor, std::size_t count, off64_t offset) {
  if (!is_bad_file(descriptor)) return count;
  const auto bad = static_cast<off64_t>(std::strtoll(std::getenv("ASSAY_BAD_BYTE"), nullptr, 10));
  if (offset >= bad) return std::nullopt;
  return std::min(count, static_cast<std::size_t>(bad - offset));
}

template <typename Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

ssize_t fail() {
  errno = EIO;
  return -1;
}

}  // namespace

extern "C" ssize_t pread64(int descriptor, void* buffer, std::size_t count, off64_t offset) {
  static auto* const real = next<ssize_t(int, void*, std::size_t, off64_t)>("pread64");
  const auto some = readable(descriptor, count, offset);
  return some ? real(descriptor, buffer, *some, offset) : fail();
}
