#include "sidecar/service/begin_frame.h"

#include <utility>

namespace stoker::sidecar {

namespace {

void put_begin(Frame& frame, const local::Begin& begin) {
    auto bytes = local::encode_frame(begin, frame.header.request_id);
    bytes.erase(bytes.begin(), bytes.begin() + local::kFrameHeaderBytes);
    frame.header.payload_bytes = static_cast<std::uint32_t>(bytes.size());
    frame.payload = std::move(bytes);
}

}  // namespace

Status limit_begin(Frame& frame, local::Begin& begin, const std::optional<ContractTerms>& allowed) {
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
    put_begin(frame, begin);
    return {};
}

void stamp_job(Frame& frame, local::Begin begin, const std::string& job_uid) {
    if (job_uid.empty()) {
        return;
    }
    begin.job = job_uid + "/" + begin.job;
    put_begin(frame, begin);
}

}  // namespace stoker::sidecar
