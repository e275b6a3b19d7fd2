// assay convert from and to GGUF, held to what llama.cpp makes of the same models.
#include <fmt/format.h>

#include <sstream>

#include "convert/convert.h"
#include "convert/gguf_plan.h"
#include "core/formats/gguf.h"
#include "core/system/error.h"
#include "core/system/threads.h"
#include "tests/convert/convert_support.h"
#include "tests/support/paths.h"

namespace assay {
namespace {

using test::assay;
using test::contents;
using test::expect_ok;
using test::expect_same_tensors;
using test::TempDir;

using test::kData;

// Their reference activations lie in the same folders, so the weights are named.
fs::path model_folder(const std::string& name) {
  if (name == "biased" || name == "packed")
    return kData / "fixtures/gguf_export" / name / "model.safetensors";
  return name == "tinylm" ? kData / name : kData / "models" / name / "model.safetensors";
}

// The models of data/models have no tokenizer.
std::vector<std::string> to_gguf(const std::string& model, const fs::path& out, const std::string& type) {
  std::vector<std::string> arguments = {"convert", model_folder(model), out, "--to", "gguf:" + type};
  if (model != "tinylm") arguments.insert(arguments.end(), {"--tokenizer-pre", "none"});
  return arguments;
}

gguf::Header header_of(const fs::path& path) {
  return gguf::read_header(File::open(path));
}

// Before the first piece of work.
bool interrupted_at_once(const fs::path& out, const ConversionPlan& plan, const ConvertOptions& options) {
  set_interrupted(true);
  const ConvertResult result = convert(out, plan, options, ProgressMode::never);
  set_interrupted(false);
  return result.interrupted;
}

TEST(ConvertGguf, FilesAreLlamaCpps) {
  std::istringstream lines(test::read_file(kData / "fixtures/gguf_export/EXPECTED.tsv"));
  const TempDir dir;
  int files = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with('#')) continue;
    std::istringstream fields(line);
    std::string model, type, digest;
    fields >> model >> type >> digest;
    const fs::path out = dir / fmt::format("{}.{}.gguf", model, type);
    if (type.starts_with("again-")) {
      expect_ok(assay({"convert", dir / (model + ".q8_0.gguf"), out, "--to", "gguf:" + type.substr(6),
                       "--allow-requantize"}));
    } else {
      expect_ok(assay(to_gguf(model, out, type)));
    }
    EXPECT_EQ(test::sha256(test::read_file(out)), digest) << model << " " << type;
    ++files;
  }
  EXPECT_GE(files, 52);
}

TEST(ConvertGguf, BackToSafetensorsGivesEveryWeight) {
  for (const std::string model : {"llama", "mistral", "mixtral", "qwen2", "qwen3", "qwen3-moe", "deepseek-v2",
                                  "deepseek-v2-lite", "deepseek-v3", "kimi-k2", "biased"}) {
    const TempDir dir;
    expect_ok(assay(to_gguf(model, dir / "model.gguf", "f32")));
    const auto equal = assay({"convert", "--equal", model_folder(model), dir / "model.gguf", "--drop-mtp"});
    EXPECT_EQ(equal.exit_code, 0) << model << equal.out << equal.err;
    expect_ok(assay({"convert", dir / "model.gguf", dir / "back", "--to", "f32"}));
    const auto again = assay({"convert", "--equal", dir / "model.gguf", dir / "back"});
    EXPECT_EQ(again.exit_code, 0) << model << again.out << again.err;
    const auto config = nlohmann::json::parse(test::read_file(dir / "back/config.json"));
    const auto original =
        nlohmann::json::parse(test::read_file(model_folder(model).parent_path() / "config.json"));
    for (const char* key : {"architectures", "hidden_size", "num_hidden_layers", "num_attention_heads",
                            "rms_norm_eps", "vocab_size"}) {
      // A GGUF does not tell Mistral from Llama.
      const bool told = model != "mistral" || std::string(key) != "architectures";
      if (!original.contains(key) || !told) continue;
      EXPECT_EQ(config.at(key), original.at(key)) << model << " " << key;
    }
  }
}

