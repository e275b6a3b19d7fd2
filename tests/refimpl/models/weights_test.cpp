// A model's weights as they are opened: what is refused, how large they are, whose head it is.
#include "refimpl/models/weights.h"

#include <gtest/gtest.h>

#include <cstring>

#include "core/system/error.h"
#include "tests/support/paths.h"
#include "tests/support/support.h"

namespace assay {
namespace {

fs::path model(const std::string& name) {
  return test::source_dir() / "data/models" / name;
}

void copy_model(const fs::path& from, const fs::path& to) {
  fs::create_directories(to);
  for (const auto& entry : fs::directory_iterator(from)) {
    if (entry.is_regular_file()) fs::copy_file(entry.path(), to / entry.path().filename());
  }
}

std::uint64_t weight_bytes(const fs::path& folder) {
  std::uint64_t sum = 0;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() == ".safetensors") sum += entry.file_size();
  }
  return sum;
}

TEST(Weights, AreAsManyBytesAsTheirFiles) {
  for (const std::string name : {"llama", "deepseek-v3"})
    EXPECT_EQ(Weights(model(name), 1).bytes(), weight_bytes(model(name))) << name;
}

// The same tensors in a second file that no index names.
TEST(Weights, OfACheckpointWithErrorsAreRefused) {
  const test::TempDir dir;
  copy_model(model("llama"), dir / "m");
  ASSERT_TRUE(fs::exists(dir / "m/model.safetensors"));
  EXPECT_NO_THROW(Weights(dir / "m", 1));
  fs::copy_file(dir / "m/model.safetensors", dir / "m/more.safetensors");
  EXPECT_THROW(Weights(dir / "m", 1), Error);
}

}  // namespace
}  // namespace assay
