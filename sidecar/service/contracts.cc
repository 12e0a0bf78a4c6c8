#include "sidecar/service/contracts.h"

#include <map>
#include <utility>

#include <fmt/format.h>

namespace stoker::sidecar {

namespace {

using Make = Result<std::unique_ptr<Sampler>> (*)(const SamplerOrder&, std::uint32_t count);

const std::map<std::string, Make>& contracts() {
    static const std::map<std::string, Make> kContracts{};
    return kContracts;
}

}  // namespace

MakeSampler contract_samplers() {
    return [](const SamplerOrder& order, std::uint32_t count) -> Result<std::unique_ptr<Sampler>> {
        const auto found = contracts().find(order.contract);
        if (found != contracts().end()) {
            return found->second(order, count);
        }
        std::vector<std::string> names;
        for (const auto& [name, make] : contracts()) {
            names.push_back(name);
        }
        return fail(
            ErrorCode::kInvalidArgument,
            fmt::format(
                "no contract '{}'; this sidecar draws: {}",
                order.contract,
                fmt::join(names, ", ")));
    };
}

void stamp_job(Frame& frame, local::Begin begin, const std::string& job_uid) {
    if (job_uid.empty()) {
        return;
    }
    begin.job = job_uid + "/" + begin.job;
    auto bytes = local::encode_frame(begin, frame.header.request_id);
    bytes.erase(bytes.begin(), bytes.begin() + local::kFrameHeaderBytes);
    frame.header.payload_bytes = static_cast<std::uint32_t>(bytes.size());
    frame.payload = std::move(bytes);
}

}  // namespace stoker::sidecar
