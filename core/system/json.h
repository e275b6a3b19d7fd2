// Documents for scripts, whole: report.h names the type alone, since most who pass one on never look inside.
#pragma once

#include <nlohmann/json.hpp>

#include "core/system/report.h"
