// A process that is killed at a step of its own choice: before the $ASSAY_KILL_BEFORE-th of the calls that
// give a file its name, take it away or bring it to disk.
#include <dlfcn.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>

namespace {

void step() {
  static std::atomic<long> steps = 0;
  const char* last = std::getenv("ASSAY_KILL_BEFORE");
  if (last != nullptr && ++steps == std::strtol(last, nullptr, 10)) ::kill(::getpid(), SIGKILL);
}

template <typename Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" {

int rename(const char* from, const char* to) {
  static auto* const real = next<int(const char*, const char*)>("rename");
  step();
  return real(from, to);
}

int remove(const char* path) {
  static auto* const real = next<int(const char*)>("remove");
  step();
  return real(path);
}

int unlink(const char* path) {
  static auto* const real = next<int(const char*)>("unlink");
  step();
  return real(path);
}

int unlinkat(int folder, const char* path, int flags) {
  static auto* const real = next<int(int, const char*, int)>("unlinkat");
  step();
  return real(folder, path, flags);
}

int rmdir(const char* path) {
  static auto* const real = next<int(const char*)>("rmdir");
  step();
  return real(path);
}

int fsync(int descriptor) {
  static auto* const real = next<int(int)>("fsync");
  step();
  return real(descriptor);
}

int fdatasync(int descriptor) {
  static auto* const real = next<int(int)>("fdatasync");
  step();
  return real(descriptor);
}
}
