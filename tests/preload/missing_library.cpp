// A machine on which a library is not installed: the one whose name begins with $ASSAY_MISSING.
#include <dlfcn.h>

#include <cstdlib>
#include <string_view>

extern "C" void* dlopen(const char* name, int mode) {
  using Open = void*(const char*, int);
  static auto* const real = reinterpret_cast<Open*>(::dlsym(RTLD_NEXT, "dlopen"));
  const char* const missing = std::getenv("ASSAY_MISSING");
  const bool is_it = name != nullptr && missing != nullptr && std::string_view(name).starts_with(missing);
  return real(is_it ? "/nowhere/library.so" : name, mode);
}
