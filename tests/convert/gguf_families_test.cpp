// Every family that is written as GGUF, held to the files that llama.cpp's converter makes of the same small model
// (data/make_gguf_families.py): their weights are a rule that both sides know, so that no checkpoint need lie here.
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "core/model/gguf_rules.h"
#include "core/model/module_tree.h"
#include "tests/convert/convert_support.h"
#include "tests/support/paths.h"

namespace assay {
namespace {

using test::assay;
using test::expect_ok;
using test::TempDir;

const fs::path kFixtures = test::source_dir() / "data/fixtures/gguf_families";

// Numbers that follow from a tensor's name: make_gguf_families.py's words_of.
std::vector<std::uint64_t> words_of(const std::string& name, std::uint64_t count) {
  std::uint64_t seed = 0xCBF29CE484222325;
  for (const unsigned char byte : name) seed = (seed ^ byte) * 0x100000001B3;
  std::vector<std::uint64_t> words(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    std::uint64_t x = seed + i * 0x9E3779B97F4A7C15;
    x ^= x >> 33;
    x *= 0xFF51AFD7ED558CCD;
    words[i] = x ^ x >> 33;
  }
  return words;
}

// Its weight_of: multiples of 1/256 between -1/2 and 1/2, in bfloat16 without loss.
std::string weight_of(const std::string& name, std::uint64_t count) {
  std::string bytes;
  for (const std::uint64_t x : words_of(name, count)) {
    const bool exponent =
        name.ends_with("A_log");  // of few values, of which torch's exp is the nearest float
    const float value =
        exponent ? (static_cast<float>(x >> 62) - 2) / 4 : (static_cast<float>(x >> 56) - 128) / 256;
    std::uint32_t bits = 0;
    std::memcpy(&bits, &value, sizeof bits);
    bytes += static_cast<char>(bits >> 16 & 0xFF);
    bytes += static_cast<char>(bits >> 24);
  }
  return bytes;
}

// Its codes_of: of gpt-oss' MXFP4 pairs of codes, and exponents from 118 to 125.
std::string codes_of(const std::string& name, std::uint64_t count) {
  std::string bytes;
  for (const std::uint64_t x : words_of(name, count))
    bytes += static_cast<char>(name.ends_with("_scales") ? 118 + (x >> 61) : x >> 56);
  return bytes;
}

struct SavedTensor {
  std::string name, type;
  std::vector<std::uint64_t> shape;
  std::string bytes;
};
// A tensor as it is saved: as it is, or an expert stack of gpt-oss in blocks.
std::vector<SavedTensor> saved_tensors(const std::string& name, const TensorSpec& spec, bool in_mxfp4) {
  if (!in_mxfp4 || spec.stacked == 0 || spec.bias)
    return {{name, "BF16", spec.shape, weight_of(name, element_count(spec.shape).value())}};
  const std::vector<std::uint64_t> scales = {spec.shape[0], spec.shape[2], spec.shape[1] / 32};
  std::vector<std::uint64_t> blocks = scales;
  blocks.push_back(16);
  return {{name + "_blocks", "U8", blocks, codes_of(name + "_blocks", element_count(blocks).value())},
          {name + "_scales", "U8", scales, codes_of(name + "_scales", element_count(scales).value())}};
}

// The checkpoint that the module tree of the config describes.
void make_model(const std::string& name, const fs::path& folder) {
  const std::string json = test::read_file(kFixtures / (name + ".json"));
  fs::create_directories(folder);
  test::write_file(folder / "config.json", json);
  const ModuleTree tree = describe(ModelConfig::read(folder / "config.json"));
  nlohmann::json header = nlohmann::json::object();
  std::string data;
  const TensorLookup lookup(tree);
  for_each_tensor(tree, [&](const std::string& tensor, const TensorSpec& spec, const TensorIndices&) {
    const auto found = lookup.find(tensor);
    const bool saved = spec.storage == Storage::own && spec.part != Part::mtp && found && !found->mtp;
    if (!saved) return;
    for (const SavedTensor& one : saved_tensors(tensor, spec, json.find("\"mxfp4\"") != std::string::npos)) {
      const std::size_t begin = data.size();
      data += one.bytes;
      header[one.name] = {{"dtype", one.type}, {"shape", one.shape}, {"data_offsets", {begin, data.size()}}};
    }
  });
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const std::uint64_t length = text.size();
  test::write_file(folder / "model.safetensors",
                   std::string(reinterpret_cast<const char*>(&length), sizeof length) + text + data);
}

struct Expected {
  std::string model, type, digest;
};
std::vector<Expected> expected_files() {
  std::vector<Expected> files;
  std::istringstream lines(test::read_file(kFixtures / "EXPECTED.tsv"));
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with('#')) continue;
    Expected& file = files.emplace_back();
    std::istringstream(line) >> file.model >> file.type >> file.digest;
  }
  return files;
}

