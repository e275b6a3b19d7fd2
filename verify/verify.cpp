#include "verify/hash/hasher.h"
