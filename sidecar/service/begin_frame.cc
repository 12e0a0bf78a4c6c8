#include "sidecar/service/begin_frame.h"

namespace stoker::sidecar {

Status limit_begin(local::Begin& begin, const std::optional<ContractTerms>& allowed) {
    if (!allowed) {
        return {};
    }
    ContractTerms asked{begin.contract, {}};
    for (const local::Parameter& parameter : begin.parameters) {
        asked.parameters[parameter.name] = parameter.value;
    }
    STOKER_TRY(const ContractTerms terms, narrow(*allowed, asked));
    begin.parameters.clear();
    for (const auto& [name, value] : terms.parameters) {
        begin.parameters.push_back({name, value});
    }
    return {};
}

void stamp_job(local::Begin& begin, const std::string& job_uid) {
    if (!job_uid.empty()) {
        begin.job = job_uid + "/" + begin.job;
    }
}

}  // namespace stoker::sidecar
