#include "core/system/loaded_library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include "core/system/error.h"

namespace assay {

LoadedLibrary::LoadedLibrary(const std::string& name)
    : name_(name), handle_(dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)) {
  if (handle_ == nullptr) throw Error::input(fmt::format("{} cannot be opened: {}", name, dlerror()));
}

void* LoadedLibrary::find(const char* name) const {
  void* found = dlsym(handle_, name);
  if (found == nullptr) throw Error::input(fmt::format("{} has no {}", name_, name));
  return found;
}

}  // namespace assay
