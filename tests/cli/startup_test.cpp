// A start costs what the loader has to bring in: libraries that few commands need are opened where they are needed
// (core/system/loaded_library.h, cmake/AssayLateLibraries.cmake).
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <string>

#include "core/system/sanitizer.h"
#include "tests/support/paths.h"
#include "tests/support/support.h"

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

#if defined(__x86_64__)
TEST(Startup, LoadsNoLibraryThatACommandMayDoWithout) {
  if (kSanitized) GTEST_SKIP() << "SKIPPED: libraries are linked under sanitizers";
  const std::string loaded = loaded_at_start();
  ASSERT_NE(loaded.find("libfmt.so"), std::string::npos) << loaded;
  for (const char* library :
       {"libcrypto", "libssl", "libgit2", "libcpp-httplib", "libtbb", "libpcre2", "libz", "libutf8proc"})
    EXPECT_EQ(loaded.find(library), std::string::npos) << loaded;
}

TEST(Startup, ALibraryThatIsNotInstalledIsNamedWhereItIsNeeded) {
  if (kSanitized) GTEST_SKIP() << "SKIPPED: libraries are linked under sanitizers";
  const fs::path preload = test::plugin_dir().parent_path() / "preload/missing_library.so";
  const auto result =
      test::assay({"run", (test::source_dir() / "data/tinylm").string(), "--prompt", "a"},
                  {.environment = {"LD_PRELOAD=" + preload.string(), "ASSAY_MISSING=libtbb"}});
  EXPECT_EQ(result.exit_code, 2) << result.err;
  EXPECT_NE(result.err.find("libtbb.so.12 cannot be opened"), std::string::npos) << result.err;
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
}
#endif

}  // namespace
}  // namespace assay
