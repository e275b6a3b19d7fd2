#include "core/formats/checkpoint.h"

#include <algorithm>

#include "core/system/error.h"
#include "tests/support/support.h"

namespace assay {
namespace {

using test::safetensors_bytes;
using test::TempDir;
using test::write_file;

// A file of U8 tensors of four bytes each.
std::string shard(const std::vector<std::string>& names) {
  std::string json = "{\"__metadata__\":{\"format\":\"pt\"}";
  std::size_t end = 0;
  for (const std::string& name : names) {
    json += ",\"" + name + "\":{\"dtype\":\"U8\",\"shape\":[2,2],\"data_offsets\":[" + std::to_string(end) +
            "," + std::to_string(end + 4) + "]}";
    end += 4;
  }
  return safetensors_bytes(json + "}", std::string(end, '\1'));
}

std::vector<std::string> file_names(const Checkpoint& checkpoint) {
  std::vector<std::string> names;
  for (const CheckpointFile& file : checkpoint.files) names.push_back(file.name);
  return names;
}

std::vector<std::string> codes(const Checkpoint& checkpoint) {
  std::vector<std::string> result;
  for (const Finding& finding : checkpoint.findings) result.push_back(finding.code + " " + finding.file);
  std::sort(result.begin(), result.end());
  return result;
}

using Names = std::vector<std::string>;

TEST(Checkpoint, SingleFile) {
  TempDir folder;
  write_file(folder / "model.safetensors", shard({"a", "b"}));
  write_file(folder / "config.json", "{}");
  const Checkpoint checkpoint = open_checkpoint(folder / "model.safetensors", 2);
  EXPECT_EQ(checkpoint.container, Checkpoint::Container::safetensors);
  EXPECT_EQ(checkpoint.root, folder.path());
  EXPECT_EQ(checkpoint.config, folder / "config.json");
  ASSERT_EQ(checkpoint.tensors.size(), 2u);
  const std::uint64_t buffer = std::filesystem::file_size(folder / "model.safetensors") - 8;
  EXPECT_EQ(checkpoint.tensors[0].offset, buffer);
  EXPECT_EQ(checkpoint.tensors[1].offset, buffer + 4);
  EXPECT_EQ(checkpoint.find("b"), &checkpoint.tensors[1]);
  EXPECT_EQ(checkpoint.find("c"), nullptr);
  EXPECT_EQ(checkpoint.find(""), nullptr);
  EXPECT_EQ(checkpoint.files[0].metadata,
            (std::vector<std::pair<std::string, std::string>>{{"format", "pt"}}));
  EXPECT_TRUE(checkpoint.findings.empty());
}

TEST(Checkpoint, IndexedShardsAndWhatLiesBesideThem) {
  TempDir folder;
  write_file(folder / "model-00001-of-00002.safetensors", shard({"a"}));
  write_file(folder / "model-00002-of-00002.safetensors", shard({"b"}));
  write_file(folder / "consolidated.safetensors", shard({"a", "b"}));
  write_file(folder / "._model-00001-of-00002.safetensors", "AppleDouble");
  write_file(folder / "model.safetensors.index.json",
             R"({"metadata":{"total_size":8},"weight_map":{"a":"model-00001-of-00002.safetensors",)"
             R"("b":"model-00002-of-00002.safetensors"}})");
  const Checkpoint checkpoint = open_checkpoint(folder.path(), 2);
  EXPECT_EQ(file_names(checkpoint),
            (Names{"model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"}));
  EXPECT_EQ(checkpoint.tensors.size(), 2u);
  EXPECT_EQ(codes(checkpoint), Names{"checkpoint.file_ignored consolidated.safetensors"});
  EXPECT_EQ(open_checkpoint(folder / "model.safetensors.index.json", 1).tensors.size(), 2u);
}

// As transformers has it; vLLM and SGLang go by the index.
TEST(Checkpoint, AWholeModelBesideAnIndexIsTheModel) {
  TempDir folder;
  write_file(folder / "model-00001-of-00002.safetensors", shard({"a"}));
  write_file(folder / "model-00002-of-00002.safetensors", shard({"b"}));
  write_file(folder / "model.safetensors", shard({"a", "b", "c"}));
  write_file(folder / "model.safetensors.index.json",
             R"({"weight_map":{"a":"model-00001-of-00002.safetensors",)"
             R"("b":"model-00002-of-00002.safetensors"}})");
  const Checkpoint checkpoint = open_checkpoint(folder.path(), 1);
  EXPECT_EQ(file_names(checkpoint), Names{"model.safetensors"});
  EXPECT_EQ(codes(checkpoint), Names{"index.two_models model.safetensors.index.json"});
  EXPECT_FALSE(has_errors(checkpoint.findings));
  EXPECT_EQ(open_checkpoint(folder / "model.safetensors.index.json", 1).tensors.size(), 2u) << "by its name";
  // One that the index names is a shard of it.
  write_file(folder / "model.safetensors.index.json",
             R"({"weight_map":{"a":"model.safetensors","b":"model.safetensors","c":"model.safetensors"}})");
  EXPECT_EQ(file_names(open_checkpoint(folder.path(), 1)), Names{"model.safetensors"});
  // Without an index it is the model, too.
  fs::remove(folder / "model.safetensors.index.json");
  const Checkpoint unindexed = open_checkpoint(folder.path(), 1);
  EXPECT_EQ(file_names(unindexed), Names{"model.safetensors"});
  EXPECT_EQ(codes(unindexed), (Names{"checkpoint.file_ignored model-00001-of-00002.safetensors",
                                     "checkpoint.file_ignored model-00002-of-00002.safetensors"}));
}

TEST(Checkpoint, NoTensorAtAllIsAnError) {
  TempDir folder;
  write_file(folder / "model.safetensors", shard({}));
  EXPECT_EQ(codes(open_checkpoint(folder.path(), 1)), Names{"checkpoint.no_tensors model.safetensors"});
  EXPECT_TRUE(has_errors(open_checkpoint(folder / "model.safetensors", 1).findings));
  fs::remove(folder / "model.safetensors");
  write_file(folder / "model-00001-of-00001.safetensors", shard({"a"}));
  write_file(folder / "model.safetensors.index.json", R"({"weight_map":{}})");
  const Checkpoint unlisted = open_checkpoint(folder.path(), 1);
  EXPECT_TRUE(has_errors(unlisted.findings));
  EXPECT_EQ(codes(unlisted), (Names{"checkpoint.file_ignored model-00001-of-00001.safetensors",
                                    "index.empty model.safetensors.index.json"}));
}

TEST(Checkpoint, AnIndexDecidesWhateverTheShardsNumbers) {
  TempDir folder;  // as gpt-oss-20b is published
  std::string map;
  for (const std::string number : {"00000", "00001", "00002"}) {
    const std::string name = "model-" + number + "-of-00002.safetensors";
    write_file(folder / name, shard({"t" + number}));
    map += (map.empty() ? "" : ",") + ("\"t" + number + "\":\"" + name + "\"");
  }
  write_file(folder / "model.safetensors.index.json", "{\"weight_map\":{" + map + "}}");
  const Checkpoint checkpoint = open_checkpoint(folder.path(), 1);
  EXPECT_EQ(checkpoint.tensors.size(), 3u);
  EXPECT_FALSE(has_errors(checkpoint.findings));
  EXPECT_EQ(codes(checkpoint), Names{"index.number_out_of_range model-00000-of-00002.safetensors"});
}

TEST(Checkpoint, ExtraShardsOfTheSameSetAreTakenAndTold) {
  TempDir folder;
  write_file(folder / "model-00001-of-00002.safetensors", shard({"a"}));
  write_file(folder / "model-00002-of-00002.safetensors", shard({"b"}));
  write_file(folder / "model-00001-of-00009.safetensors", shard({"a"}));  // of another download
  write_file(folder / "model.safetensors.index.json",
             R"({"weight_map":{"a":"model-00001-of-00002.safetensors"}})");
  const Checkpoint checkpoint = open_checkpoint(folder.path(), 1);
  EXPECT_EQ(checkpoint.tensors.size(), 2u);
  EXPECT_EQ(codes(checkpoint), (Names{"checkpoint.file_ignored model-00001-of-00009.safetensors",
                                      "index.shard_unlisted model-00002-of-00002.safetensors",
                                      "index.tensor_unlisted model-00002-of-00002.safetensors"}));
}

TEST(Checkpoint, WithoutAnIndexANumberedFamilyIsPreferred) {
  TempDir folder;
  write_file(folder / "model-1-of-3.safetensors", shard({"a"}));
  write_file(folder / "model-3-of-3.safetensors", shard({"b"}));
  write_file(folder / "consolidated.safetensors", shard({"a", "b"}));
  const Checkpoint checkpoint = open_checkpoint(folder.path(), 1);
  EXPECT_EQ(checkpoint.tensors.size(), 2u);
  EXPECT_EQ(codes(checkpoint), (Names{"checkpoint.file_ignored consolidated.safetensors",
                                      "index.number_missing model-2-of-3.safetensors"}));
}

TEST(Checkpoint, SingleFilesAddUpUnlessTheyRepeat) {
  TempDir folder;
  write_file(folder / "model.safetensors", shard({"a"}));
  write_file(folder / "mtp.safetensors", shard({"b"}));
  write_file(folder / "consolidated.safetensors", shard({"a"}));
  EXPECT_EQ(codes(open_checkpoint(folder.path(), 1)),
            Names{"checkpoint.file_ignored consolidated.safetensors"});
  write_file(folder / "mtp.safetensors", shard({"a"}));
  const Checkpoint repeated = open_checkpoint(folder.path(), 1);
  EXPECT_EQ(codes(repeated), (Names{"checkpoint.file_ignored consolidated.safetensors",
                                    "checkpoint.tensor_twice mtp.safetensors"}));
  EXPECT_EQ(repeated.find("a")->file, 0u);
}

TEST(Checkpoint, UnreadableHeadersAreFindingsAmongSeveralAndAnErrorAlone) {
  TempDir folder;
  write_file(folder / "model-1-of-2.safetensors", shard({"a"}));
  write_file(folder / "model-2-of-2.safetensors", "version https://git-lfs.github.com/spec/v1\n");
  const Checkpoint checkpoint = open_checkpoint(folder.path(), 2);
  EXPECT_EQ(checkpoint.tensors.size(), 1u);
  EXPECT_EQ(codes(checkpoint), Names{"checkpoint.unreadable model-2-of-2.safetensors"});
  EXPECT_TRUE(has_errors(checkpoint.findings));
  EXPECT_THROW(open_checkpoint(folder / "model-2-of-2.safetensors", 1), Error);
  EXPECT_THROW(open_checkpoint(folder / "absent", 1), Error);
}

TEST(Checkpoint, EmptyFolderIsAnError) {
  TempDir folder;
  EXPECT_THROW(open_checkpoint(folder.path(), 1), Error);
}

TEST(Checkpoint, HubCacheSnapshotsOfLinks) {
  TempDir folder;
  const std::filesystem::path repository = folder / "models--org--name";
  write_file(repository / "blobs" / "aaaa", shard({"a"}));
  write_file(repository / "refs" / "main", "c0ffee");
  for (const char* commit : {"c0ffee", "00dead"})
    std::filesystem::create_directories(repository / "snapshots" / commit);
  std::filesystem::create_symlink("../../blobs/aaaa",
                                  repository / "snapshots" / "c0ffee" / "model.safetensors");
  EXPECT_EQ(open_checkpoint(repository, 1).tensors.size(), 1u);
  EXPECT_EQ(open_checkpoint(repository / "snapshots" / "c0ffee", 1).tensors.size(), 1u);
  write_file(repository / "refs" / "main",
             "../../..");  // leads nowhere, and two snapshots are left to choose from
  EXPECT_THROW(open_checkpoint(repository, 1), Error);
}

TEST(Checkpoint, DanglingLinkIsAFinding) {
  TempDir folder;
  write_file(folder / "model-1-of-2.safetensors", shard({"a"}));
  std::filesystem::create_symlink("nowhere", folder / "model-2-of-2.safetensors");
  EXPECT_EQ(codes(open_checkpoint(folder.path(), 1)),
            Names{"checkpoint.unreadable model-2-of-2.safetensors"});
}

TEST(CheckpointCases, GgufOfStories260k) {
  ASSAY_CASE_OR_SKIP(path, "models/stories260k/stories260K.gguf");
  const Checkpoint checkpoint = open_checkpoint(path, 1);
  EXPECT_EQ(checkpoint.container, Checkpoint::Container::gguf);
  ASSERT_TRUE(checkpoint.gguf);
  EXPECT_EQ(checkpoint.gguf->text("general.architecture"), "llama");
  const CheckpointTensor* embedding = checkpoint.find("token_embd.weight");
  ASSERT_NE(embedding, nullptr);
  EXPECT_EQ(embedding->shape,
            (std::vector<std::uint64_t>{512, 64}));  // 512 tokens of width 64, outermost first
  EXPECT_EQ(embedding->type, ElementType::F32);
}

}  // namespace
}  // namespace assay
