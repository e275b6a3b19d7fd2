// What oneDNN's C++ headers call: each function opens the library when it is first called, and passes on.
#ifdef ASSAY_HAS_ONEDNN
#include <oneapi/dnnl/dnnl.h>
#include <oneapi/dnnl/dnnl_version.h>

#include <string>

#include "core/system/loaded_library.h"

namespace assay {
namespace {

template <class Function>
Function* of_onednn(const char* name) {
  static const LoadedLibrary library("libdnnl.so." + std::to_string(DNNL_VERSION_MAJOR));
  return library.function<Function>(name);
}

}  // namespace
}  // namespace assay

// NOLINTBEGIN
#define ASSAY_PASS_ON(result, name, parameters, arguments)                  \
  result name parameters {                                                  \
    static auto* const passed_on = assay::of_onednn<decltype(name)>(#name); \
    return passed_on arguments;                                             \
  }

extern "C" {
ASSAY_PASS_ON(dnnl_status_t, dnnl_engine_create, (dnnl_engine_t * e, dnnl_engine_kind_t k, size_t i),
              (e, k, i))
ASSAY_PASS_ON(dnnl_status_t, dnnl_engine_destroy, (dnnl_engine_t e), (e))
ASSAY_PASS_ON(dnnl_status_t, dnnl_matmul_desc_init,
              (dnnl_matmul_desc_t * d, const dnnl_memory_desc_t* s, const dnnl_memory_desc_t* w,
               const dnnl_memory_desc_t* b, const dnnl_memory_desc_t* y),
              (d, s, w, b, y))
ASSAY_PASS_ON(dnnl_status_t, dnnl_memory_create,
              (dnnl_memory_t * m, const dnnl_memory_desc_t* d, dnnl_engine_t e, void* h), (m, d, e, h))
ASSAY_PASS_ON(dnnl_status_t, dnnl_memory_desc_init_by_strides,
              (dnnl_memory_desc_t * m, int n, const dnnl_dims_t d, dnnl_data_type_t t, const dnnl_dims_t s),
              (m, n, d, t, s))
ASSAY_PASS_ON(dnnl_status_t, dnnl_memory_destroy, (dnnl_memory_t m), (m))
ASSAY_PASS_ON(dnnl_status_t, dnnl_primitive_create, (dnnl_primitive_t * p, const_dnnl_primitive_desc_t d),
              (p, d))
ASSAY_PASS_ON(dnnl_status_t, dnnl_primitive_desc_destroy, (dnnl_primitive_desc_t d), (d))
ASSAY_PASS_ON(dnnl_status_t, dnnl_primitive_desc_iterator_create,
              (dnnl_primitive_desc_iterator_t * i, const_dnnl_op_desc_t d, const_dnnl_primitive_attr_t a,
               dnnl_engine_t e, const_dnnl_primitive_desc_t h),
              (i, d, a, e, h))
ASSAY_PASS_ON(dnnl_status_t, dnnl_primitive_desc_iterator_destroy, (dnnl_primitive_desc_iterator_t i), (i))
ASSAY_PASS_ON(dnnl_primitive_desc_t, dnnl_primitive_desc_iterator_fetch,
              (const_dnnl_primitive_desc_iterator_t i), (i))
ASSAY_PASS_ON(dnnl_status_t, dnnl_primitive_destroy, (dnnl_primitive_t p), (p))
ASSAY_PASS_ON(dnnl_status_t, dnnl_primitive_execute,
              (const_dnnl_primitive_t p, dnnl_stream_t s, int n, const dnnl_exec_arg_t* a), (p, s, n, a))
ASSAY_PASS_ON(dnnl_status_t, dnnl_stream_create, (dnnl_stream_t * s, dnnl_engine_t e, unsigned f), (s, e, f))
ASSAY_PASS_ON(dnnl_status_t, dnnl_stream_destroy, (dnnl_stream_t s), (s))
ASSAY_PASS_ON(dnnl_status_t, dnnl_stream_wait, (dnnl_stream_t s), (s))
}
// NOLINTEND
#endif
