// The cases of linear: kernels/harness/linear_cases.cpp says what they are.
#include "kernels/harness/linear_grid.h"

#include <array>
#include <utility>

namespace assay {
namespace {

struct Shape {
  std::uint64_t m, k, n;
};

constexpr std::uint64_t kMany = 1024;  // outputs, above which a few tokens do

// Settings are to follow the shape, inputs these.
CaseId linear_case(std::string_view form, const Shape& s) {
  return CaseId("linear", std::string(form)).with("m", s.m).with("k", s.k).with("n", s.n);
}

constexpr std::array kPowerful = {InputKind::zero_mean, InputKind::positive_mean, InputKind::heavy_tailed,
                                  InputKind::one_hot};

// Cases in the order in which they are added.
struct Grid {
  std::vector<CaseId> cases;

  void add(std::string_view form, const Shape& s, InputKind kind, std::string_view act = "") {
    CaseId id("linear", std::string(form));
    if (!act.empty()) id.with("act", act);
    cases.push_back(id.with("m", s.m).with("k", s.k).with("n", s.n).with(kind));
  }
  CaseId& last() { return cases.back(); }
};

void add_plain(Grid& cases) {
  // Plain elements: ragged, single, prime and empty.
  for (const std::string_view form : {"F32", "BF16", "F16"}) {
    for (const Shape& s : {Shape{0, 64, 8}, {1, 1, 1}, {3, 7, 5}}) cases.add(form, s, InputKind::zero_mean);
    for (const Shape& s : {Shape{5, 31, 33}, {17, 129, 67}, {1, 1031, 63}, {6, 257, 16}, {40, 512, 96}}) {
      for (const InputKind kind : kInputKinds) cases.add(form, s, kind);
    }
  }
  for (const InputKind kind : kInputKinds) {
    cases.add("F32", {7, 65, 33}, kind);
    cases.last().with("bias", 1);
  }
  // Subnormal weights; activations beyond what half precision holds.
  cases.add("F16", {5, 64, 19}, InputKind::zero_mean);
  cases.last().with("down", 16);
  for (const std::string_view form : {"F32", "F16", "BF16"}) {
    cases.add(form, {5, 64, 19}, InputKind::zero_mean);
    cases.last().with("up", 16);
  }
}

void add_blocks(Grid& cases) {
  // A scale a block, whose edges the matrix does not respect.
  for (const std::string_view form :
       {"FP8_128x128", "FP8_64x64", "FP8_1x128", "INT8_CHANNEL", "INT8_128x128"}) {
    for (const Shape& s : {Shape{1, 200, 130}, {7, 384, 257}, {33, 129, 129}}) {
      for (const InputKind kind : kPowerful) cases.add(form, s, kind);
      cases.add(form, s, InputKind::exact);
    }
  }
  for (const std::string_view form : {"Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q2_K", "Q3_K", "Q4_K", "Q5_K",
                                      "Q6_K", "IQ4_NL", "IQ4_XS", "MXFP4"}) {
    for (const Shape& s : {Shape{1, 256, 67}, {9, 768, 35}}) {
      for (const InputKind kind : kPowerful) cases.add(form, s, kind);
    }
  }
  // Real ones, cut in the number of outputs: DeepSeek-V3, Llama-3-8B, Qwen3-0.6B.
  constexpr std::array<Shape, 7> kReal = {{{1, 7168, 576},
                                           {2, 16384, 128},
                                           {7, 1536, 1536},
                                           {128, 512, 512},
                                           {1, 14336, 256},
                                           {33, 4096, 256},
                                           {5, 1024, 3072}}};
  std::size_t turn = 0;
  for (const std::string_view form : {"F32", "BF16", "FP8_128x128", "INT8_CHANNEL", "Q8_0", "Q4_K", "Q6_K"}) {
    for (const Shape& s : kReal) cases.add(form, s, kPowerful[turn++ % kPowerful.size()]);
  }
}

// Activations that are bfloat16 or quantized as models quantize them.
void add_narrow_activations(Grid& cases) {
  for (const InputKind kind :
       {InputKind::zero_mean, InputKind::positive_mean, InputKind::heavy_tailed, InputKind::exact}) {
    for (const Shape& s : {Shape{5, 33, 31}, {17, 512, 67}}) cases.add("BF16", s, kind, "bf16");
    for (const std::string_view form : {"F32", "F16", "FP8_128x128", "INT8_CHANNEL", "Q8_0", "Q4_K"}) {
      for (const Shape& s : {Shape{1, 256, 67}, {9, 768, 35}}) cases.add(form, s, kind, "bf16");
    }
    for (const Shape& s : {Shape{3, 200, 130}, {17, 512, 257}}) {
      if (kind == InputKind::exact) continue;
      cases.add("FP8_128x128", s, kind, "fp8-block");
      cases.add("FP8_64x64", s, kind, "fp8-block");
      cases.add("INT8_CHANNEL", s, kind, "int8");
    }
  }
  for (const Shape& s : {Shape{1, 4096, 256}, {40, 1536, 131}})
    cases.add("BF16", s, InputKind::zero_mean, "bf16");
  cases.add("BF16", {7, 65, 33}, InputKind::zero_mean, "bf16");
  cases.last().with("bias", 1);
}

// Activations that kernels round to integers.
void add_integer_activations(Grid& cases) {
  for (const std::string_view form : {"Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q4_K", "Q5_K", "Q6_K"}) {
    for (const Shape& s : {Shape{1, 512, 67}, {3, 256, 9}, {17, 768, 35}, {64, 1024, 96}}) {
      for (const InputKind kind : kPowerful) {
        cases.add(form, s, kind, "int16");
        // A scale of max / 127 makes no 1 of a 1: nothing to be equal to bit for bit.
        if (kind != InputKind::one_hot) cases.add(form, s, kind, "int8-block");
      }
    }
  }
  for (const std::string_view form : {"BF16", "F16"}) {
    for (const Shape& s : {Shape{1, 512, 67}, {3, 96, 9}, {17, 608, 35}, {64, 1024, 96}, {7, 33, 5}}) {
      for (const InputKind kind : kInputKinds) cases.add(form, s, kind, "int16");
    }
  }
}

}  // namespace

std::vector<CaseId> linear_grid() {
  Grid grid;
  add_plain(grid);
  add_blocks(grid);
  add_narrow_activations(grid);
  add_integer_activations(grid);
  return std::move(grid.cases);
}

std::vector<CaseId> linear_perf_grid() {
  std::vector<CaseId> cases;
  for (const std::string_view form : {"F32", "BF16", "FP8_128x128", "INT8_CHANNEL", "Q8_0", "Q4_K", "Q6_K"}) {
    for (const Shape& s : {Shape{1, 4096, 14336}, {512, 4096, 1024}})
      cases.push_back(CaseId("linear", std::string(form))
                          .with("m", s.m)
                          .with("k", s.k)
                          .with("n", s.n)
                          .with(InputKind::zero_mean));
  }
  // What GPUs multiply on tensor cores.
  for (const auto& [form, act] : {std::pair<std::string_view, std::string_view>{"BF16", "bf16"},
                                  {"FP8_128x128", "fp8-block"},
                                  {"FP8_64x64", "fp8-block"},
                                  {"INT8_CHANNEL", "int8"}}) {
    for (const Shape& s : {Shape{1, 4096, 14336}, {2048, 7168, 4096}})
      cases.push_back(CaseId("linear", std::string(form))
                          .with("act", act)
                          .with("m", s.m)
                          .with("k", s.k)
                          .with("n", s.n)
                          .with(InputKind::zero_mean));
  }
  return cases;
}

std::vector<CaseId> linear_always() {
  std::vector<CaseId> cases;
  const auto add = [&](CaseId id, InputKind kind) { cases.push_back(id.with(kind)); };
  // W stored [inputs, outputs].
  for (const std::string_view form : {"F32", "BF16", "F16", "FP8_128x128"}) {
    for (const Shape& s : {Shape{1, 33, 65}, {5, 130, 200}, {7, 40, 31}}) {
      for (const InputKind kind : {InputKind::zero_mean, InputKind::exact})
        add(linear_case(form, s).with("major", "input"), kind);
    }
  }
  add(linear_case("F32", {5, 33, 65}).with("major", "input").with("bias", 1), InputKind::zero_mean);
  // Weights, products and sums that are subnormal, and exact: whatever is taken for zero is a difference.
  for (const Shape& s : {Shape{1, 64, 19}, {3, 33, 40}, {17, 130, 67}}) {
    add(linear_case("F32", s).with("down", 140), InputKind::exact);
    add(linear_case("BF16", s).with("down", 130), InputKind::exact);
    add(linear_case("BF16", s).with("act", "bf16").with("down", 130), InputKind::exact);
  }
  // In 8 bits: as many inputs as DeepSeek-V3 has, of which each block counts; and sums without rounding,
  // under scales that differ.
  for (const InputKind kind :
       {InputKind::zero_mean, InputKind::positive_mean, InputKind::heavy_tailed, InputKind::exact}) {
    for (const Shape& s : {Shape{3, 200, 130}, {17, 512, 257}, {2, 7168, 130}}) {
      const bool long_sums = s.k == 7168;
      if (!long_sums && kind != InputKind::exact) continue;
      for (const std::string_view form : {"FP8_128x128", "FP8_64x64"})
        add(linear_case(form, s).with("act", "fp8-block"), kind);
      add(linear_case("INT8_CHANNEL", s).with("act", "int8"), kind);
    }
  }
  return cases;
}

namespace {

// Whole blocks of GGUF's.
void add_blocks(std::size_t count, std::vector<CaseId>& cases) {
  for (const std::string_view form : {"Q8_0", "Q4_0", "Q4_K", "Q6_K"}) {
    const std::uint64_t inputs = count * (form.ends_with("K") ? 256 : 32);
    cases.push_back(linear_case(form, {2, inputs, 3}));
    for (const std::string_view act : {"int16", "int8-block"}) {
      cases.push_back(linear_case(form, {2, inputs, 3}).with("act", act));
      if (count < 10) cases.push_back(linear_case(form, {7, inputs, 3}).with("act", act));
    }
  }
}

// Of each way to multiply one: `inputs` may be anything where the form has no blocks.
void add_ways(const Shape& s, std::vector<CaseId>& cases) {
  cases.push_back(linear_case("F32", s));
  cases.push_back(linear_case("BF16", s).with("act", "bf16"));
  for (const std::string_view act : {"int16", "int8-block"})
    cases.push_back(linear_case("Q8_0", {s.m, 32, s.n}).with("act", act));
}

}  // namespace

std::vector<CaseId> linear_at(std::string_view size, std::size_t value) {
  std::vector<CaseId> cases;
  if (size == "m") add_ways({value, 33, 37}, cases);
  if (size == "n") add_ways({value < kMany - 1 ? 7u : 2u, 8, value}, cases);
  if (size == "blocks") add_blocks(value, cases);
  if (size == "k") {
    for (const std::uint64_t m : {2, 7}) {
      for (const std::string_view form : {"F32", "BF16", "F16"})
        cases.push_back(linear_case(form, {m, value, 5}));
      cases.push_back(linear_case("BF16", {m, value, 5}).with("act", "bf16"));
    }
    for (const std::string_view form : {"FP8_1x128", "INT8_CHANNEL"})
      cases.push_back(linear_case(form, {2, value, 5}));
  }
  if (size == "terms of pairs") {
    for (const std::uint64_t m : {2, 7})
      cases.push_back(linear_case("BF16", {m, value, 5}).with("act", "bf16"));
  }
  if (size == "strip")  // of a matrix stored [inputs, outputs]
    cases.push_back(linear_case("F32", {3, (value + kMany - 1) / kMany, kMany}).with("major", "input"));
  for (CaseId& id : cases) id.with(InputKind::zero_mean);
  return cases;
}

}  // namespace assay
