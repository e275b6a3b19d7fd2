#include "refimpl/ops/support.h"

#include <fmt/format.h>

#include "core/system/error.h"

namespace assay {

void check_angles(const RotaryCall& call) {
  const Matrix& x = call.x;
  const RopeCall& angles = call.angles;
  if (angles.cos.rows() == x.rows() && angles.offset + 2 * angles.cos.columns() <= angles.head_dim &&
      angles.heads * angles.head_dim == x.columns())
    return;
  throw Error::internal(
      fmt::format("rope: angles [{}, {}] from element {} of a head on do not fit [{}, {}] of {} heads of {}",
                  angles.cos.rows(), angles.cos.columns(), angles.offset, x.rows(), x.columns(), angles.heads,
                  angles.head_dim));
}

void check_heads(const AttentionCall& call) {
  if (call.kv_heads == 0 || call.heads % call.kv_heads != 0 || call.q.columns() != call.heads * call.qk_dim)
    throw Error::internal(fmt::format("attention: q [{}, {}] for {} heads of {} over {} key heads",
                                      call.q.rows(), call.q.columns(), call.heads, call.qk_dim,
                                      call.kv_heads));
}

}  // namespace assay
