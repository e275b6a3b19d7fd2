// A shared library that is opened when it is first needed: one that a command in ten or a kernel in hundred asks for costs
// every start milliseconds where the program is linked with it.
#pragma once

#include <string>

namespace assay {

class LoadedLibrary {
 public:
  // Throws Error::input where this machine has no such library.
  explicit LoadedLibrary(const std::string& name);
  template <class Function>
  Function* function(const char* name) const {
    return reinterpret_cast<Function*>(find(name));
  }

 private:
  void* find(const char* name) const;  // throws Error::input where there is none of the name
  std::string name_;
  void* handle_;  // never closed: its threads may outlive every caller
};

}  // namespace assay
