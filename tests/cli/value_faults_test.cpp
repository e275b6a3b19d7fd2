// Damage that is lost in the norm of a matrix: one scale, one block of codes, one row. `check --against` and
// `compare model` judge by tile and by row (core/model/value_judge.h). The damage is planted in the bytes;
// the clean conversion, made of weights with outliers in rows and columns, must raise no alarm.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <nlohmann/json.hpp>
#include <random>

#include "convert/equal.h"
#include "core/model/value_judge.h"
#include "core/model/zero_scales.h"
#include "tests/support/paths.h"
#include "tests/support/support.h"

namespace assay::test {
namespace {

using nlohmann::json;

constexpr std::uint64_t kRows = 384, kColumns = 640;
constexpr const char* kDamaged = "model.layers.1.mlp.up_proj.weight";

// Four matrices in float32: rows and columns of different sizes, a few values far out.
void write_original(const fs::path& folder, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  json header = json::object();
  std::string buffer;
  for (int layer = 0; layer < 4; ++layer) {
    std::vector<float> values(kRows * kColumns);
    for (std::uint64_t r = 0; r < kRows; ++r) {
      for (std::uint64_t c = 0; c < kColumns; ++c) {
        const float row = std::exp(0.3F * std::sin(static_cast<float>(r))),
                    column = c % 97 == 0 ? 4.0F : 1.0F;
        values[r * kColumns + c] = 0.02F * row * column * normal(random);
      }
    }
    for (int i = 0; i < 10; ++i) values[random() % values.size()] *= 15;
    const std::string bytes(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
    header["model.layers." + std::to_string(layer) + ".mlp.up_proj.weight"] = {
        {"dtype", "F32"},
        {"shape", {kRows, kColumns}},
        {"data_offsets", {buffer.size(), buffer.size() + bytes.size()}}};
    buffer += bytes;
  }
  write_file(folder / "model.safetensors", safetensors_bytes(header.dump(), buffer));
}

struct Pairing {
  Side here, there;
  std::vector<ValuePair> pairs;
  Pairing(const fs::path& a, const fs::path& b)
      : here(a, 1), there(b, 1), pairs(pairs_by_name(here.stored.tensors, there.stored.tensors)) {
    compare_pairs(here.reader, there.reader, pairs, 1, ProgressMode::never);
  }
  // Names of the tensors that are off, as a whole or in parts; `said` gets the sentences.
  std::vector<std::string> off(std::string& said) const {
    const ValueJudge judge(pairs);
    std::vector<std::string> names;
    for (const ValuePair& pair : pairs) {
      const auto parts = judge.parts_off(pair);
      if (!parts.empty()) said += describe_parts(pair, parts) + "\n";
      if (!parts.empty() || judge.whole_is_off(pair)) names.push_back(pair.here->name);
    }
    return names;
  }
};

// Changes bytes of one stored tensor, from `offset` within it.
void change(const fs::path& folder, const std::string& tensor, std::uint64_t offset, std::uint64_t count,
            const std::function<void(std::string&)>& edit) {
  const Checkpoint checkpoint = open_checkpoint(folder, 1);
  const CheckpointTensor* found = checkpoint.find(tensor);
  ASSERT_NE(found, nullptr) << tensor;
  const fs::path file = checkpoint.files[found->file].path;
  std::string all = read_file(file), part = all.substr(found->offset + offset, count);
  edit(part);
  all.replace(found->offset + offset, count, part);
  write_file(file, all);
}

template <class T>
void times(std::string& bytes, T factor) {
  T value;
  std::memcpy(&value, bytes.data(), sizeof value);
  value *= factor;
  std::memcpy(bytes.data(), &value, sizeof value);
}

struct Damage {
  const char* name;
  const char* to;
  std::function<void(const fs::path&)> plant;  // nothing: the conversion is right
  const char* says;                            // a part of the message
};

void scale_times(const fs::path& folder, float factor, std::uint64_t place) {
  change(folder, std::string(kDamaged) + "_scale_inv", 4 * place, 4,
         [&](std::string& b) { times(b, factor); });
}

// Codes of FP8 in `rows` rows from `row`, columns 128 to 255.
void zero_codes(const fs::path& folder, std::uint64_t row, std::uint64_t rows, std::uint64_t bytes_a_row) {
  for (std::uint64_t r = row; r < row + rows; ++r)
    change(folder, kDamaged, r * bytes_a_row + bytes_a_row / 5, bytes_a_row / 5,
           [](std::string& b) { b.assign(b.size(), '\0'); });
}

const std::vector<Damage>& damages() {
  static const std::vector<Damage> all = {
      {"fp8", "fp8:block=128x128", {}, ""},
      {"fp8_scale_doubled", "fp8:block=128x128", [](const fs::path& f) { scale_times(f, 2, 7); }, "2 ×"},
      {"fp8_scale_halved", "fp8:block=128x128", [](const fs::path& f) { scale_times(f, 0.5, 7); },
       "off by 0.5"},
      {"fp8_scale_up_by_a_fifth", "fp8:block=128x128", [](const fs::path& f) { scale_times(f, 1.2F, 3); },
       "1.2 ×"},
      {"fp8_scale_zero", "fp8:block=128x128", [](const fs::path& f) { scale_times(f, 0, 7); },
       "all zero here"},
      {"fp8_codes_zero", "fp8:block=128x128", [](const fs::path& f) { zero_codes(f, 128, 128, kColumns); },
       "rows 128-255, columns 128-255"},
      {"int8_channel", "int8:channel", {}, ""},
      {"int8_channel_scale_up", "int8:channel",
       [](const fs::path& f) {
         change(f, std::string(kDamaged) + "_scale", 308, 4, [](std::string& b) { times(b, 1.5F); });
       },
       "row 77"},
      {"bf16", "bf16", {}, ""},
      {"nvfp4", "nvfp4", {}, ""},
      {"mxfp4", "mxfp4", {}, ""},
      {"int4", "int4:group=128", {}, ""},
  };
  return all;
}

class ValueFaults : public testing::TestWithParam<Damage> {};
INSTANTIATE_TEST_SUITE_P(Damages, ValueFaults, testing::ValuesIn(damages()),
                         [](const auto& test) { return std::string(test.param.name); });

TEST_P(ValueFaults, OfOneScaleBlockOrRowAreNamed) {
  const Damage& damage = GetParam();
  for (const unsigned seed : {1u, 2u}) {
    const TempDir dir(memory_folder());
    write_original(dir / "original", seed);
    const auto made = assay({"convert", dir / "original", dir / "made", "--to", damage.to, "--no-prove"});
    ASSERT_EQ(made.exit_code, 0) << made.err;
    if (damage.plant) damage.plant(dir / "made");
    std::string said;
    const std::vector<std::string> off = Pairing(dir / "made", dir / "original").off(said);
    const std::vector<std::string> expected =
        damage.plant ? std::vector<std::string>{kDamaged} : std::vector<std::string>{};
    EXPECT_EQ(off, expected) << said;
    EXPECT_NE(said.find(damage.says), std::string::npos) << said;
  }
}

// A Llama of one layer with these sizes, random but for its norms.
void write_llama(const fs::path& folder) {
  const json config = {{"architectures", {"LlamaForCausalLM"}},
                       {"model_type", "llama"},
                       {"vocab_size", 64},
                       {"hidden_size", 384},
                       {"intermediate_size", 640},
                       {"num_hidden_layers", 1},
                       {"num_attention_heads", 6},
                       {"num_key_value_heads", 6},
                       {"rms_norm_eps", 1e-5},
                       {"max_position_embeddings", 64},
                       {"hidden_act", "silu"},
                       {"rope_theta", 10000.0},
                       {"tie_word_embeddings", false},
                       {"torch_dtype", "float32"}};
  std::mt19937 random(5);
  std::normal_distribution<float> normal;
  json header = json::object();
  std::string buffer;
  const auto add = [&](const std::string& name, const std::vector<std::uint64_t>& shape) {
    std::vector<float> values(shape.size() == 1 ? shape[0] : shape[0] * shape[1], 1.0F);
    for (float& value : values) value = shape.size() == 1 ? 1.0F : 0.05F * normal(random);
    const std::string bytes(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
    header[name] = {
        {"dtype", "F32"}, {"shape", shape}, {"data_offsets", {buffer.size(), buffer.size() + bytes.size()}}};
    buffer += bytes;
  };
  const std::string layer = "model.layers.0.";
  add("model.embed_tokens.weight", {64, 384});
  add("lm_head.weight", {64, 384});
  add("model.norm.weight", {384});
  for (const char* norm : {"input_layernorm", "post_attention_layernorm"})
    add(layer + norm + ".weight", {384});
  for (const char* matrix : {"q", "k", "v", "o"})
    add(layer + "self_attn." + matrix + "_proj.weight", {384, 384});
  for (const char* matrix : {"gate", "up"}) add(layer + "mlp." + matrix + "_proj.weight", {640, 384});
  add(layer + "mlp.down_proj.weight", {384, 640});
  write_file(folder / "model.safetensors", safetensors_bytes(header.dump(), buffer));
  write_file(folder / "config.json", config.dump());
}

// One scale of 45, up by a fifth: the taps see less than the format's own noise.
TEST(CompareModel, JudgesWeightsByTileToo) {
  const TempDir dir(memory_folder());
  write_llama(dir / "original");
  ASSERT_EQ(assay({"convert", dir / "original", dir / "made", "--to", "fp8:block=128x128"}).exit_code, 0);
  const std::vector<std::string> compare = {"compare",        "model", dir / "made", "--against",
                                            dir / "original", "-n",    "0"};
  const ProcessResult clean = assay(compare);
  EXPECT_EQ(clean.exit_code, 0) << clean.out << clean.err;
  change(dir / "made", "model.layers.0.mlp.up_proj.weight_scale_inv", 16, 4,
         [](std::string& b) { times(b, 1.2F); });
  const ProcessResult damaged = assay(compare);
  EXPECT_EQ(damaged.exit_code, 1) << damaged.out << damaged.err;
  EXPECT_NE(damaged.out.find("up_proj.weight: 1 of its 15 tiles is off"), std::string::npos) << damaged.out;
}

TEST(ZeroScales, OverCodesThatAreNotZeroAreFound) {
  const TempDir dir(memory_folder());
  write_original(dir / "original", 3);
  ASSERT_EQ(assay({"convert", dir / "original", dir / "made", "--to", "fp8:block=128x128"}).exit_code, 0);
  scale_times(dir / "made", 0, 8);
  const Side side(dir / "made", 1);
  for (const LogicalTensor& tensor : side.stored.tensors) {
    const ZeroScales found = find_zero_scales(side.reader, tensor);
    EXPECT_EQ(found.over_codes, tensor.name == kDamaged ? 1u : 0u) << tensor.name;
    if (tensor.name != kDamaged) continue;
    EXPECT_EQ(found.first_row, 128u);
    EXPECT_EQ(found.first_column, 3u * 128);
  }
  // Over zeros a scale of zero is as good as any.
  for (std::uint64_t row = 128; row < 256; ++row)
    change(dir / "made", kDamaged, row * kColumns + 384, 128,
           [](std::string& b) { b.assign(b.size(), '\0'); });
  const Side zeros(dir / "made", 1);
  for (const LogicalTensor& tensor : zeros.stored.tensors)
    EXPECT_EQ(find_zero_scales(zeros.reader, tensor).over_codes, 0u);
}

// GPTQ, AWQ, MLX and compressed-tensors: what was packed by their own libraries
// (data/make_forms_fixtures.py), the scales then set to zero. Hardly a group of random weights holds nothing
// but its zero point.
TEST(ZeroScales, OfPackedIntegersAreFound) {
  for (const char* form : {"gptq", "gptq-v2", "gptq-3", "awq", "compressed-tensors", "mlx"}) {
    const TempDir dir(memory_folder());
    fs::copy(source_dir() / "data/fixtures/convert/forms" / form, dir / "made");
    std::uint64_t judged = 0;
    {
      const Side whole(dir / "made", 1);
      for (const LogicalTensor& tensor : whole.stored.tensors) {
        EXPECT_EQ(find_zero_scales(whole.reader, tensor).over_codes, 0u) << form << ' ' << tensor.name;
        if (tensor.form.kind != FormKind::packed) continue;
        const CheckpointTensor& scale = whole.checkpoint.tensors[*tensor.scale];
        change(dir / "made", scale.name, 0, scale.bytes, [](std::string& b) { b.assign(b.size(), '\0'); });
      }
    }
    const Side zeroed(dir / "made", 1);
    for (const LogicalTensor& tensor : zeroed.stored.tensors) {
      if (tensor.form.kind != FormKind::packed) continue;
      ++judged;
      const std::uint64_t scales = tensor.all_rows() * tensor.scale_columns();
      EXPECT_EQ(find_zero_scales(zeroed.reader, tensor).over_codes, scales) << form << ' ' << tensor.name;
    }
    EXPECT_GT(judged, 0u) << form;
  }
}

// One scale of many, of symmetric INT4 in groups of 32; over a group of zero points it is as good as any.
TEST(ZeroScales, OfPackedIntegersOverZeroPointsAreNone) {
  const TempDir dir(memory_folder());
  write_original(dir / "original", 5);
  ASSERT_EQ(assay({"convert", dir / "original", dir / "made", "--to", "int4:group=32"}).exit_code, 0);
  const std::uint64_t groups = kColumns / 32, row = 17, group = 3;
  change(dir / "made", std::string(kDamaged) + "_scale", (row * groups + group) * 4, 4,
         [](std::string& b) { b.assign(b.size(), '\0'); });
  const auto found = [&] {
    const Side side(dir / "made", 1);
    for (const LogicalTensor& tensor : side.stored.tensors) {
      if (tensor.name == kDamaged) return find_zero_scales(side.reader, tensor);
    }
    return ZeroScales{};
  };
  const ZeroScales one = found();
  EXPECT_EQ(one.over_codes, 1u);
  EXPECT_EQ(one.first_row, row);
  EXPECT_EQ(one.first_column / 32, group);
  change(dir / "made", std::string(kDamaged) + "_packed", (row * kColumns / 8 + group * 4) * 4, 16,
         [](std::string& b) { b.assign(b.size(), '\x88'); });
  EXPECT_EQ(found().over_codes, 0u);
}

TEST(ZeroScales, OfPackedIntegersFailACheck) {
  const TempDir dir(memory_folder());
  ASSERT_EQ(assay({"convert", source_dir() / "data/models/mixtral", dir / "made", "--to", "int4:channel",
                   "--include", "w2"})
                .exit_code,
            0);
  EXPECT_EQ(assay({"check", dir / "made"}).exit_code, 0);
  change(dir / "made", "model.layers.1.block_sparse_moe.experts.2.w2.weight_scale", 0, 80,
         [](std::string& b) { b.assign(b.size(), '\0'); });
  const ProcessResult result = assay({"check", dir / "made", "--json", "-"});
  EXPECT_EQ(result.exit_code, 1) << result.out << result.err;
  EXPECT_NE(result.out.find("numbers.scale_zero"), std::string::npos) << result.out;
}

}  // namespace
}  // namespace assay::test
