/* Plugins that contradict kernels/plugin.h, one for each value of FAULT:
 *
 *   cc -shared -fPIC -DFAULT=3 malformed.c -o malformed.so
 */
#include <assay/kernels/plugin.h>
#include <stdlib.h>
#include <unistd.h>

static int takes(void* user, const assay_context* context, const assay_call* call) {
  (void)user, (void)context, (void)call;
  return 0;
}
static int run(void* user, const assay_context* context, const assay_call* call, char* message, size_t size) {
  (void)user, (void)context, (void)call, (void)message, (void)size;
  return 0;
}

static assay_kernel one = {sizeof(assay_kernel),
                           ASSAY_LINEAR,
                           ASSAY_CPU,
                           ASSAY_F32,
                           "one",
                           "never right",
                           0,
                           0,
                           1e-7,
                           NULL,
                           takes,
                           run};
static assay_kernel two = {sizeof(assay_kernel),
                           ASSAY_LINEAR,
                           ASSAY_CPU,
                           ASSAY_F32,
                           "two",
                           "never right",
                           0,
                           0,
                           1e-7,
                           NULL,
                           takes,
                           run};
static const assay_kernel* kernels[] = {&one, &two};
static assay_plugin_info info = {sizeof(assay_plugin_info), ASSAY_PLUGIN_ABI, "malformed", "1", kernels, 2};

#if FAULT == 1
#define assay_plugin another_symbol
const assay_plugin_info* another_symbol(uint32_t abi);
#endif

const assay_plugin_info* assay_plugin(uint32_t abi) {
  (void)abi;
  switch (FAULT) {
    case 2: info.abi = ASSAY_PLUGIN_ABI + 1; break;
    case 3: info.size = 8; break;
    case 4: one.size = 16; break;
    case 5: one.takes = NULL; break;
    case 6: two.run = NULL; break;
    case 7: two.name = "one"; break;
    case 8: two.name = "has a blank"; break;
    case 9: info.name = "cpu"; break;
    case 10: one.op = 4711; break;
    case 11: one.device = 9; break;
    case 12: one.activations = ASSAY_Q4_K; break;
    case 13: one.accumulator_roundoff = 1; break;
    case 14: info.kernel_count = 0; break;
    case 15: kernels[1] = NULL; break;
    case 16: one.invariants = 1u << 20; break;
    case 17: info.name = NULL; break;
    case 18: return NULL;
    case 19: abort();
    case 20:
      for (;;) sleep(1);
    case 21: exit(0);
    case 22: info.kernels = (const assay_kernel* const*)16; break;
    case 23: info.kernel_count = (size_t)-1; break;
    case 24: one.accumulator_roundoff = 0.0 / 0.0; break;
    default: break;
  }
  return &info;
}
