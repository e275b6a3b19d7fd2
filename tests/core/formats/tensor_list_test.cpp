// Lists of tensors in the forms that programs print.
#include "core/formats/tensor_list.h"

#include <gtest/gtest.h>

#include <string>

#include "core/system/error.h"

namespace assay {
namespace {

const std::string kA(64, 'a'), kB(64, 'b'), kShort(16, 'a');

std::string told(const std::string& text) {
  std::string all;
  for (const ListedTensor& tensor : parse_tensor_list(text, "dump").tensors)
    for (const std::uint64_t rank : tensor.ranks)
      all += tensor.name + "@" + std::to_string(rank) + "=" + tensor.digits.substr(0, 1) + " ";
  return all;
}

TEST(TensorList, ReadsEveryForm) {
  EXPECT_EQ(told(R"({"x.weight": ")" + kA + R"(", "y": ")" + kB + "\"}"), "x.weight@0=a y@0=b ");
  EXPECT_EQ(told(R"({"1:x": ")" + kA + R"(", "dp=0/pp=1/tp=3/ep=0:x": ")" + kB + "\"}"), "x@1=a x@3=b ");
  EXPECT_EQ(told(R"({"tp=2/pp=0:x": ")" + kA + "\"}"), "x@2=a ");
  EXPECT_EQ(told(R"([{"x": ")" + kA + R"("}, {"x": ")" + kB + "\"}]"), "x@0=a x@1=b ");
  EXPECT_EQ(told(R"({"ranks": [{"checksums": {"x": ")" + kShort +
                 R"("}, "per_gpu_checksum": "z", "parallelism_info": {"tp_rank": 5, "tp_size": 8}}]})"),
            "x@5=a ");
  EXPECT_EQ(told("{\"name\": \"x\", \"sha256\": \"" + kA + "\"}\n{\"name\": \"x\", \"sha256\": \"" + kB +
                 "\", \"rank\": 2}\n"),
            "x@0=a x@2=b ");
  EXPECT_EQ(told(kA + "  x.weight\n# nothing\n" + kB + " *a name\n"), "x.weight@0=a a name@0=b ");
  EXPECT_EQ(
      told(
          R"({"schema": "assay.tensors/1", "engine": "vllm", "not_told": [], "tensors": [{"name": "x", "ranks": [0, 1], "sha256": ")" +
          kA + "\"}]}"),
      "x@0=a x@1=a ");
}

TEST(TensorList, ANameWithAColonIsNoRank) {
  EXPECT_EQ(told(R"({"module:x": ")" + kA + "\"}"), "module:x@0=a ");
  EXPECT_EQ(told(R"({"pp=1:x": ")" + kA + "\"}"), "pp=1:x@0=a ");
  EXPECT_EQ(told(R"({"99999999999999999999:x": ")" + kA + "\"}"), "99999999999999999999:x@0=a ");
}

TEST(TensorList, ReplicasThatDifferAreTold) {
  const auto list = parse_tensor_list(
      R"({"dp=0/pp=0/tp=0/ep=0:x": ")" + kA + R"(", "dp=1/pp=0/tp=0/ep=0:x": ")" + kB + "\"}", "dump");
  EXPECT_EQ(list.tensors.size(), 1u);
  ASSERT_EQ(list.contradicted.size(), 1u);
  EXPECT_EQ(list.contradicted[0], "x");
}

TEST(TensorList, RefusesTheRest) {
  for (const std::string& text :
       {std::string(), std::string("{}"), std::string("[]"), std::string("{\"x\": 1}"), std::string("12 x"),
        std::string("{\"x\": \"abc\"}"), "[" + std::string("1") + "]", kA, std::string(200, '['),
        std::string(R"({"schema": "other/1"})"), std::string(R"({"schema": "assay.tensors/1"})"),
        R"({"checksums": [")" + kA + "\"]}", R"({"name": "x", "rank": -1, "sha256": ")" + kA + "\"}",
        R"({"name": "x", "rank": 1e9, "sha256": ")" + kA + "\"}"})
    EXPECT_THROW(parse_tensor_list(text, "dump"), Error) << text;
}

}  // namespace
}  // namespace assay