TEST(ConvertGguf, AChangedWeightIsNamed) {
  const TempDir dir;
  expect_ok(assay(to_gguf("llama", dir / "model.gguf", "f32")));
  std::string bytes = test::read_file(dir / "model.gguf");
  const gguf::Header header = header_of(dir / "model.gguf");
  for (const gguf::Tensor& tensor : header.tensors) {
    if (tensor.name == "blk.1.attn_q.weight")
      bytes[header.data_offset + tensor.offset + 4 * tensor.ne[0] + 2] ^= 1;
  }
  test::write_file(dir / "changed.gguf", bytes);
  const auto result = assay({"convert", "--equal", model_folder("llama"), dir / "changed.gguf"});
  EXPECT_EQ(result.exit_code, 1);
  // Row 1 of a head in pairs is its first row beyond the half.
  EXPECT_NE(result.out.find("model.layers.1.self_attn.q_proj.weight: element"), std::string::npos)
      << result.out;
  EXPECT_NE(result.out.find("DIFFERENT: 1 of"), std::string::npos) << result.out;
}

TEST(ConvertGguf, SameBytesWhateverTheJobs) {
  const TempDir dir;
  for (const char* jobs : {"1", "5"}) {
    auto arguments = to_gguf("deepseek-v3", dir / (std::string(jobs) + ".gguf"), "q4_k_m");
    arguments.insert(arguments.end(), {"-j", jobs});
    expect_ok(assay(arguments));
  }
  EXPECT_EQ(test::read_file(dir / "1.gguf"), test::read_file(dir / "5.gguf"));
}

TEST(ConvertGguf, SplitsHoldTheSameModel) {
  const TempDir dir;
  expect_ok(assay(to_gguf("qwen3", dir / "whole.gguf", "bf16")));
  auto arguments = to_gguf("qwen3", dir / "split.gguf", "bf16");
  arguments.insert(arguments.end(), {"--max-shard-size", "20KB"});
  expect_ok(assay(arguments));
  const gguf::Header whole = header_of(dir / "whole.gguf");
  std::vector<fs::path> parts;
  for (const auto& entry : fs::directory_iterator(dir.path())) {
    if (entry.path().filename().string().starts_with("split-0")) parts.push_back(entry.path());
  }
  std::sort(parts.begin(), parts.end());
  ASSERT_GE(parts.size(), 2u);
  EXPECT_EQ(parts.front().filename(), fmt::format("split-00001-of-{:05}.gguf", parts.size()));
  const gguf::Header first = header_of(parts.front());
  EXPECT_EQ(first.metadata.size(), whole.metadata.size() + 3);
  const auto split = first.split();
  ASSERT_TRUE(split);
  EXPECT_EQ(split->count, parts.size());
  EXPECT_EQ(split->tensors, whole.tensors.size());
  EXPECT_EQ(header_of(parts.back()).metadata.size(), 3u);
  // Merged again by what reads them all.
  expect_ok(assay({"convert", parts.front(), dir / "merged.gguf", "--to", "gguf:f32"}));
  expect_ok(assay({"convert", dir / "whole.gguf", dir / "direct.gguf", "--to", "gguf:f32"}));
  EXPECT_EQ(test::read_file(dir / "merged.gguf"), test::read_file(dir / "direct.gguf"));
  fs::remove(parts.back());
  EXPECT_EQ(assay({"convert", parts.front(), dir / "lame.gguf", "--to", "gguf:f32"}).exit_code, 2);
}

TEST(ConvertGguf, KilledAndResumedGivesTheSameBytes) {
  ASSERT_TRUE(test::have_program("timeout"));
  const TempDir dir;
  expect_ok(assay(to_gguf("tinylm", dir / "whole.gguf", "q4_k_m")));
  const std::string whole = test::read_file(dir / "whole.gguf");
  for (int millisecond = 4; millisecond < 60; millisecond += 7) {
    const TempDir own;
    std::vector<std::string> killed = {"timeout", "-s", "KILL", fmt::format("0.{:03}", millisecond),
                                       test::assay_binary()};
    const auto arguments = to_gguf("tinylm", own / "out.gguf", "q4_k_m");
    killed.insert(killed.end(), arguments.begin(), arguments.end());
    test::run(killed);
    const fs::path out = own / "out.gguf";
    if (!fs::exists(out) || fs::exists(partial_folder(out)) || fs::exists(publication_record(out))) {
      auto resumed = arguments;
      resumed.emplace_back("--resume");
      expect_ok(assay(resumed));
    }
    EXPECT_EQ(test::read_file(own / "out.gguf"), whole) << "killed after " << millisecond << " ms";
    EXPECT_EQ(contents(own.path()).size(), 1u) << "something was left beside it";
  }
}

