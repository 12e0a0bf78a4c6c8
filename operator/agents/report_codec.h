#pragma once

#include <optional>
#include <vector>

#include "common/base/result.h"
#include "operator/agents/report_rules.h"
#include "operator/api/agent_report.h"

namespace stoker::control::v1 {
class Hello;
class OperatorMessage;
class Report;
}  // namespace stoker::control::v1

// Between proto/control/v1 and plain values. Nothing is judged here; report_rules.h does that.
// Pure, thread-safe.
namespace stoker::control {

AgentHello decode(const v1::Hello& hello);
ReportBody decode(const v1::Report& report);
v1::OperatorMessage encode(
    const std::vector<AgentGrant>& grants,
    const std::optional<AgentProbe>& probe,
    const std::vector<AgentPin>& pins = {});

}  // namespace stoker::control
