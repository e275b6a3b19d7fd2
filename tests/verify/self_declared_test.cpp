// What safetensors files say of their own tensors: never more than consistent.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/formats/stream_digest.h"
#include "tests/support/paths.h"
#include "tests/support/support.h"

namespace assay::test {
namespace {

class SelfDeclared : public ::testing::Test {
 protected:
  // A file of one tensor of eight bytes whose header says `value` of it.
  void write(const std::string& key, const std::string& value, const std::string& buffer = "tensors!") const {
    write_file(file(), safetensors_bytes(R"({"__metadata__":{")" + key + R"(":")" + value +
                                             R"("},"a":{"dtype":"U8","shape":[8],"data_offsets":[0,8]}})",
                                         buffer));
  }
  fs::path file() const { return dir_ / "model.safetensors"; }
  static std::string right() {
    const std::string_view buffer = "tensors!";
    return digest_of(DigestKind::sha256, std::as_bytes(std::span(buffer))).hex();
  }
  ProcessResult verify(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> words = {"verify", file(), "--no-git"};
    words.insert(words.end(), more.begin(), more.end());
    return assay(words);
  }
  static bool says(const ProcessResult& result, std::string_view words) {
    return (result.out + result.err).find(words) != std::string::npos;
  }
  TempDir dir_;
};

TEST_F(SelfDeclared, IsConsistentAndProvesNothing) {
  for (const auto& [key, value] : std::vector<std::pair<std::string, std::string>>{
           {"modelspec.hash_sha256", "0x" + right()}, {"sshs_model_hash", right()}}) {
    write(key, value);
    const auto result = verify();
    EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
    EXPECT_TRUE(says(result, "is consistent with the " + key) && says(result, "WELL FORMED") &&
                says(result, "what was compared proves less"))
        << result.out;
    EXPECT_EQ(verify({"--require-digests"}).exit_code, 1);
    write(key, value, "tensors?");
    const auto changed = verify();
    EXPECT_EQ(changed.exit_code, 1) << changed.out;
    EXPECT_TRUE(says(changed, "holds other tensors than the " + key)) << changed.out;
    EXPECT_EQ(verify({"--quick"}).exit_code, 0) << "nothing is hashed";
  }
}

TEST_F(SelfDeclared, AsTheSpecificationsExampleWritesIt) {
  const auto result =
      assay({"verify", source_dir() / "data" / "fixtures" / "stores" / "modelspec.safetensors", "--no-git"});
  EXPECT_EQ(result.exit_code, 0) << result.out;
  EXPECT_TRUE(says(result, "is consistent with the modelspec.hash_sha256 in its own header")) << result.out;
}

TEST_F(SelfDeclared, IsNotAskedWhereSomebodyElseVouches) {
  write("modelspec.hash_sha256", "0x" + std::string(64, '0'));
  const std::string bytes = read_file(file());
  const std::string digest = digest_of(DigestKind::sha256, std::as_bytes(std::span(bytes))).hex();
  EXPECT_EQ(verify({"--sha256", digest}).exit_code, 0);
  EXPECT_EQ(verify().exit_code, 1);
}

TEST_F(SelfDeclared, ThatIsNoHash) {
  write("modelspec.hash_sha256", "0x12");
  const auto result = verify();
  EXPECT_EQ(result.exit_code, 0) << result.out;
  EXPECT_TRUE(says(result, "in its header is no SHA-256: '0x12'")) << result.out;
}

}  // namespace
}  // namespace assay::test
