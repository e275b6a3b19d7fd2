// Highway, for files whose targets are those of vnni_targets.h: included anew for each of them.
//
// AVX3_DL is here what AVX3 is and the instructions of AVX512_VNNI, so that every processor with those has
// it, from Cascade Lake and Zen 4 on. Highway's own would be of no use: it asks for the rest of Ice Lake's
// extensions as well, and up to 1.0.3 it lets the compiler use AVX_VNNI instead, which Ice Lake and Zen 4
// have not.
#if defined(HWY_TARGET) && HWY_TARGET == HWY_AVX3_DL
// foreach_target.h comes here straight from AVX3: its macros and operations stay.
#undef HWY_NAMESPACE
#define HWY_NAMESPACE N_AVX3_DL
#undef HWY_TARGET_STR
#define HWY_TARGET_STR HWY_TARGET_STR_AVX3 ",avx512vnni"
namespace hwy {
namespace N_AVX3_DL = N_AVX3;
}
// Of this round Highway's headers know nothing: what they count rounds by is turned back.
#ifdef HWY_TARGET_TOGGLE
#undef HWY_TARGET_TOGGLE
#else
#define HWY_TARGET_TOGGLE
#endif
#else
#include <hwy/highway.h>
#endif
