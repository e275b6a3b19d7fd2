// Every kernel for a GPU is registered, and declares where its code goes another way.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "kernels/cuda/cuda_kernels.h"
#include "kernels/registry/registry.h"

namespace assay {
namespace {

// "k/16": every 16; "m@5": from 5 on.
std::string text_of(const Edges& edges) {
  std::string text;
  for (const Edge& edge : edges) {
    if (!text.empty()) text += ' ';
    text +=
        edge.every > 0 ? fmt::format("{}/{}", edge.of, edge.every) : fmt::format("{}@{}", edge.of, edge.from);
  }
  return text;
}

constexpr const char
    *kNoneDeclared = "",
    *kAttention =
        "rows/16 rows@9 rows@17 rows@65 keys@17 keys@65 keys@129 keys@257 dim@65 dim@129 dim@257 v@65 v@129 "
        "v@257",
    *kLatent = "heads@17 heads@33 heads@65 keys@65 keys@257 queries@9",
    *kTiles = "m@65 m@129 n@65 n@129 k/16 k@65 k@129 k@513", *kExperts = "tokens@65 tokens@129",
    *kRows = "n/32 n@1025 n@29000", *kBlocks = "n@257";

const std::map<std::string, std::string> kDeclared = {
    {"activation cuda.fused", kBlocks},
    {"attention cuda.auto", kAttention},
    {"attention cuda.flash", kAttention},
    {"attention cuda.split", kAttention},
    {"attention cuda.split_fixed", kAttention},
    {"dequantize cuda.fused", kBlocks},
    {"embedding cuda.gather", "hidden@257"},
    {"fused_moe cuda.grouped_bf16_wgmma", kExperts},
    {"fused_moe cuda.grouped_bf16_wgmma_tma", kExperts},
    {"fused_moe cuda.grouped_fp8_half_mma", kExperts},
    {"fused_moe cuda.grouped_fp8_mma", kExperts},
    {"fused_moe cuda.grouped_fp8_wgmma", kExperts},
    {"fused_moe cuda.grouped_fp8_wgmma_tma", kExperts},
    {"fused_moe cuda.grouped_int8_mma", kExperts},
    {"fused_moe cuda.grouped_mma", kExperts},
    {"gated_activation cuda.fused", kBlocks},
    {"layer_norm cuda.fused", kRows},
    {"linear cuda.bf16_wgmma", kTiles},
    {"linear cuda.bf16_wgmma_tma", kTiles},
    {"linear cuda.cublas", kNoneDeclared},
    {"linear cuda.fp8_half_mma", kTiles},
    {"linear cuda.fp8_mma", kTiles},
    {"linear cuda.fp8_wgmma", kTiles},
    {"linear cuda.fp8_wgmma_tma", kTiles},
    {"linear cuda.gemv", "m@2 m@5 m@8 n/16 k/16 k@513 k@1025 k@2049"},
    {"linear cuda.int8_mma", kTiles},
    {"linear cuda.mma", kTiles},
    {"linear library.cublas_bf16", kNoneDeclared},
    {"linear library.cublas_f32", kNoneDeclared},
    {"linear library.cublas_int8", kNoneDeclared},
    {"linear library.cublas_tf32", kNoneDeclared},
    {"linear library.cublaslt_fp8", kNoneDeclared},
    {"linear library.cublaslt_fp8_block", kNoneDeclared},
    {"mla cuda.absorbed", kLatent},
    {"mla cuda.absorbed_fixed", kLatent},
    {"mla cuda.expanded", "keys@9 queries@65"},
    {"moe_gate cuda.fused", "m/4 experts/32"},
    {"quantize cuda.fused", "n/32 n@1025"},
    {"rms_norm cuda.fused", kRows},
    {"rope cuda.fused", "pairs@257"},
    {"softmax cuda.fused", kRows}};

TEST(CudaEdges, OfEveryKernelAreThoseOfItsTiles) {
  std::map<std::string, std::string> found;
  Registry registry;  // one of its own: made here, whatever other tests have made
  add_cuda_kernels(registry);
  registry.for_each_op([&]<class Call>(const std::vector<Kernel<Call>>& kernels) {
    for (const Kernel<Call>& kernel : kernels) {
      if (kernel.device == Device::cuda)
        found[fmt::format("{} {}", Call::kOp, kernel.name)] = text_of(kernel.edges);
    }
  });
  EXPECT_EQ(found, kDeclared);
}

}  // namespace
}  // namespace assay
