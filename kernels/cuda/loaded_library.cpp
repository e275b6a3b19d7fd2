#include "kernels/cuda/loaded_library.h"

#include <fmt/format.h>

namespace assay::cuda {

LoadedLibrary::LoadedLibrary(std::string_view title, std::string_view stem, int major)
    : title_(title), file_(fmt::format("lib{}.so.{}", stem, major)) {
  for (const std::string& path : {file_, "/usr/local/cuda/lib64/" + file_}) {
    handle_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle_ != nullptr) return;
  }
  unavailable_ = fmt::format("no {}: {} is not found", title_, file_);
}

void LoadedLibrary::lacks(const char* name) {
  unavailable_ = fmt::format("no {}: {} has no {}", title_, file_, name);
}

}  // namespace assay::cuda
