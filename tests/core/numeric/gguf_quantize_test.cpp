// Expected blocks: ggml's own, through data/make_gguf_quantize_fixtures.py, on every instruction set of this
// machine.
#include "core/numeric/gguf_quantize.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include "core/formats/stream_digest.h"
#include "core/numeric/simd_targets.h"
#include "core/system/error.h"
#include "tests/core/numeric/fixtures.h"
#include "tests/support/fenced.h"
#include "tests/support/support.h"

namespace assay {
namespace {

std::vector<float> floats(std::string_view bytes) {
  std::vector<float> out(bytes.size() / sizeof(float));
  std::memcpy(out.data(), bytes.data(), out.size() * sizeof(float));
  return out;
}

std::string quantized(ElementType type, std::span<const float> values) {
  test::Fenced<float> given(values);
  test::Fenced<char> out(*storage_bytes(type, values.size()));
  const auto fault = gguf_quantize(type, given.all(), reinterpret_cast<std::byte*>(out.data()));
  EXPECT_FALSE(fault) << name(type) << ": value " << fault->index;
  return {out.all().begin(), out.all().end()};
}

const ElementType kTypes[] = {
    ElementType::F16,   ElementType::BF16,  ElementType::Q4_0,   ElementType::Q4_1,   ElementType::Q5_0,
    ElementType::Q5_1,  ElementType::Q8_0,  ElementType::Q2_K,   ElementType::Q3_K,   ElementType::Q4_K,
    ElementType::Q5_K,  ElementType::Q6_K,  ElementType::IQ4_NL, ElementType::IQ4_XS, ElementType::MXFP4,
    ElementType::NVFP4, ElementType::TQ1_0, ElementType::TQ2_0,  ElementType::Q1_0,   ElementType::Q2_0};

class GgufQuantize : public testing::TestWithParam<std::tuple<ElementType, std::string>> {
 protected:
  void SetUp() override { use_simd_target(std::get<1>(GetParam())); }
  void TearDown() override { use_simd_target(""); }
  // As many of the inputs as ggml has blocks for.
  std::vector<float> inputs() const {
    std::vector<float> values = floats(test::fixture("quantize/inputs.bin"));
    values.resize(expected().size() / info(type()).block_bytes * info(type()).block_elements);
    if (type() == ElementType::NVFP4) {  // beyond 6 · 448 it has no scale
      for (float& value : values) value *= 0x1p-5F;
    }
    return values;
  }
  std::string expected() const { return test::fixture("quantize/" + std::string(name(type())) + ".bin"); }
  ElementType type() const { return std::get<0>(GetParam()); }
};
INSTANTIATE_TEST_SUITE_P(EveryTypeAndTarget, GgufQuantize,
                         testing::Combine(testing::ValuesIn(kTypes), testing::ValuesIn(simd_targets())),
                         [](const auto& test) {
                           return std::string(name(std::get<0>(test.param))) + "_" + std::get<1>(test.param);
                         });

TEST_P(GgufQuantize, BlocksAreGgmlsBytes) {
  const std::string blocks = expected(), actual = quantized(type(), inputs());
  ASSERT_EQ(actual.size(), blocks.size());
  const std::size_t size = info(type()).block_bytes;
  for (std::size_t at = 0; at < blocks.size(); at += size) {
    ASSERT_EQ(actual.substr(at, size), blocks.substr(at, size))
        << "input " << at / size * info(type()).block_elements / 256 << ", block " << at / size;
  }
}

// Kernels take several blocks at a time: neither how many nor which comes first may matter.
TEST_P(GgufQuantize, BlocksDoNotDependOnTheirNeighbours) {
  const std::vector<float> values = inputs();
  const std::size_t piece = 3 * std::max<std::size_t>(info(type()).block_elements, 32);
  std::string apart;
  for (std::size_t at = 0; at < values.size(); at += piece) {
    apart += quantized(type(), std::span(values).subspan(at, std::min(piece, values.size() - at)));
  }
  EXPECT_EQ(apart, expected());
}

TEST_P(GgufQuantize, NamesTheFirstValueThatIsNotFinite) {
  const float inf = std::numeric_limits<float>::infinity();
  std::vector<std::byte> out(4352 * sizeof(float));
  for (const float bad : {inf, -inf, std::nanf("")}) {
    for (const std::size_t at : {std::size_t{0}, std::size_t{77}, std::size_t{4095}, std::size_t{4101}}) {
      std::vector<float> values(4352, 0.25f);
      values[at] = bad;
      values.back() = bad;
      const auto fault = gguf_quantize(type(), values, out.data());
      ASSERT_TRUE(fault);
      EXPECT_EQ(fault->kind, QuantizeFault::Kind::not_finite);
      EXPECT_EQ(fault->index, at);
    }
  }
}

TEST_P(GgufQuantize, NamesWhatNoHalfHolds) {
  if (type() == ElementType::BF16 || type() == ElementType::MXFP4) return;  // their range is float32's
  std::vector<std::byte> out(4608 * sizeof(float));
  for (const float unit : {1e7f, 1e30f}) {  // the scale is infinite; sums are
    std::vector<float> values(4608, 0.25f);
    for (int i = 0; i < 256; ++i) values[4352 + i] = static_cast<float>(i % 2 == 0 ? i : -i) * unit;
    const auto fault = gguf_quantize(type(), values, out.data());
    ASSERT_TRUE(fault);
    EXPECT_EQ(fault->kind, QuantizeFault::Kind::too_large);
    const bool names_value = type() == ElementType::F16 || type() == ElementType::NVFP4 || unit > 1e10f;
    EXPECT_EQ(fault->index, names_value ? 4353u : 4352u);
  }
}

TEST(GgufQuantizers, RefuseTypesTheyDoNotKnow) {
  const std::vector<float> values(256);
  std::vector<std::byte> out(1024);
  for (const ElementType type : {ElementType::IQ2_XXS, ElementType::F8_E4M3, ElementType::I8}) {
    EXPECT_FALSE(gguf_can_quantize_to(type));
    EXPECT_THROW((void)gguf_quantize(type, values, out.data()), Error);
  }
  EXPECT_TRUE(gguf_can_quantize_to(ElementType::Q4_K));
  EXPECT_THROW((void)gguf_quantize(ElementType::Q4_K, std::span(values).first(255), out.data()), Error);
}

// With an importance matrix: ggml's bytes, by their digest.
TEST(GgufQuantizers, RowsWithImportanceAreGgmlsBytes) {
  constexpr std::size_t kColumns = 512;
  const std::vector<float> values = floats(test::fixture("quantize/inputs.bin"));
  const std::vector<float> importance = floats(test::fixture("quantize/importance.bin"));
  std::istringstream lines(test::fixture("quantize/WEIGHTED.tsv"));
  int types = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with('#')) continue;
    std::istringstream fields(line);
    std::string type_name, digest;
    fields >> type_name >> digest;
    const ElementType type = element_type_from_text(type_name).value();
    const std::size_t row_bytes = storage_bytes(type, kColumns).value(), rows = values.size() / kColumns;
    std::string out(rows * row_bytes, '\0');
    for (std::size_t row = 0; row < rows; ++row) {
      const auto fault = gguf_quantize_row(type, std::span(values).subspan(row * kColumns, kColumns),
                                           importance, reinterpret_cast<std::byte*>(&out[row * row_bytes]));
      EXPECT_FALSE(fault) << type_name;
    }
    EXPECT_EQ(digest_of(DigestKind::sha256, std::as_bytes(std::span(out))).hex(), digest) << type_name;
    ++types;
  }
  EXPECT_EQ(types, 12);
}