TEST(ConvertGguf, AForeignFileOfThatNameIsNotTakenForItsOwn) {
  const TempDir dir;
  const auto command = to_gguf("llama", dir / "out.gguf", "q8_0");
  expect_ok(assay(command));
  const std::string whole = test::read_file(dir / "out.gguf");
  ConvertOptions options;
  options.to = "gguf:q8_0";
  const fs::path other = dir / "other.gguf";
  const ConversionPlan plan =
      make_gguf_plan(model_folder("llama"), other, options, {.tokenizer_pre = "none"});
  EXPECT_TRUE(interrupted_at_once(other, plan, options));
  // Somebody else's file of that name is not taken for the conversion's own.
  test::write_file(other, "not ours");
  auto resumed = to_gguf("llama", other, "q8_0");
  resumed.emplace_back("--resume");
  EXPECT_EQ(assay(resumed).exit_code, 1);
  EXPECT_EQ(test::read_file(other), "not ours");
}

TEST(ConvertGguf, ReportIsWrittenAsJson) {
  const TempDir dir;
  auto command = to_gguf("llama", dir / "out.gguf", "q8_0");
  command.insert(command.end(), {"--report", dir / "r.json"});
  expect_ok(assay(command));
  EXPECT_NE(test::read_file(dir / "r.json").find("relative_frobenius"), std::string::npos);
}

TEST(ConvertGguf, ReportIsAPageToo) {
  const TempDir dir;
  auto command = to_gguf("llama", dir / "out.gguf", "q8_0");
  command.insert(command.end(), {"--report", dir / "r.html"});
  expect_ok(assay(command));
  const std::string page = test::read_file(dir / "r.html");
  EXPECT_NE(page.find("to GGUF Q8_0</h1>"), std::string::npos);
  for (const gguf::Tensor& tensor : header_of(dir / "out.gguf").tensors)
    EXPECT_NE(page.find("<td>" + tensor.name + "</td>"), std::string::npos) << tensor.name;
}

TEST(ConvertGguf, FinishedTensorsAreTakenUpFromTheJournal) {
  const TempDir dir;
  expect_ok(assay(to_gguf("llama", dir / "whole.gguf", "q8_0")));
  ConvertOptions options;
  options.to = "gguf:q8_0";
  const fs::path out = dir / "whole2.gguf";
  const ConversionPlan plan = make_gguf_plan(model_folder("llama"), out, options, {.tokenizer_pre = "none"});
  EXPECT_TRUE(interrupted_at_once(out, plan, options));  // a journal, and no tensor in it
  EXPECT_FALSE(fs::exists(out));
  options.resume = true;
  const ConvertResult result = convert(out, plan, options, ProgressMode::never);
  EXPECT_EQ(result.reused, 0u);
  EXPECT_EQ(result.tensor_digests.size(), plan.derived.size());
  EXPECT_EQ(result.file_digests.at("whole2.gguf").hex(), test::sha256(test::read_file(dir / "whole.gguf")));
}

TEST(ConvertGguf, AnotherConversionsPartialFileIsNotTakenUp) {
  const TempDir dir;
  ConvertOptions options;
  options.to = "gguf:q8_0";
  const fs::path out = dir / "out.gguf";
  EXPECT_TRUE(interrupted_at_once(
      out, make_gguf_plan(model_folder("llama"), out, options, {.tokenizer_pre = "none"}), options));
  const auto asked = to_gguf("llama", out, "q8_0");
  EXPECT_EQ(assay(asked).exit_code, 1) << "taken up unasked";
  auto other = to_gguf("llama", out, "f16");
  other.emplace_back("--resume");
  EXPECT_EQ(assay(other).exit_code, 1) << "of another type";
  EXPECT_FALSE(fs::exists(out));
}

