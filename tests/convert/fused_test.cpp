// Matrices that engines fuse: one scale for all of a set where a format has one for the whole tensor, and the
// check of checkpoints whose makers forgot it.
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "core/model/config.h"
#include "core/model/fused_sets.h"
#include "core/model/module_tree.h"
#include "core/model/stored_form.h"
#include "tests/convert/convert_support.h"
#include "tests/support/paths.h"

namespace assay {
namespace {

using test::assay;
using test::expect_ok;
using test::TempDir;

using test::kData;
constexpr const char* kMembers = "[qkv]_proj|gate_proj|up_proj|q_a_proj|kv_a_proj";

TEST(Fused, AreQuantizedAsTheOneMatrixThatEnginesMakeOfThem) {
  test::expect_digests(kData / "fixtures/convert/FUSED.tsv", 6, {"--include", kMembers});
}

// The bytes of every tensor whose name ends so.
std::map<std::string, std::string> ending_with(const fs::path& folder, std::string_view ending) {
  const Checkpoint checkpoint = open_checkpoint(folder, 1);
  std::map<std::string, std::string> found;
  for (const CheckpointTensor& tensor : checkpoint.tensors) {
    if (tensor.name.ends_with(ending)) found[tensor.name] = test::stored_bytes(checkpoint, tensor);
  }
  return found;
}

// Members in different files: each file's writer finds the same scale.
TEST(Fused, ShareTheirScaleAcrossShards) {
  const TempDir dir;
  for (const char* spec : {"nvfp4", "fp8:tensor"}) {
    const fs::path whole = dir / (std::string(spec).substr(0, 3) + "-whole"),
                   cut = dir / (std::string(spec).substr(0, 3) + "-cut");
    const std::vector<std::string> common = {"--to", spec, "--include", kMembers};
    std::vector<std::string> first = {"convert", kData / "models/llama", whole},
                             second = {"convert", kData / "models/llama", cut, "--max-shard-size", "2KB"};
    first.insert(first.end(), common.begin(), common.end());
    second.insert(second.end(), common.begin(), common.end());
    expect_ok(assay(first));
    expect_ok(assay(second));
    EXPECT_GT(open_checkpoint(cut, 1).files.size(), 10u);
    test::expect_same_tensors(whole, cut);
  }
}

// Doubles the scale of one member and halves what it multiplies: the checkpoint decodes as before, and an
// engine that takes the larger scale for all runs other weights.
void set_apart(const fs::path& folder, const std::string& module) {
  const fs::path file = folder / "model.safetensors";
  std::string bytes = test::read_file(file);
  const Checkpoint checkpoint = open_checkpoint(folder, 1);
  const CheckpointTensor& global = *checkpoint.find(module + ".weight_scale_2");
  const CheckpointTensor& blocks = *checkpoint.find(module + ".weight_scale");
  float scale = 0;
  std::memcpy(&scale, &bytes[global.offset], sizeof scale);
  scale *= 2;
  std::memcpy(&bytes[global.offset], &scale, sizeof scale);
  for (std::uint64_t i = 0; i < blocks.bytes; ++i) {
    char& code = bytes[blocks.offset + i];  // E4M3, normal: one exponent less
    ASSERT_GE(static_cast<unsigned char>(code), 0x10);
    code = static_cast<char>(code - 0x08);
  }
  test::write_file(file, bytes);
}

TEST(Fused, ScalesThatDifferAreFoundByCheckAndEqual) {
  const TempDir dir;
  const fs::path good = dir / "good", apart = dir / "apart";
  expect_ok(assay(
      {"convert", kData / "models/llama", good, "--to", "nvfp4,layout=modelopt", "--include", "[qkv]_proj"}));
  fs::copy(good, apart);
  set_apart(apart, "model.layers.1.self_attn.k_proj");

  const auto alike = assay({"convert", "--equal", good, good});
  expect_ok(alike);
  const auto differs = assay({"convert", "--equal", good, apart});
  EXPECT_EQ(differs.exit_code, 1) << differs.out;
  EXPECT_NE(differs.out.find("fused by engines"), std::string::npos) << differs.out;
  EXPECT_NE(differs.out.find("model.layers.1.self_attn.{q_proj, k_proj, v_proj}"), std::string::npos);
  expect_ok(assay({"convert", "--equal", apart, apart}));  // the same to engines, too

  const auto checked = assay({"check", apart, "--json", "-"});
  EXPECT_EQ(checked.exit_code, 1) << checked.out << checked.err;
  bool found = false;
  const auto report = nlohmann::json::parse(checked.out);
  for (const auto& stage : report.at("stages")) {
    if (stage.at("name") != "fused") continue;
    found = true;
    EXPECT_EQ(stage.at("status"), "FAILED");
    EXPECT_DOUBLE_EQ(stage.at("detail").at("largest_error").get<double>(), 1.0);  // q and v become twice
  }
  EXPECT_TRUE(found) << checked.out;
  EXPECT_NE(checked.out.find("fused.scales_differ"), std::string::npos);
}

// FP8 under scales of its own for each member is what engines round again: told, and no fault.
TEST(Fused, RoundingAgainIsANoteOfEqual) {
  const TempDir dir;
  const fs::path k = dir / "k", all = dir / "all", bf16 = dir / "bf16";
  expect_ok(assay({"convert", kData / "models/llama", k, "--to", "fp8:tensor", "--include", "k_proj"}));
  expect_ok(assay({"convert", kData / "models/llama", all, "--to", "fp8:tensor", "--include", "[qkv]_proj"}));
  // k's own scale among the shared ones.
  const auto own = ending_with(k, "layers.0.self_attn.k_proj.weight_scale").begin()->second;
  const Checkpoint checkpoint = open_checkpoint(all, 1);
  const CheckpointTensor& scale = *checkpoint.find("model.layers.0.self_attn.k_proj.weight_scale");
  std::string bytes = test::read_file(all / "model.safetensors");
  EXPECT_NE(test::stored_bytes(checkpoint, scale), own);
  bytes.replace(scale.offset, own.size(), own);
  test::write_file(all / "model.safetensors", bytes);
  expect_ok(assay({"convert", all, bf16, "--to", "f32"}));
  const auto equal = assay({"convert", "--equal", all, bf16});
  expect_ok(equal);
  EXPECT_NE(equal.out.find("rounded again"), std::string::npos) << equal.out;
}

// Static scales of activations beside what `model` holds, a float each.
void add_input_scales(const fs::path& model, const fs::path& folder, const std::string& suffix,
                      const std::map<std::string, float>& scales) {
  std::vector<test::TensorBytes> tensors;
  const Checkpoint checkpoint = open_checkpoint(model, 1);
  for (const CheckpointTensor& tensor : checkpoint.tensors)
    tensors.push_back({tensor.name, tensor.type, tensor.shape, test::stored_bytes(checkpoint, tensor)});
  for (const auto& [module, scale] : scales)
    tensors.push_back({module + suffix, ElementType::F32, {1}, test::float32_bytes(std::span(&scale, 1))});
  test::write_checkpoint(folder, tensors, test::read_file(model / "config.json"));
}

nlohmann::json fused_stage(const fs::path& model) {
  const auto checked = assay({"check", model, "--json", "-"});
  EXPECT_EQ(checked.exit_code, 0) << checked.out << checked.err;
  const auto report = nlohmann::json::parse(checked.out);
  for (const auto& stage : report.at("stages")) {
    if (stage.at("name") == "fused") return stage;
  }
  ADD_FAILURE() << checked.out;
  return {};
}

// vLLM: input_scale.max() of the members.
TEST(Fused, InputScalesThatDifferAreWarnedOf) {
  const TempDir dir;
  const std::string q = "model.layers.0.self_attn.q_proj", k = "model.layers.0.self_attn.k_proj",
                    v = "model.layers.0.self_attn.v_proj";
  struct Case {
    const char *to, *suffix, *effect;
  };
  for (const Case& c : {Case{"fp8:tensor", ".input_scale", "rounded under 4 times its own scale"},
                        Case{"nvfp4", ".input_global_scale", "above 1/4 of the range is cut off"}}) {
    const fs::path plain = dir / "plain", alike = dir / "alike", apart = dir / "apart", copy = dir / "copy";
    expect_ok(assay({"convert", kData / "models/llama", plain, "--to", c.to, "--include", "[qkv]_proj"}));
    add_input_scales(plain, alike, c.suffix, {{q, 0.5F}, {k, 0.5F}, {v, 0.5F}});
    add_input_scales(plain, apart, c.suffix, {{q, 0.5F}, {k, 0.125F}, {v, 0.5F}});

    EXPECT_EQ(fused_stage(alike).at("status"), "PASSED");
    const auto stage = fused_stage(apart);
    EXPECT_EQ(stage.at("detail").at("input_sets"), 1);
    EXPECT_EQ(stage.at("detail").at("input_differing"), 1);
    EXPECT_DOUBLE_EQ(stage.at("detail").at("largest_input_factor").get<double>(), 4);
    EXPECT_NE(stage.dump().find("fused.input_scales_differ"), std::string::npos) << stage.dump(1);
    EXPECT_NE(stage.dump().find(c.effect), std::string::npos) << stage.dump(1);
    EXPECT_NE(stage.dump().find(k + c.suffix), std::string::npos) << stage.dump(1);
    EXPECT_EQ(assay({"check", apart, "--strict"}).exit_code, 1);

    const auto equal = assay({"convert", "--equal", alike, apart});
    expect_ok(equal);
    EXPECT_NE(equal.out.find("inputs of 1 sets of the second"), std::string::npos) << equal.out;
    const auto same = assay({"convert", "--equal", apart, apart});
    expect_ok(same);
    EXPECT_EQ(same.out.find("inputs of"), std::string::npos) << same.out;
    // What is only copied keeps them.
    expect_ok(assay({"convert", apart, copy, "--max-shard-size", "20KB"}));
    test::expect_same_tensors(apart, copy);
    for (const fs::path& made : {plain, alike, apart, copy}) fs::remove_all(made);
  }
}

// FusedMoE.weight_loader of vLLM raises where gate's and up's are more than 1e-5 apart.
TEST(Fused, InputScalesOfAnExpertThatDifferAreRefusedByEngines) {
  const TempDir dir;
  const fs::path plain = dir / "plain", apart = dir / "apart";
  expect_ok(
      assay({"convert", kData / "models/qwen3-moe", plain, "--to", "fp8:tensor", "--include", "experts"}));
  const std::string expert = "model.layers.1.mlp.experts.4.";
  add_input_scales(plain, apart, ".input_scale", {{expert + "gate_proj", 0.5F}, {expert + "up_proj", 0.25F}});
  const auto stage = fused_stage(apart);
  EXPECT_NE(stage.dump().find("refuses to load experts"), std::string::npos) << stage.dump(1);
  EXPECT_NE(stage.dump().find(expert + "{gate_proj, up_proj}"), std::string::npos) << stage.dump(1);
}

// What the trees of the known families call q, k and v, gate and up is known here by name.
TEST(Fused, TheNamesOfEveryFamilyAreKnown) {
  const auto group_of = [](Role role) -> std::string {
    switch (role) {
      case Role::q:
      case Role::k:
      case Role::v: return "qkv";
      case Role::mlp_gate:
      case Role::mlp_up: return "gate and up";
      case Role::q_a:
      case Role::kv_a: return "latent";
      default: return "";
    }
  };
  std::size_t families = 0;
  for (const auto& entry : fs::directory_iterator(kData / "fixtures/configs")) {
    if (entry.path().extension() != ".json") continue;
    const ModuleTree tree = describe(ModelConfig::read(entry.path()));
    ++families;
    std::vector<LogicalTensor> tensors;
    std::map<std::pair<std::string, std::string>, std::vector<std::uint32_t>> wanted;
    for_each_tensor(tree, [&](const std::string& name, const TensorSpec& spec, const TensorIndices&) {
      const bool is_matrix = spec.shape.size() == 2 && !spec.bias && !spec.input_major;
      if (!is_matrix || !name.ends_with(".weight")) return;
      LogicalTensor& tensor = tensors.emplace_back();
      tensor.name = name;
      tensor.shape = spec.shape;
      tensor.rows = spec.shape[0];
      tensor.columns = spec.shape[1];
      const std::string group = group_of(spec.role);
      const std::string parent = name.substr(0, name.rfind('.', name.size() - 8));
      if (!group.empty()) wanted[{parent, group}].push_back(static_cast<std::uint32_t>(tensors.size() - 1));
    });
    std::set<std::vector<std::uint32_t>> found;
    for (const FusedSet& set : find_fused_sets(tensors)) found.insert(set.members);
    for (const auto& [where, of_group] : wanted) {
      const std::vector<std::uint32_t>& members = of_group;
      const bool mixed_inputs = std::any_of(members.begin(), members.end(), [&](std::uint32_t m) {
        return tensors[m].columns != tensors[members.front()].columns;
      });
      if (members.size() < 2 || mixed_inputs) continue;
      EXPECT_TRUE(found.contains(members)) << entry.path() << " " << where.first << " " << where.second;
    }
  }
  EXPECT_GT(families, 15u);
}

}  // namespace
}  // namespace assay
