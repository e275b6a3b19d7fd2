// device.cuh for the emulator. Not included by itself. Each function that is a meeting point takes the line
// that calls it, so that threads which meet at different ones are found.
#pragma once

#include <cmath>
#include <cstring>
#include <type_traits>

#include "kernels/cuda/emulator.h"
#include "kernels/cuda/launch_plan.h"

namespace assay::cuda {
inline namespace ASSAY_TARGET {

using emulator::Where;

inline unsigned thread_id() {
  return emulator::thread_id();
}
inline unsigned thread_count() {
  return emulator::thread_count();
}
inline Extent3 block_index() {
  return emulator::block_index();
}
inline Extent3 grid_size() {
  return emulator::grid_size();
}

template <class T>
T* shared_memory(unsigned byte_offset = 0, Where where = Where::here()) {
  std::byte* const at = emulator::shared_memory() + byte_offset;
  emulator::require_shared(at, 0, alignof(T), where);
  return reinterpret_cast<T*>(at);
}

inline void sync_block(Where where = Where::here()) {
  emulator::sync_block(where);
}
inline void sync_warp(Where where = Where::here()) {
  emulator::exchange(nullptr, 0, "a barrier of the warp", where);
}
inline void sync_group(unsigned id, unsigned threads, Where where = Where::here()) {
  emulator::sync_group(id, threads, where);
}

// What lane `lane` handed in.
template <class T>
T exchanged(const T& mine, unsigned lane, const char* what, Where where) {
  static_assert(std::is_trivially_copyable_v<T>);
  T theirs;
  const std::byte* board = emulator::exchange(&mine, sizeof(T), what, where);
  std::memcpy(&theirs, board + lane * sizeof(T), sizeof(T));
  return theirs;
}
template <class T>
T shuffle_xor(T x, unsigned mask, Where where = Where::here()) {
  return exchanged(x, (thread_id() ^ mask) % 32, "a shuffle", where);
}
template <class T>
T shuffle_down(T x, unsigned delta, Where where = Where::here()) {
  const unsigned lane = thread_id() % 32;
  return exchanged(x, lane + delta < 32 ? lane + delta : lane, "a shuffle", where);
}
template <class T>
T shuffle_idx(T x, unsigned lane, Where where = Where::here()) {
  return exchanged(x, lane % 32, "a shuffle", where);
}
inline unsigned ballot(bool p, Where where = Where::here()) {
  const std::byte* board = emulator::exchange(&p, sizeof p, "a ballot", where);
  unsigned bits = 0;
  for (unsigned lane = 0; lane < 32; ++lane) bits |= (board[lane] != std::byte{0} ? 1u : 0u) << lane;
  return bits;
}
inline bool any(bool p, Where where = Where::here()) {
  return ballot(p, where) != 0;
}
inline bool all(bool p, Where where = Where::here()) {
  return ballot(p, where) == 0xFFFFFFFFu;
}

inline void cp_async16(void* shared, const void* global, bool valid, Where where = Where::here()) {
  emulator::copy_async(shared, global, 16, valid, where);
}
inline void cp_async4(void* shared, const void* global, bool valid, Where where = Where::here()) {
  emulator::copy_async(shared, global, 4, valid, where);
}
inline void cp_async_commit() {
  emulator::commit_copies();
}
template <int kLeft>
void cp_async_wait() {
  emulator::wait_for_copies(kLeft);
}

inline float fast_exp2(float x) {
  const float y = std::exp2(x);
  return y < 0x1p-126f ? 0.0f : y;
}

template <class T>
T atomic_add(T* address, T x) {
  const T before = *address;
  *address = before + x;
  return before;
}
inline void fence_device() {}
template <class T>
T load_fresh(const T* address) {
  return *address;
}

template <class T>
T load_once(const void* address, bool valid) {
  static_assert(sizeof(T) == 16 && alignof(T) == 16 && std::is_trivially_copyable_v<T>);
  T x = {};
  if (valid) std::memcpy(&x, address, sizeof x);
  return x;
}

// Runs `kernel` as planned; the stream is not looked at.
template <class... Parameters, class... Arguments>
void launch(const LaunchPlan& plan, void (*kernel)(Parameters...), Stream, const Arguments&... arguments) {
  if (plan.grid.count() == 0) return;
  emulator::run(
      {.grid = plan.grid, .block = plan.block, .shared_bytes = plan.shared_bytes, .cluster = plan.cluster},
      [&] { kernel(arguments...); });
}

}  // namespace ASSAY_TARGET
}  // namespace assay::cuda