// Blocks by another build of llama.cpp, for another processor (AArch64).
TEST(GgufQuantizers, AgreeWithLlamaCppElsewhere) {
  ASSAY_CASE_OR_SKIP(folder, "gguf/quants-golden");
  struct Case {
    const char* file;
    ElementType type;
  };
  for (const Case& c : {Case{"q4_0_64", ElementType::Q4_0}, Case{"q4_1_64", ElementType::Q4_1},
                        Case{"q5_0_64", ElementType::Q5_0}, Case{"q5_1_64", ElementType::Q5_1},
                        Case{"q8_0_64", ElementType::Q8_0}, Case{"iq4_nl_64", ElementType::IQ4_NL},
                        Case{"q2_k_512", ElementType::Q2_K}, Case{"q3_k_512", ElementType::Q3_K},
                        Case{"q4_k_512", ElementType::Q4_K}, Case{"q5_k_512", ElementType::Q5_K},
                        Case{"q6_k_512", ElementType::Q6_K}}) {
    const std::string stem = std::string(c.file) + "_noim";
    EXPECT_EQ(quantized(c.type, floats(test::read_file(folder / (stem + "_input.bin")))),
              test::read_file(folder / (stem + "_expected.bin")))
        << stem;
  }
}

}  // namespace
}  // namespace assay
