#ifdef ASSAY_HAS_ONEDNN
#include <oneapi/dnnl/dnnl.hpp>

#include "core/system/error.h"
#include "kernels/library/gemm.h"

namespace assay {

void onednn_gemm(const GemmArguments& a) {
  using dnnl::memory;
  try {
    static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
    const auto size = [](std::size_t n) { return static_cast<memory::dim>(n); };
    const auto floats = memory::data_type::f32;
    const memory::desc x({size(a.tokens), size(a.inputs)}, floats, memory::dims{size(a.x_stride), 1});
    const memory::desc w({size(a.inputs), size(a.outputs)}, floats, memory::dims{1, size(a.inputs)});
    const memory::desc y({size(a.tokens), size(a.outputs)}, floats, memory::dims{size(a.outputs), 1});
    const dnnl::matmul::primitive_desc plan(dnnl::matmul::desc(x, w, y), engine);
    dnnl::stream stream(engine);
    dnnl::matmul(plan).execute(stream, {{DNNL_ARG_SRC, memory(x, engine, const_cast<float*>(a.x))},
                                        {DNNL_ARG_WEIGHTS, memory(w, engine, const_cast<float*>(a.w))},
                                        {DNNL_ARG_DST, memory(y, engine, a.y)}});
    stream.wait();
  } catch (const dnnl::error& error) {
    throw Error::internal(std::string("oneDNN: ") + error.what());
  }
}

}  // namespace assay
#endif
