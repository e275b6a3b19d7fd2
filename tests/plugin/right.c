/* A plugin with one right kernel: y = x W^T + bias, one dot product an output.
 *
 *   cc -O2 -shared -fPIC right.c -o right.so -lm && assay compare kernels --plugin ./right.so
 */
#include <stdlib.h>

#include "decode.h"

static int takes(void* user, const assay_context* context, const assay_call* call) {
  const assay_linear* a = call->as.linear;
  (void)user;
  return context->precision == ASSAY_PRECISION_F32 && can_decode(a->weight) &&
         (a->bias == NULL || a->bias->type == ASSAY_F32);
}

static int run(void* user, const assay_context* context, const assay_call* call, char* message,
               size_t message_size) {
  const assay_linear* a = call->as.linear;
  const size_t inputs = a->weight->columns;
  const float* bias = a->bias == NULL ? NULL : (const float*)a->bias->codes;
  size_t t, o, i;
  float* row = (float*)malloc((inputs + 1) * sizeof *row);
  (void)user, (void)context;
  if (row == NULL) {
    strncpy(message, "no memory for a row of the weight", message_size - 1);
    return 1;
  }
  for (o = 0; o < a->weight->rows; ++o) {
    decode_row(a->weight, o, row);
    for (t = 0; t < a->x.rows; ++t) {
      const float* x = row_of(&a->x, t);
      float sum = 0;
      for (i = 0; i < inputs; ++i) sum += x[i] * row[i];
      out_row(&a->y, t)[o] = sum + (bias == NULL ? 0 : bias[o]);
    }
  }
  free(row);
  return 0;
}

static const assay_kernel rows = {sizeof(assay_kernel),
                                  ASSAY_LINEAR,
                                  ASSAY_CPU,
                                  ASSAY_F32,
                                  "rows",
                                  "one dot product an output",
                                  ASSAY_ALL_INVARIANT,
                                  0,
                                  1.0 / (1 << 24),
                                  NULL,
                                  takes,
                                  run};
static const assay_kernel* const kernels[] = {&rows};
static const assay_plugin_info info = {sizeof(assay_plugin_info), ASSAY_PLUGIN_ABI, "right", "1", kernels, 1};

const assay_plugin_info* assay_plugin(uint32_t abi) {
  return abi == ASSAY_PLUGIN_ABI ? &info : NULL;
}
