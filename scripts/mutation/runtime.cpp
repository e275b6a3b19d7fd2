// Which mutant lives ($ASSAY_MUTANT), and which were reached (noted only where $ASSAY_MUTANT_REACHED names a
// file).
#include <cstdlib>

extern "C" {
int assay_mutant_active = 0;
unsigned char* assay_mutant_reached = nullptr;
}

namespace {

constexpr int kMostMutants = 1 << 20;

// Before the constructors of any other static object, which may be mutated themselves.
__attribute__((constructor(101))) void begin() {
  if (const char* number = std::getenv("ASSAY_MUTANT")) assay_mutant_active = std::atoi(number);
  if (std::getenv("ASSAY_MUTANT_REACHED") != nullptr)
    assay_mutant_reached = static_cast<unsigned char*>(std::calloc(kMostMutants, 1));
}

}  // namespace
