// The driver's encoder of tensor maps, asked for at run time: the program links no libcuda.
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <cstring>

#include "core/system/error.h"
#include "kernels/cuda/tensor_map.h"

namespace assay::cuda {
namespace {

using Encode = CUresult (*)(CUtensorMap*, CUtensorMapDataType, cuuint32_t, void*, const cuuint64_t*,
                            const cuuint64_t*, const cuuint32_t*, const cuuint32_t*, CUtensorMapInterleave,
                            CUtensorMapSwizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill);

Encode find_encoder() {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result = cudaDriverEntryPointSymbolNotFound;
#if CUDART_VERSION >= 12050
  const cudaError_t status =
      cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found, 12000, cudaEnableDefault, &result);
#else
  const cudaError_t status =
      cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", &found, cudaEnableDefault, &result);
#endif
  if (status != cudaSuccess || result != cudaDriverEntryPointSuccess || found == nullptr)
    throw Error::io("the CUDA driver has no cuTensorMapEncodeTiled: one of CUDA 12 is needed")
        .remedy("choose a kernel whose name does not end in _tma");
  return reinterpret_cast<Encode>(found);
}

}  // namespace

TensorMap driver_tensor_map(const TileSource& source) {
  static_assert(sizeof(CUtensorMap) == sizeof(TensorMap) && alignof(CUtensorMap) <= alignof(TensorMap));
  static const Encode encode = find_encoder();
  if (const char* why = unmappable(source)) throw Error::internal(fmt::format("a tensor map: {}", why));
  const cuuint64_t sizes[] = {source.row_bytes, source.rows}, pitches[] = {source.pitch};
  const cuuint32_t tile[] = {kTileBytes, source.tile_rows}, every[] = {1, 1};
  CUtensorMap encoded;
  const CUresult result =
      encode(&encoded, CU_TENSOR_MAP_DATA_TYPE_UINT8, 2, const_cast<void*>(source.base), sizes, pitches, tile,
             every, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
             CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result != CUDA_SUCCESS)
    throw Error::io(fmt::format("CUDA, encoding a tensor map of {} rows of {} bytes: error {}", source.rows,
                                source.row_bytes, static_cast<int>(result)));
  TensorMap map;
  std::memcpy(map.words, &encoded, sizeof map.words);
  return map;
}

}  // namespace assay::cuda
