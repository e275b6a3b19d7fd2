// sm_90's barriers in shared memory, which count arrivals and bytes, and the copy engine that reports to them.
//
//   Mbarrier* full = shared_memory<Mbarrier>(offset);
//   if (thread_id() == 0) mbarrier_init(full, 1);          // arrivals of a phase
//   mbarriers_ready();                                     // of the thread that made them; then sync_block()
//   …
//   mbarrier_expect(full, bytes);                          // arrives, and a phase wants so many bytes more
//   copy_tile(tile, map, column_byte, row, full);          // of one thread, for all; tile aligned to 1024
//   …
//   mbarrier_wait(full, parity);                           // phase 0, 2, … : parity 0; 1, 3, … : 1
//   mbarrier_arrive(empty);
//
// A phase ends with its last arrival and its last byte; who waits for the phase before the first, parity 1, does not
// wait. What was read before mbarrier_arrive() may be overwritten by who waited. A tensor map that the host wrote to
// global memory is seen after map_ready() of a thread of the block. (PTX ISA, "mbarrier", "cp.async.bulk", "cp.async.bulk.tensor", "barrier.cluster",
// "membar/fence", "setmaxnreg".)
//
//   copy_row(shared, global, bytes, barrier)   of one thread: whole 16 bytes, aligned so
//   arrive_cluster() wait_cluster() cluster_rank()   blocks of a launch in clusters: all threads of all of them meet,
//   in two halves, in turns
//   copy_to_cluster(shared, global, bytes, barrier, ranks)   of one thread: whole 16 bytes, aligned so, to the same place
//   of each block whose bit is set in `ranks`; each block's own barrier counts the bytes that come to it
//   give_registers<N>()   every thread of a warpgroup, which has N registers from now on, a multiple of 8: fewer
//   take_registers<N>()   more, once others have given them
#pragma once

#include "kernels/cuda/device.cuh"
#include "kernels/cuda/tensor_map.h"

#ifndef __CUDACC__
#include "kernels/cuda/mbarrier_emulated.h"
#endif

namespace assay::cuda {
inline namespace ASSAY_TARGET {

using Mbarrier = std::uint64_t;

#ifdef __CUDACC__

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
#define ASSAY_SM90(...) asm volatile(__VA_ARGS__)
#else
#define ASSAY_SM90(...) __trap()  // planned for sm_90 only
#endif

ASSAY_DEVICE void mbarrier_init(Mbarrier* barrier, unsigned arrivals) {
  ASSAY_SM90("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(arrivals)
             : "memory");
}
ASSAY_DEVICE void mbarriers_ready() {
  ASSAY_SM90("fence.mbarrier_init.release.cluster;" ::: "memory");
  ASSAY_SM90("fence.proxy.async.shared::cta;" ::: "memory");
}
ASSAY_DEVICE void mbarrier_arrive(Mbarrier* barrier) {
  ASSAY_SM90("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier)) : "memory");
}
ASSAY_DEVICE void mbarrier_expect(Mbarrier* barrier, unsigned bytes) {
  ASSAY_SM90("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)),
             "r"(bytes)
             : "memory");
}
ASSAY_DEVICE void mbarrier_wait(Mbarrier* barrier, unsigned parity) {
  std::uint32_t done = 0;
  while (done == 0) {
    ASSAY_SM90(
        "{\n.reg .pred over;\nmbarrier.try_wait.parity.shared::cta.b64 over, [%1], %2;\nselp.u32 %0, 1, 0, "
        "over;\n}"
        : "=r"(done)
        : "r"(shared_address(barrier)), "r"(parity)
        : "memory");
  }
}
ASSAY_DEVICE void map_ready(const TensorMap* map) {
  ASSAY_SM90("fence.proxy.tensormap::generic.acquire.sys [%0], 128;" ::"l"(map) : "memory");
}
ASSAY_DEVICE void copy_tile(void* tile, const TensorMap* map, std::int32_t column_byte, std::int32_t row,
                            Mbarrier* barrier) {
  ASSAY_SM90(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], "
      "[%2];" ::"r"(shared_address(tile)),
      "l"(map), "r"(shared_address(barrier)), "r"(column_byte), "r"(row)
      : "memory");
}
ASSAY_DEVICE void copy_to_cluster(void* shared, const void* global, unsigned bytes, Mbarrier* barrier,
                                  unsigned ranks) {
  ASSAY_SM90(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], %2, "
      "[%3], %4;" ::"r"(shared_address(shared)),
      "l"(global), "r"(bytes), "r"(shared_address(barrier)), "h"(static_cast<std::uint16_t>(ranks))
      : "memory");
}
ASSAY_DEVICE void copy_row(void* shared, const void* global, unsigned bytes, Mbarrier* barrier) {
  ASSAY_SM90("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                 shared_address(shared)),
             "l"(global), "r"(bytes), "r"(shared_address(barrier))
             : "memory");
}
ASSAY_DEVICE unsigned cluster_rank() {
  unsigned rank = 0;
  ASSAY_SM90("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}
ASSAY_DEVICE void arrive_cluster() {
  ASSAY_SM90("barrier.cluster.arrive.release.aligned;" ::: "memory");
}
ASSAY_DEVICE void wait_cluster() {
  ASSAY_SM90("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}
template <int kRegisters>
ASSAY_DEVICE void give_registers() {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
#endif
}
template <int kRegisters>
ASSAY_DEVICE void take_registers() {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
#endif
}
#undef ASSAY_SM90

#else  // the emulator

inline void mbarrier_init(Mbarrier* barrier, unsigned arrivals, Where where = Where::here()) {
  emulator::mbarrier_init(barrier, arrivals, where);
}
inline void mbarriers_ready() {}
inline void mbarrier_arrive(Mbarrier* barrier, Where where = Where::here()) {
  emulator::mbarrier_arrive(barrier, 0, where);
}
inline void mbarrier_expect(Mbarrier* barrier, unsigned bytes, Where where = Where::here()) {
  emulator::mbarrier_arrive(barrier, bytes, where);
}
inline void mbarrier_wait(Mbarrier* barrier, unsigned parity, Where where = Where::here()) {
  emulator::mbarrier_wait(barrier, parity, where);
}
inline void map_ready(const TensorMap*) {}
inline void copy_tile(void* tile, const TensorMap* map, std::int32_t column_byte, std::int32_t row,
                      Mbarrier* barrier, Where where = Where::here()) {
  emulator::copy_tile(tile, *map, column_byte, row, barrier, where);
}
inline void copy_to_cluster(void* shared, const void* global, unsigned bytes, Mbarrier* barrier,
                            unsigned ranks, Where where = Where::here()) {
  emulator::copy_to_cluster(shared, global, bytes, barrier, ranks, where);
}
inline void copy_row(void* shared, const void* global, unsigned bytes, Mbarrier* barrier,
                     Where where = Where::here()) {
  emulator::copy_to_cluster(shared, global, bytes, barrier, 1u << emulator::cluster_rank(), where);
}
inline unsigned cluster_rank() {
  return emulator::cluster_rank();
}
inline void arrive_cluster(Where where = Where::here()) {
  emulator::arrive_cluster(where);
}
inline void wait_cluster(Where where = Where::here()) {
  emulator::wait_cluster(where);
}
template <int kRegisters>
void give_registers(Where where = Where::here()) {
  emulator::exchange(nullptr, 0, "setmaxnreg", where);
}
template <int kRegisters>
void take_registers(Where where = Where::here()) {
  emulator::exchange(nullptr, 0, "setmaxnreg", where);
}

#endif

}  // namespace ASSAY_TARGET
}  // namespace assay::cuda
