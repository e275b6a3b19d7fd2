// A start costs what the loader has to bring in: libraries that few commands need are opened where they are needed.
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <memory>
#include <string>

#include "core/system/sanitizer.h"
#include "tests/support/paths.h"

namespace assay {
namespace {

// What the loader would bring in (ld.so(8), LD_TRACE_LOADED_OBJECTS).
std::string loaded_at_start() {
  const std::string command = "LD_TRACE_LOADED_OBJECTS=1 '" + test::assay_binary() + "' --version";
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), pclose);
  std::string text;
  std::array<char, 4096> part{};
  while (pipe && fgets(part.data(), part.size(), pipe.get()) != nullptr) text += part.data();
  return text;
}

TEST(Startup, LoadsNoLibraryOfMathematics) {
  if (kSanitized) GTEST_SKIP() << "SKIPPED: libraries are linked under sanitizers";
  const std::string loaded = loaded_at_start();
  ASSERT_NE(loaded.find("libc.so"), std::string::npos) << loaded;
  for (const char* library : {"libopenblas", "libdnnl", "libgfortran", "libOpenCL"})
    EXPECT_EQ(loaded.find(library), std::string::npos) << loaded;
}

}  // namespace
}  // namespace assay
