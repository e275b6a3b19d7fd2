// Known models under other names than the published ones: stacked experts of transformers 5, MLX's layouts.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "tests/convert/convert_support.h"
#include "tests/support/made_families.h"
#include "tests/support/paths.h"

namespace assay {
namespace {

using test::assay;
using test::expect_ok;
using test::TempDir;

using test::kData;

using Made = test::TensorBytes;

std::map<std::string, Made> tensors_of(const fs::path& model) {
  std::map<std::string, Made> tensors;
  const Checkpoint checkpoint = open_checkpoint(model, 1);
  for (const CheckpointTensor& tensor : checkpoint.tensors)
    tensors[tensor.name] = {tensor.name, tensor.type, tensor.shape, test::stored_bytes(checkpoint, tensor)};
  return tensors;
}

// One under the other, as torch.cat and torch.stack have it.
Made stacked(const std::map<std::string, Made>& tensors, const std::string& layer, int experts,
             const std::vector<std::string>& members, const std::string& name) {
  Made stack{layer + name, {}, {}, {}};
  for (int expert = 0; expert < experts; ++expert) {
    std::uint64_t rows = 0;
    for (const std::string& member : members) {
      const Made& one = tensors.at(fmt::format("{}experts.{}.{}.weight", layer, expert, member));
      stack.type = one.type;
      rows += one.shape[0];
      stack.bytes += one.bytes;
      stack.shape = {static_cast<std::uint64_t>(experts), rows, one.shape[1]};
    }
  }
  return stack;
}

struct Names {
  std::vector<std::pair<std::vector<std::string>, std::string>> stacks;
};
const Names kTransformers5 = {
    {{{"gate_proj", "up_proj"}, "experts.gate_up_proj"}, {{"down_proj"}, "experts.down_proj"}}};
const Names kMlx = {{{{"gate_proj"}, "switch_mlp.gate_proj.weight"},
                     {{"up_proj"}, "switch_mlp.up_proj.weight"},
                     {{"down_proj"}, "switch_mlp.down_proj.weight"}}};

// A model of data/models with its experts in stacks.
void stack_experts(const std::string& model, const fs::path& folder, const Names& names) {
  const fs::path source = kData / "models" / model;
  const auto tensors = tensors_of(source / "model.safetensors");
  const auto config = nlohmann::json::parse(test::read_file(source / "config.json"));
  const int experts = config.contains("num_experts") ? config.at("num_experts").get<int>()
                                                     : config.at("n_routed_experts").get<int>();
  std::vector<Made> made;
  std::map<std::string, bool> layers;
  for (const auto& [name, tensor] : tensors) {
    const auto at = name.find("experts.");
    if (at == std::string::npos || name.find("shared_experts") != std::string::npos)
      made.push_back(tensor);
    else
      layers[name.substr(0, at)] = true;
  }
  for (const auto& [layer, there] : layers) {
    for (const auto& [members, name] : names.stacks)
      made.push_back(stacked(tensors, layer, experts, members, name));
  }
  test::write_checkpoint(folder, made, test::read_file(source / "config.json"));
}

const fs::path kQwen = kData / "models/qwen3-moe/model.safetensors";

TEST(Layouts, StackedExpertsAreEqualToThoseApart) {
  for (const Names* names : {&kTransformers5, &kMlx}) {
    const TempDir dir;
    stack_experts("qwen3-moe", dir / "stacked", *names);
    expect_ok(assay({"convert", "--equal", dir / "stacked", kQwen}));
    expect_ok(assay({"convert", "--equal", kQwen, dir / "stacked"}));
    // One value of one expert is found, under its own name.
    std::string bytes = test::read_file(dir / "stacked/model.safetensors");
    bytes.back() = static_cast<char>(bytes.back() ^ 0x40);
    test::write_file(dir / "stacked/model.safetensors", bytes);
    const auto result = assay({"convert", "--equal", kQwen, dir / "stacked"});
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_NE(result.out.find("DIFFERENT: 1 of"), std::string::npos) << result.out;
    EXPECT_NE(result.out.find("down_proj.weight: element"), std::string::npos) << result.out;
  }
}

// [experts, a, b] as [experts, b, a], of two bytes a value.
Made turned(const Made& stack) {
  const std::uint64_t rows = stack.shape[1], columns = stack.shape[2];
  Made made{stack.name, stack.type, {stack.shape[0], columns, rows}, std::string(stack.bytes.size(), '\0')};
  const std::size_t width = storage_bytes(stack.type, 1).value();
  for (std::uint64_t expert = 0; expert < stack.shape[0]; ++expert)
    for (std::uint64_t r = 0; r < rows; ++r)
      for (std::uint64_t c = 0; c < columns; ++c) {
        const std::uint64_t base = expert * rows * columns;
        made.bytes.replace((base + c * rows + r) * width, width, stack.bytes,
                           (base + r * columns + c) * width, width);
      }
  return made;
}

// Qwen3-VL's mixtures have stacks that transformers 5 saves turned: whatever is made of them is as published.
TEST(Layouts, TurnedStacksAreTurnedBack) {
  const TempDir dir;
  test::make_family_model("qwen3_vl_moe", dir / "published");
  std::vector<Made> tensors;
  std::size_t stacks = 0;
  for (const auto& [name, tensor] : tensors_of(dir / "published")) {
    const bool is_stack = name.find(".experts.") != std::string::npos;
    tensors.push_back(is_stack ? turned(tensor) : tensor);
    stacks += is_stack ? 1 : 0;
  }
  ASSERT_GE(stacks, 2u);
  test::write_checkpoint(dir / "turned", tensors, test::read_file(dir / "published/config.json"));
  expect_ok(assay({"convert", "--equal", dir / "turned", dir / "published"}));
  expect_ok(assay({"convert", dir / "published", dir / "whole", "--to", "bf16"}));
  expect_ok(assay({"convert", dir / "turned", dir / "back", "--to", "bf16"}));
  test::expect_same_tensors(dir / "whole", dir / "back");
  expect_ok(assay({"check", dir / "turned"}));
  tensors.back().bytes[5] = static_cast<char>(tensors.back().bytes[5] ^ 0x40);
  test::write_checkpoint(dir / "turned", tensors, test::read_file(dir / "published/config.json"));
  EXPECT_EQ(assay({"convert", "--equal", dir / "turned", dir / "published"}).exit_code, 1);
}

TEST(Layouts, StackedExpertsAreQuantizedUnderThePublishedNames) {
  for (const char* spec : {"fp8:block=16x16", "int8:channel", "bf16", "f32"}) {
    const TempDir dir;
    expect_ok(assay({"convert", kQwen, dir / "apart", "--to", spec}));
    for (const Names* names : {&kTransformers5, &kMlx}) {
      stack_experts("qwen3-moe", dir / "stacked", *names);
      expect_ok(assay({"convert", dir / "stacked", dir / "out", "--to", spec}));
      test::expect_same_tensors(dir / "apart", dir / "out");
      fs::remove_all(dir / "out");
    }
  }
}

TEST(Layouts, StackedExpertsBecomeTheSameGguf) {
  const TempDir dir;
  stack_experts("qwen3-moe", dir / "stacked", kTransformers5);
  for (const char* type : {"gguf:f32", "gguf:q8_0"}) {
    const fs::path apart = dir / "apart.gguf", stacked = dir / "stacked.gguf";
    fs::remove(apart);
    fs::remove(stacked);
    expect_ok(assay({"convert", kQwen, apart, "--to", type, "--tokenizer-pre", "none"}));
    expect_ok(assay({"convert", dir / "stacked", stacked, "--to", type, "--tokenizer-pre", "none"}));
    test::expect_same_tensors(apart, stacked);
    if (std::string(type) == "gguf:f32") expect_ok(assay({"convert", "--equal", dir / "stacked", apart}));
  }
}

std::string values_of(const fs::path& file) {  // of the one tensor in it
  const Checkpoint checkpoint = open_checkpoint(file, 1);
  return test::stored_bytes(checkpoint, checkpoint.tensors.at(0));
}

// Saved as transformers 5 computes with them: verify, check, paramcount and run take that for a layout of the
// model, and no tensor is missing or too many.
TEST(Layouts, StackedExpertsAreTheModelToEveryCommand) {
  const TempDir dir;
  const fs::path apart = kData / "models/qwen3-moe", stacked = dir / "stacked";
  stack_experts("qwen3-moe", stacked, kTransformers5);
  const auto verified = assay({"verify", stacked, "--json", "-"});
  EXPECT_EQ(verified.out.find("model.tensor_"), std::string::npos) << verified.out;
  const auto checked = assay({"check", stacked, "--json", "-"});
  expect_ok(checked);
  EXPECT_EQ(checked.out.find("model.tensor_"), std::string::npos) << checked.out;
  nlohmann::json counted[2];
  std::string logits[2];
  for (const bool is_stacked : {false, true}) {
    const fs::path& model = is_stacked ? stacked : apart;
    const auto count = assay({"paramcount", model, "--format", "json"});
    expect_ok(count);
    counted[is_stacked ? 1 : 0] = nlohmann::json::parse(count.out);
    const fs::path file = dir / "logits.safetensors";
    expect_ok(assay({"run", model, "--tokens", "3,14,15,92,6", "-n", "0", "--logits", file}));
    logits[is_stacked ? 1 : 0] = values_of(file);
  }
  for (const char* key : {"total", "active", "active_without_embedding"})
    EXPECT_EQ(counted[0].at(key), counted[1].at(key)) << key;
  EXPECT_EQ(counted[1].at("checkpoint").at("difference"), 0);
  EXPECT_EQ(logits[0], logits[1]);
}

// kv_b_proj in MLX's halves: embed_q [heads, rank, nope], unembed_out [heads, v, rank].
TEST(Layouts, LatentAttentionOfMlxIsJoined) {
  const TempDir dir;
  const fs::path source = kData / "models/deepseek-v2";
  const auto config = nlohmann::json::parse(test::read_file(source / "config.json"));
  const std::uint64_t heads = config.at("num_attention_heads"), rank = config.at("kv_lora_rank"),
                      nope = config.at("qk_nope_head_dim"), v = config.at("v_head_dim");
  std::vector<Made> made;
  for (const auto& [name, tensor] : tensors_of(source / "model.safetensors")) {
    const auto at = name.find("kv_b_proj.weight");
    if (at == std::string::npos) {
      made.push_back(tensor);
      continue;
    }
    const std::string prefix = name.substr(0, at);
    const std::uint64_t size = tensor.bytes.size() / (heads * (nope + v) * rank);
    Made keys{prefix + "embed_q.weight", tensor.type, {heads, rank, nope}, {}};
    Made values{prefix + "unembed_out.weight", tensor.type, {heads, v, rank}, {}};
    for (std::uint64_t head = 0; head < heads; ++head) {
      const std::uint64_t top = head * (nope + v);
      for (std::uint64_t r = 0; r < rank; ++r) {
        for (std::uint64_t n = 0; n < nope; ++n)
          keys.bytes += tensor.bytes.substr(((top + n) * rank + r) * size, size);
      }
      values.bytes += tensor.bytes.substr((top + nope) * rank * size, v * rank * size);
    }
    made.push_back(keys);
    made.push_back(values);
  }
  test::write_checkpoint(dir / "mlx", made, test::read_file(source / "config.json"));
  expect_ok(assay({"convert", "--equal", dir / "mlx", source / "model.safetensors"}));
  expect_ok(assay({"convert", dir / "mlx", dir / "out", "--to", "f32"}));
  expect_ok(assay({"convert", source / "model.safetensors", dir / "apart", "--to", "f32"}));
  test::expect_same_tensors(dir / "apart", dir / "out");
}

// Names that nobody knows: a loader of config.json's architecture would fill the experts in at random.
TEST(Layouts, AnOutputThatIsNotItsConfigsModelIsRefused) {
  const TempDir dir;
  stack_experts("qwen3-moe", dir / "odd",
                {{{{"gate_proj"}, "pile.gate"}, {{"up_proj"}, "pile.up"}, {{"down_proj"}, "pile.down"}}});
  for (const char* spec : {"f32", "fp8:block=16x16"}) {
    for (const bool dry : {true, false}) {
      std::vector<std::string> command = {"convert", dir / "odd", dir / "out", "--to", spec};
      if (dry) command.emplace_back("--dry-run");
      const auto result = assay(command);
      EXPECT_EQ(result.exit_code, 1) << spec << result.out << result.err;
      EXPECT_NE(result.out.find("experts.0.down_proj.weight"), std::string::npos) << result.out;
      EXPECT_FALSE(fs::exists(dir / "out"));
    }
    auto allowed =
        std::vector<std::string>{"convert", dir / "odd", dir / "part", "--to", spec, "--allow-incomplete"};
    expect_ok(assay(allowed));
    fs::remove_all(dir / "part");
  }
  // In other files, too: a copy is held to its config as a conversion is.
  EXPECT_EQ(assay({"convert", dir / "odd", dir / "copy", "--max-shard-size", "40KB"}).exit_code, 1);
  expect_ok(assay({"convert", dir / "odd", dir / "copy", "--max-shard-size", "40KB", "--allow-incomplete"}));
}

}  // namespace
}  // namespace assay
