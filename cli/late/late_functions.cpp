// Where functions of libraries that are loaded late are found, when they are first called (cmake/AssayLateLibraries.cmake).
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include "core/system/loaded_library.h"

// Offsets into the names, of a function's library and of the function; made when the program is linked.
struct LateFunction {
  std::uint32_t library, name;
};
extern "C" const LateFunction assay_late_table[];
extern "C" const char assay_late_names[];

// Throws Error::input where the library is not installed.
extern "C" void* assay_late_function(std::size_t number) {
  static std::mutex mutex;
  static auto& libraries = *new std::map<std::uint32_t, assay::LoadedLibrary>;  // called until the very end
  const std::lock_guard lock(mutex);
  const LateFunction& late = assay_late_table[number];
  const auto [library, is_new] = libraries.try_emplace(late.library, assay_late_names + late.library);
  return reinterpret_cast<void*>(library->second.function<void()>(assay_late_names + late.name));
}
