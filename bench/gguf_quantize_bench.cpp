// How fast float32 becomes GGUF blocks, here and in ggml; and whether the blocks are the same.
//
//   cmake --build --preset release --target gguf_quantize_bench
//   build/release/bench/gguf_quantize_bench LLAMA_BUILD/bin/libggml-base.so [TYPE...]
//
// Weights are normally distributed, in rows of 4096, as a chunk of a tensor that a thread of llama-quantize
// gets. Prints gigabytes (10^9) of float32 per second of processor time, the best of several passes on one
// thread, and then of wall time on every core, each thread with a buffer of its own. Exits 1 where a byte
// differs.
#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <functional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "core/numeric/gguf_quantize.h"
#include "core/numeric/simd_targets.h"
#include "core/system/threads.h"

namespace {

using assay::ElementType;
constexpr std::size_t kColumns = 4096, kRows = 256;
constexpr int kPasses = 3;

// ggml.h
using GgmlQuantize = std::size_t (*)(int type, const float*, void*, std::int64_t start, std::int64_t rows,
                                     std::int64_t columns, const float* importance);

// One scale per row, as trained matrices have.
std::vector<float> weights() {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::uniform_real_distribution<float> scale(0.005f, 0.05f);
  std::vector<float> values(kColumns * kRows);
  for (std::size_t row = 0; row < kRows; ++row) {
    const float of_row = scale(random);
    for (std::size_t i = 0; i < kColumns; ++i) values[row * kColumns + i] = of_row * normal(random);
  }
  return values;
}

double processor_seconds() {
  timespec now;
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double wall_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double best_seconds(double (*clock)(), const std::function<void()>& pass) {
  double best = 1e300;
  for (int i = 0; i < kPasses; ++i) {
    const double start = clock();
    pass();
    best = std::min(best, clock() - start);
  }
  return best;
}

// Each thread runs `quantize` over the same input into its own buffer.
void on_threads(int threads, std::vector<std::vector<std::byte>>& outs,
                const std::function<void(std::byte*)>& quantize) {
  std::vector<std::thread> running;
  for (int i = 0; i < threads; ++i) running.emplace_back([&, i] { quantize(outs[i].data()); });
  for (std::thread& thread : running) thread.join();
}

// False where the two disagree.
bool measure(ElementType type, const std::vector<float>& values, GgmlQuantize ggml) {
  const double gigabytes = static_cast<double>(values.size() * sizeof(float)) / 1e9;
  const int cores = assay::available_cores();
  std::vector<std::vector<std::byte>> outs(cores,
                                           std::vector<std::byte>(*storage_bytes(type, values.size())));
  const auto ours = [&](std::byte* out) { (void)assay::gguf_quantize(type, values, out); };
  const auto theirs = [&](std::byte* out) {
    ggml(assay::info(type).ggml_id, values.data(), out, 0, kRows, kColumns, nullptr);
  };
  std::printf("%-8s", std::string(name(type)).c_str());
  for (const std::string& target : assay::simd_targets()) {
    assay::use_simd_target(target);
    const double seconds = best_seconds(processor_seconds, [&] { ours(outs[0].data()); });
    std::printf(" %s %.3f", target.c_str(), gigabytes / seconds);
  }
  assay::use_simd_target("");
  ours(outs[0].data());
  const std::vector<std::byte> blocks = outs[0];
  const double all = best_seconds(wall_seconds, [&] { on_threads(cores, outs, ours); });
  const double ggml_one = best_seconds(processor_seconds, [&] { theirs(outs[0].data()); });
  const double ggml_all = best_seconds(wall_seconds, [&] { on_threads(cores, outs, theirs); });
  const bool same = outs[0] == blocks;
  std::printf("  ggml %.3f;  %d threads: %.3f, ggml %.3f%s\n", gigabytes / ggml_one, cores,
              cores * gigabytes / all, cores * gigabytes / ggml_all, same ? "" : "  DIFFERENT BYTES");
  std::fflush(stdout);
  return same;
}

}  // namespace

int main(int argc, char** argv) {
  void* const library = argc < 2 ? nullptr : ::dlopen(argv[1], RTLD_NOW);
  void* const symbol = library == nullptr ? nullptr : ::dlsym(library, "ggml_quantize_chunk");
  if (symbol == nullptr) {
    std::fprintf(stderr, "usage: gguf_quantize_bench LIBGGML_BASE_SO [TYPE...]\n");
    return 2;
  }
  std::vector<ElementType> types;
  for (int i = 2; i < argc; ++i) {
    if (const auto type = assay::element_type_from_text(argv[i])) types.push_back(*type);
  }
  if (types.empty()) {
    types = {ElementType::Q4_K,  ElementType::Q5_K,   ElementType::Q6_K,  ElementType::Q2_K,
             ElementType::Q3_K,  ElementType::Q8_0,   ElementType::Q4_0,  ElementType::Q4_1,
             ElementType::Q5_0,  ElementType::Q5_1,   ElementType::F16,   ElementType::BF16,
             ElementType::MXFP4, ElementType::IQ4_NL, ElementType::IQ4_XS};
  }
  const std::vector<float> values = weights();
  bool same = true;
  for (const ElementType type : types) {
    same &= measure(type, values, reinterpret_cast<GgmlQuantize>(symbol));
  }
  return same ? 0 : 1;
}