TEST(ConvertGguf, RefusesWhatWouldDoHarm) {
  const TempDir dir;
  expect_ok(assay(to_gguf("llama", dir / "q8.gguf", "q8_0")));
  const auto again = assay({"convert", dir / "q8.gguf", dir / "q4.gguf", "--to", "gguf:q4_0"});
  EXPECT_EQ(again.exit_code, 1);
  EXPECT_NE(again.err.find("--allow-requantize"), std::string::npos) << again.err;
  EXPECT_EQ(assay({"convert", dir / "q8.gguf", dir / "q8.gguf", "--to", "gguf:q8_0"}).exit_code, 1);
  EXPECT_EQ(assay({"convert", model_folder("llama"), dir / "x.gguf", "--to", "gguf:q9_z"}).exit_code, 2);
  const auto other =
      assay({"convert", model_folder("axk1"), dir / "x.gguf", "--to", "gguf:f16", "--tokenizer-pre", "none"});
  EXPECT_EQ(other.exit_code, 1);
  EXPECT_NE(other.err.find("not among the families"), std::string::npos) << other.err;
  // A tokenizer is missing, and nobody said that none is wanted.
  const auto bare = assay({"convert", model_folder("llama"), dir / "x.gguf", "--to", "gguf:f16"});
  EXPECT_EQ(bare.exit_code, 1);
  EXPECT_NE(bare.err.find("--tokenizer-pre none"), std::string::npos) << bare.err;
  EXPECT_FALSE(fs::exists(dir / "x.gguf"));
}

TEST(ConvertGguf, ADryRunWritesNothingAndKnowsTheSize) {
  const TempDir dir;
  auto arguments = to_gguf("tinylm", dir / "out.gguf", "q4_k_m");
  expect_ok(assay(arguments));
  const auto bytes = fs::file_size(dir / "out.gguf");
  fs::remove(dir / "out.gguf");
  arguments.insert(arguments.end(), {"--dry-run", "--json", "-"});
  const auto result = assay(arguments);
  expect_ok(result);
  const auto json = nlohmann::json::parse(result.out);
  EXPECT_EQ(json.at("file_bytes"), bytes);
  EXPECT_EQ(json.at("written"), false);
  EXPECT_TRUE(contents(dir.path()).empty());
}

TEST(ConvertGguf, NaNsAreRefusedByName) {
  const TempDir dir;
  expect_ok(assay(to_gguf("llama", dir / "model.gguf", "f32")));
  std::string bytes = test::read_file(dir / "model.gguf");
  const gguf::Header header = header_of(dir / "model.gguf");
  for (const gguf::Tensor& tensor : header.tensors) {
    if (tensor.name == "blk.0.ffn_up.weight")
      bytes.replace(header.data_offset + tensor.offset + 8, 4, "\x00\x00\xC0\x7F", 4);
  }
  test::write_file(dir / "nan.gguf", bytes);
  for (const char* type : {"gguf:q8_0", "gguf:f32"}) {
    const auto result = assay({"convert", dir / "nan.gguf", dir / "out.gguf", "--to", type});
    EXPECT_EQ(result.exit_code, 1) << type;
    EXPECT_NE(result.err.find("blk.0.ffn_up.weight"), std::string::npos) << result.err;
    EXPECT_FALSE(fs::exists(dir / "out.gguf"));
    fs::remove_all(dir / ".out.gguf.assay-partial");
  }
}

TEST(ConvertGguf, StoriesBecomeALlamaFolder) {
  ASSAY_CASE_OR_SKIP(stories, "models/stories260k/stories260K.gguf");
  const TempDir dir;
  expect_ok(assay({"convert", stories, dir / "llama", "--to", "f32"}));
  expect_ok(assay({"convert", "--equal", stories, dir / "llama"}));
  const auto config = nlohmann::json::parse(test::read_file(dir / "llama/config.json"));
  EXPECT_EQ(config.at("architectures").at(0), "LlamaForCausalLM");
  EXPECT_EQ(config.at("hidden_size"), 64);
  EXPECT_EQ(config.at("num_key_value_heads"), 4);
  EXPECT_TRUE(fs::exists(dir / "llama/tokenizer.model"));
  // And there again: every tensor as it was. Metadata name other tools, so files differ.
  expect_ok(assay({"convert", dir / "llama", dir / "again.gguf", "--to", "gguf:f32"}));
  expect_same_tensors(stories, dir / "again.gguf");
}

}  // namespace
}  // namespace assay
