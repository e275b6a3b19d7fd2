// What many tests need: a scratch folder, the program as a user runs it, and the real-world cases beside the
// tree.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace assay {
namespace fs = std::filesystem;  // as core/system/file.h has it, for tests that need nothing else of that
}

namespace assay::test {

// A fresh folder under $TMPDIR, removed with everything in it.
class TempDir {
 public:
  explicit TempDir(const fs::path& where = fs::temp_directory_path());
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  ~TempDir();
  const fs::path& path() const { return path_; }
  fs::path operator/(std::string_view name) const { return path_ / name; }

 private:
  fs::path path_;
};

// Where files are made fastest: /dev/shm, or where there is none the folder for temporary files.
fs::path memory_folder();

// Creates parent folders as needed.
void write_file(const fs::path& path, std::string_view contents);
std::string read_file(const fs::path& path);

struct ProcessResult {
  int exit_code = -1;  // 128 + n when killed by signal n
  std::string out, err;
};
struct ProcessOptions {
  fs::path directory;                    // working directory; empty: unchanged
  std::vector<std::string> environment;  // "NAME=value", added to ours
  std::string input;                     // standard input
  double timeout_seconds = 120;
};
// argv[0] is looked up in PATH; no shell.
ProcessResult run(const std::vector<std::string>& argv, const ProcessOptions& options = {});
// The built program: assay({"verify", path}).
ProcessResult assay(std::vector<std::string> arguments, const ProcessOptions& options = {});
bool have_program(const std::string& name);

// A safetensors file as bytes: u64 length, `json`, `buffer`.
std::string safetensors_bytes(std::string_view json, std::string_view buffer);

// The real inputs none of us made (their README says what); $ASSAY_CASES, else ../shared/cases.
fs::path cases();

// In a test body: ASSAY_CASE_OR_SKIP(path, "lfs/DeepSeek-R1");
#define ASSAY_CASE_OR_SKIP(variable, relative)                                \
  const std::filesystem::path variable = ::assay::test::cases() / (relative); \
  if (!std::filesystem::exists(variable))                                     \
  GTEST_SKIP() << "SKIPPED: ../shared/cases absent (" << (relative) << ")"

#define ASSAY_PROGRAM_OR_SKIP(name) \
  if (!::assay::test::have_program(name)) GTEST_SKIP() << "SKIPPED: no " << (name)

}  // namespace assay::test
