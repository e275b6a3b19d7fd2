// The low-level functions are deprecated since OpenSSL 3.0 in favour of EVP; but only they let a message that
// was hashed beside others go on alone, and they run the same assembly.
#define OPENSSL_SUPPRESS_DEPRECATED

#include "core/formats/hash/sha256_kernels.h"

#include <openssl/sha.h>

#include <algorithm>
#include <vector>

#if defined(__x86_64__)
#include <cpuid.h>

#include "core/formats/hash/sha256_rounds.h"
#endif

namespace assay::sha256 {
namespace {

void compress_openssl(std::uint32_t* const* state, const std::byte* const* data, std::size_t blocks) {
  SHA256_CTX context;
  SHA256_Init(&context);
  std::copy_n(state[0], 8, context.h);
  SHA256_Update(&context, data[0], blocks * kBlock);
  std::copy_n(context.h, 8, state[0]);
}

#if defined(__x86_64__)
bool has_sha_ni() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b & (1U << 29)) != 0 &&
         __builtin_cpu_supports("sse4.1");
}
#endif

std::vector<Kernel> detect() {
  std::vector<Kernel> found = {{"openssl", 1, 1.5, compress_openssl}};
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (has_sha_ni()) {
    found.push_back({"shani-x2", 2, 1.8, compress_shani_x2});
    found.push_back({"shani-x4", 4, 1.8, compress_shani_x4});
  } else {
    found[0].typical_rate = 0.45;
  }
  if (__builtin_cpu_supports("avx2")) found.push_back({"avx2-x8", 8, 1.3, compress_avx2_x8});
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512vl")) {
    found.push_back({"avx512-x8", 8, 2.5, compress_avx512_x8});
    found.push_back({"avx512-x16", 16, 3.2, compress_avx512_x16});
  }
#endif
  return found;
}

}  // namespace

std::span<const Kernel> kernels() {
  static const std::vector<Kernel> found = detect();
  return found;
}

void compress(const Kernel& kernel, std::span<State* const> states, std::span<const std::byte* const> data,
              std::size_t blocks) {
  std::uint32_t* state_at[kMaxLanes];
  const std::byte* data_at[kMaxLanes];
  State spare[kMaxLanes];
  for (std::size_t i = 0; i < static_cast<std::size_t>(kernel.lanes); ++i) {
    const bool used = i < states.size();
    state_at[i] = used ? states[i]->data() : (spare[i] = kInitialState).data();
    data_at[i] = used ? data[i] : data[0];
  }
  kernel.compress(state_at, data_at, blocks);
}

std::array<std::uint8_t, 32> finish(State state, std::span<const std::byte> tail, std::uint64_t length) {
  std::array<std::byte, 2 * kBlock> last{};
  std::copy(tail.begin(), tail.end(), last.begin());
  last[tail.size()] = std::byte{0x80};
  const std::size_t end = tail.size() + 1 + 8 <= kBlock ? kBlock : 2 * kBlock;
  for (std::size_t i = 0; i < 8; ++i) last[end - 1 - i] = static_cast<std::byte>((length * 8) >> (8 * i));
  State* const states[] = {&state};
  const std::byte* const data[] = {last.data()};
  compress(kernels().front(), states, data, end / kBlock);
  std::array<std::uint8_t, 32> digest;
  for (std::size_t i = 0; i < 32; ++i)
    digest[i] = static_cast<std::uint8_t>(state[i / 4] >> (24 - 8 * (i % 4)));
  return digest;
}

}  // namespace assay::sha256
