// A model's weights as they are opened: what is refused, how large they are, whose head it is.
#include "refimpl/models/weights.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <span>

#include "core/formats/safetensors.h"
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

// llama ties its head to the embeddings. Here its file holds a head as well: `head` made of the embeddings' bytes.
void store_head(const fs::path& folder, const std::function<void(std::string&)>& change) {
  const fs::path path = folder / "model.safetensors";
  const std::string file = test::read_file(path);
  const auto header = safetensors::parse_header(std::as_bytes(std::span(file)), file.size(),
                                                safetensors::Reading::strict, path);
  std::vector<safetensors::Tensor> tensors = header.tensors;
  const auto table = std::find_if(tensors.begin(), tensors.end(), [](const auto& tensor) {
    return tensor.name == "model.embed_tokens.weight";
  });
  ASSERT_NE(table, tensors.end());
  std::string bytes = file.substr(header.buffer_offset());
  std::string head = bytes.substr(table->begin, table->bytes());
  change(head);
  safetensors::Tensor stored = *table;
  stored.name = "lm_head.weight";
  tensors.push_back(stored);
  test::write_file(path, safetensors::serialize_header(tensors, {}) + bytes + head);
}

TEST(Weights, ATiedHeadThatIsStoredIsItsOwnWhereItDiffers) {
  const auto own = [](const std::function<void(std::string&)>& change) {
    const test::TempDir dir;
    copy_model(model("llama"), dir / "m");
    store_head(dir / "m", change);
    return Weights(dir / "m", 1).has_own_head();
  };
  EXPECT_FALSE(Weights(model("llama"), 1).has_own_head());
  EXPECT_FALSE(own([](std::string&) {}));
  EXPECT_TRUE(own([](std::string& head) { head.front() ^= 1; }));
  EXPECT_TRUE(own([](std::string& head) { head.back() ^= 1; }));
}

}  // namespace
}  // namespace assay
