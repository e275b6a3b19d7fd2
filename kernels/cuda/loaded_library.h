// A library of the CUDA toolkit, opened when it is first needed: its absence stops nothing else.
#pragma once

#include <dlfcn.h>

#include <string>
#include <string_view>

namespace assay::cuda {

class LoadedLibrary {
 public:
  // "cublas", 13: libcublas.so.13, which the loader looks for where it always does, then where the toolkit is
  // installed as a rule. `title` is its name for people.
  LoadedLibrary(std::string_view title, std::string_view stem, int major);

  // Why it cannot be used; empty: it can.
  const std::string& unavailable() const { return unavailable_; }
  template <class Function>
  void find(const char* name, Function& function) {
    if (handle_ != nullptr) function = reinterpret_cast<Function>(dlsym(handle_, name));
    if (function == nullptr && unavailable_.empty()) lacks(name);
  }

 private:
  void lacks(const char* name);
  std::string title_, file_, unavailable_;
  void* handle_ = nullptr;  // until the process ends
};

}  // namespace assay::cuda
