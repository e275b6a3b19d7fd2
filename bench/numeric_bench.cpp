// How fast core/numeric goes through bytes, one thread, each instruction set.
//
//   cmake --build --preset release --target numeric_bench && build/release/bench/numeric_bench
//
// Prints gigabytes (10^9) of stored bytes per second, the best of several passes over a buffer larger than
// the caches' share of one core, in pieces of 1 MiB as a file would be read.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "core/numeric/codec.h"
#include "core/numeric/codec_simd.h"
#include "core/numeric/gguf_blocks.h"
#include "core/numeric/simd_targets.h"
#include "core/numeric/statistics.h"

namespace {

using assay::ElementType;
constexpr std::size_t kBytes = 64u << 20, kPiece = 1u << 20;

// Weights as they are: normally distributed, encoded into `type`; GGUF blocks of random quants under small
// scales.
std::vector<std::byte> weights(ElementType type) {
  std::mt19937 random(1);
  std::vector<std::byte> bytes(kBytes / assay::info(type).block_bytes * assay::info(type).block_bytes);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  if (assay::float_format(type) == nullptr && type != ElementType::F32) return bytes;
  std::normal_distribution<float> normal(0, 0.5f);
  std::vector<float> values(1u << 16);
  for (float& value : values) value = normal(random);
  const std::size_t tile = *assay::storage_bytes(type, values.size());
  assay::encode(type, values, assay::Overflow::saturate, bytes.data());
  for (std::size_t at = tile; at + tile <= bytes.size(); at += tile)
    std::copy_n(bytes.begin(), tile, bytes.begin() + at);
  return bytes;
}

// Of this thread: on a busy machine the clock on the wall measures the neighbours.
double processor_seconds() {
  timespec now;
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double gigabytes_per_second(std::size_t bytes, const std::function<void()>& pass) {
  double best = 1e300;
  for (int i = 0; i < 5; ++i) {
    const double start = processor_seconds();
    pass();
    best = std::min(best, processor_seconds() - start);
  }
  return static_cast<double>(bytes) / best / 1e9;
}

void print(const std::string& what, ElementType type, const std::string& target, double speed) {
  std::printf("%-12s %-12s %-8s %7.2f GB/s\n", what.c_str(), std::string(name(type)).c_str(), target.c_str(),
              speed);
  std::fflush(stdout);
}

void measure_statistics(ElementType type, const std::string& target) {
  const std::vector<std::byte> bytes = weights(type);
  print("statistics", type, target, gigabytes_per_second(bytes.size(), [&] {
          assay::TensorStatistics statistics(type);
          for (std::size_t at = 0; at < bytes.size(); at += kPiece) {
            statistics.update(std::span(bytes).subspan(at, std::min(kPiece, bytes.size() - at)));
          }
        }));
}

void measure_codec(ElementType type, const std::string& target) {
  const std::vector<std::byte> bytes = weights(type);
  const std::size_t piece = kPiece / 4;
  std::vector<float> values(piece / assay::info(type).block_bytes);
  std::vector<std::byte> back(piece);
  print("decode", type, target, gigabytes_per_second(bytes.size(), [&] {
          for (std::size_t at = 0; at + piece <= bytes.size(); at += piece) {
            assay::simd::decode(type, std::span(bytes).subspan(at, piece), values.data());
          }
        }));
  print("encode", type, target, gigabytes_per_second(bytes.size(), [&] {
          for (std::size_t at = 0; at + piece <= bytes.size(); at += piece) {
            assay::simd::encode(type, values, assay::Overflow::saturate, back.data());
          }
        }));
}

void measure_dequantization(ElementType type, const std::string& target) {
  const std::vector<std::byte> bytes = weights(type);
  const std::size_t block = assay::info(type).block_bytes, piece = (64u << 10) / block * block;
  std::vector<float> values(piece / block * assay::info(type).block_elements);
  print("dequantize", type, target, gigabytes_per_second(bytes.size() / piece * piece, [&] {
          for (std::size_t at = 0; at + piece <= bytes.size(); at += piece) {
            assay::dequantize(type, std::span(bytes).subspan(at, piece), values.data());
          }
        }));
}

// What merely reading costs, as a yardstick for the rest.
void measure_reading() {
  const std::vector<std::byte> bytes = weights(ElementType::U8);
  std::uint64_t sum = 0;
  print("read", ElementType::U64, "plain", gigabytes_per_second(bytes.size(), [&] {
          for (std::size_t at = 0; at < bytes.size(); at += sizeof sum) {
            std::uint64_t word;
            std::memcpy(&word, bytes.data() + at, sizeof word);
            sum += word;
          }
        }));
  std::printf("%-12s %016llx\n", "(their sum)", static_cast<unsigned long long>(sum));
}

}  // namespace

int main() {
  measure_reading();
  for (const std::string& target : assay::simd_targets()) {
    assay::use_simd_target(target);
    for (const ElementType type :
         {ElementType::BF16, ElementType::F16, ElementType::F32, ElementType::F8_E4M3, ElementType::U8,
          ElementType::I32, ElementType::F64}) {
      measure_statistics(type, target);
    }
    for (const ElementType type :
         {ElementType::BF16, ElementType::F16, ElementType::F8_E4M3, ElementType::F8_E5M2}) {
      measure_codec(type, target);
    }
    for (const ElementType type : {ElementType::Q8_0, ElementType::Q4_0, ElementType::Q4_1, ElementType::Q5_0,
                                   ElementType::Q2_K, ElementType::Q3_K, ElementType::Q4_K, ElementType::Q5_K,
                                   ElementType::Q6_K, ElementType::MXFP4, ElementType::IQ4_NL}) {
      measure_dequantization(type, target);
    }
  }
  assay::use_simd_target("");
  for (const ElementType type :
       {ElementType::F8_E8M0, ElementType::F4, ElementType::F6_E2M3, ElementType::Q8_0, ElementType::Q4_0,
        ElementType::Q4_K, ElementType::Q6_K, ElementType::MXFP4, ElementType::IQ2_XXS, ElementType::IQ3_S,
        ElementType::TQ1_0}) {
    measure_statistics(type, "best");
  }
}