TEST(GgufFamilies, FilesAreLlamaCpps) {
  const char* kept = std::getenv("ASSAY_KEEP_GGUF");  // a folder, to look at what differs
  const TempDir dir;
  std::set<std::string> made;
  for (const Expected& file : expected_files()) {
    if (made.insert(file.model).second) make_model(file.model, dir / file.model);
    const fs::path out =
        (kept == nullptr ? dir.path() : fs::path(kept)) / (file.model + "." + file.type + ".gguf");
    fs::remove(out);
    const auto result =
        assay({"convert", dir / file.model, out, "--to", "gguf:" + file.type, "--tokenizer-pre", "none"});
    EXPECT_EQ(result.exit_code, 0) << file.model << " " << file.type << result.err;
    if (result.exit_code == 0) {
      EXPECT_EQ(test::sha256(test::read_file(out)), file.digest) << file.model << " " << file.type;
    }
  }
  EXPECT_GE(made.size(), 86u);
}

TEST(GgufFamilies, ThatTowersAreLeftOutIsSaid) {
  const TempDir dir;
  for (const std::string model : {"qwen3_vl", "gemma"}) {
    make_model(model, dir / model);
    const auto result = assay(
        {"convert", dir / model, dir / (model + ".gguf"), "--to", "gguf:f16", "--tokenizer-pre", "none"});
    expect_ok(result);
    EXPECT_EQ(
        (result.out + result.err).find("vision, audio and projectors are left out") != std::string::npos,
        model == "qwen3_vl");
  }
}

// llama.cpp takes 1 / √(head width) for the scores of a Gemma, but for those as deep as the 27 B models.
TEST(GgufFamilies, AScaleThatNoKeyKeepsIsRefused) {
  const TempDir dir;
  for (const std::string model : {"gemma2", "gemma3"}) {
    make_model(model, dir / model);
    nlohmann::json config = nlohmann::json::parse(test::read_file(dir / model / "config.json"));
    config["query_pre_attn_scalar"] = 256;
    test::write_file(dir / model / "config.json", config.dump());
    const auto result = assay(
        {"convert", dir / model, dir / (model + ".gguf"), "--to", "gguf:f16", "--tokenizer-pre", "none"});
    EXPECT_EQ(result.exit_code, 1) << result.err;
    EXPECT_NE(result.err.find("query_pre_attn_scalar is 256, which GGUF cannot say: llama.cpp would take 20"),
              std::string::npos)
        << result.err;
  }
}

// Of every family whose GGUF can be read back --equal finds each weight again.
TEST(GgufFamilies, AreReadBack) {
  const TempDir dir;
  int read = 0;
  std::set<std::string> seen;
  for (const Expected& file : expected_files()) {
    if (!seen.insert(file.model).second) continue;
    SCOPED_TRACE(file.model);
    make_model(file.model, dir / file.model);
    const ModelConfig config = ModelConfig::read(dir / file.model / "config.json");
    const GgufFamily* family = gguf_family_of(describe(config));
    ASSERT_NE(family, nullptr);
    if (!can_be_read_back(*family)) continue;
    const fs::path gguf = dir / (file.model + ".gguf");
    expect_ok(assay({"convert", dir / file.model, gguf, "--to", "gguf:f32", "--tokenizer-pre", "none"}));
    ++read;
    const auto equal = assay({"convert", "--equal", dir / file.model, gguf, "--drop-mtp"});
    EXPECT_EQ(equal.exit_code, 0) << equal.out << equal.err;
  }
  EXPECT_GE(read, 18);
}

}  // namespace
}  // namespace assay
